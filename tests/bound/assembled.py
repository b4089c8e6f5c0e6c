"""Tiny programs, assembled and linked for the tests of the bound."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = """
MEMORY { flash : ORIGIN = 0x8000, LENGTH = 64K  ram : ORIGIN = 0x20000000, LENGTH = 16K }
SECTIONS {
    .text : { *(.text*) *(.rodata*) } > flash
    .stack (NOLOAD) : { . += 4096; nn_stack_high = .; } > ram
    .bss (NOLOAD) : { memory = .; . += 4096; } > ram
}
"""
STACK = 0x2000_1000
MEMORY = 0x2000_1000
"""Where the variables lie; their symbol is `memory`."""


def assembled(folder: Path, text: str, core: str = "cortex-m4", sized: bool = False) -> Path:
    """A program whose function `f` has this text; `sized`: and all of it, however many functions that is."""
    head = f".syntax unified\n.cpu {core}\n.thumb\n.text\n"
    if core == "cortex-m4":
        head += ".fpu fpv4-sp-d16\n"
    (folder / "p.s").write_text(
        f"{head}.global f\n.type f, %function\nf:\n{text}\n.ltorg\n{'.size f, . - f' if sized else ''}\n"
    )
    (folder / "p.ld").write_text(SCRIPT)
    flags = [f"-mcpu={core}", "-mthumb", *(["-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"] if core == "cortex-m4" else [])]
    command = ["arm-none-eabi-gcc", *flags, "-nostdlib", "-Wl,-e,f", "-T", "p.ld", "p.s", "-o", "p.elf"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "p.elf"

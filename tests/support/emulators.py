"""Compilers and emulators of processors that this PC is not."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parents[1] / "kernels" / "cortex_m55"
ARM64 = ("aarch64-linux-gnu-gcc", "qemu-aarch64")
RISCV = (
    "clang-19 --target=riscv64-linux-gnu -march=rv64gcv -fuse-ld=lld",
    "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0",
)
NARROW, WIDE = ((RISCV[0], f"{RISCV[1]},vlen={bits}") for bits in (128, 512))
CROSS = ("-O1", "-static")
"""The flags of a program for QEMU's user mode."""
IMAGE = (str(HERE / "start.c"), f"-T{HERE / 'image.ld'}", "-Wl,--no-warn-rwx-segments")
"""Those of a program for a Cortex-M55 with the PC's stdin and stdout."""
QUIET = "-display none -monitor none -serial none"
CORTEX_M55 = f"qemu-system-arm -M mps3-an547 {QUIET} -semihosting-config enable=on,target=native -kernel"


def cortex_m(core: str, floats: str = "hard") -> tuple[str, str]:
    """For the kernels of this core on an emulated Cortex-M55, which runs what is made for smaller ones, too."""
    compiler = f"arm-none-eabi-gcc -mcpu={core} -mthumb -mfloat-abi={floats} --specs=rdimon.specs -nostartfiles"
    return compiler, CORTEX_M55


def are_here(how: tuple[str, str]) -> bool:
    return all(shutil.which(command.split()[0]) is not None for command in how)

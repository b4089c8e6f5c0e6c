"""A Cortex-M program in unicorn with the simulated device behind its memory map, its interrupt taken or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base import paths
from nnbuild.base.mapped_device import MappedDevice
from nnbuild.base.paths import FIRMWARE
from tests.systolic.simulated import (
    FOLDER,
    Simulated,
    device,
    extent,
    library,
    needs_verilator,
    random_inputs,
    random_task,
    triple,
)

AT = 0x400
LINKER = """
MEMORY { flash (rx) : ORIGIN = 0x08000000, LENGTH = 1M
         ram (rw) : ORIGIN = 0x20000000, LENGTH = 128K }
SECTIONS { .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
           .bss (NOLOAD) : { *(.bss*) *(.data*) } > ram }
"""
MEMORIES = ("--memory", "0x08000000:1048576", "--memory", "0x20000000:131072")


def task_in_c() -> str:
    """What memory holds before, and what is expected behind it."""
    rng = np.random.default_rng(8)
    while True:
        task = random_task(rng)
        gaps = task.output.row - task.output.shape[1] * -(-task.output.shape[2] // 8) * 8
        if not gaps and task.operation == "conv2d" and sum(extent(t) for t in (*task.inputs, task.output)) > 2000:
            break
    with Simulated() as sim:
        descriptors, out, end = triple(task, random_inputs(rng, task), sim, AT, 0, tag=7)
        image = sim.memory[AT:out].tobytes()
        assert sim.run(descriptors, 1 << 19) == 0
        expected = sim.memory[out:end].tobytes()
    numbers = {"image_bytes": len(image), "tasks": len(descriptors), "out": out, "out_bytes": len(expected)}
    numbers["descriptors"] = -(-len(image) // 4) * 4
    image = image.ljust(numbers["descriptors"], b"\0") + b"".join(descriptors)
    text = "#include <stdint.h>\n"
    for name, content in {"image": image, "expected": expected}.items():
        text += f"const uint8_t {name}[] __attribute__((aligned(4))) = {{{','.join(map(str, content))}}};\n"
    return text + "".join(f"const uint32_t {name} = {number}u;\n" for name, number in numbers.items())


@pytest.mark.turns(3)
@needs_verilator
@pytest.mark.emulator
@pytest.mark.slow
def test_firmware_uses_the_device(tmp_path: Path) -> None:
    library()
    (tmp_path / "task.c").write_text(task_in_c())
    (tmp_path / "program.ld").write_text(LINKER)
    own = [FIRMWARE / "device" / "nn_device.c", FOLDER / "driver" / "systolic.c", FOLDER / "driver" / "mmio.c"]
    flags = ["-mcpu=cortex-m4", "-mthumb", "-O2", "-ffreestanding", "-nostdlib", "-fno-tree-loop-distribute-patterns"]
    flags += [
        "-DNN_DEVICE_IRQ=6",
        f"-I{FIRMWARE / 'include'}",
        f"-I{FOLDER / 'driver'}",
        f"-T{tmp_path / 'program.ld'}",
    ]
    program = tmp_path / "program.elf"
    sources = [Path(__file__).parent / "firmware.c", tmp_path / "task.c", *own]
    subprocess.run(["arm-none-eabi-gcc", *flags, *sources, "-o", program, "-lgcc"], check=True)
    place = MappedDevice(0x5006_0000, 0x6000_0000, 1 << 24, 6, paths.cache() / "systolic-8" / "libsystolic_sim.so")
    command = [sys.executable, "-m", "nnbuild.device.unicorn_board", program, *MEMORIES]
    command += ["--uart", "0x40011000", "--counter", "0x40000024", "--beside", place.option()]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=100)
    assert done.stdout == b"iipp", done.stderr.decode()[-2000:]
    assert device().LANES == 8

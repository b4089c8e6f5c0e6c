"""The second core of an RP2040 and an RP2350, as its ROM sees it: which words come, and where they lead."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from nnbuild.backends.firmware.image import addresses
from nnbuild.jobs.job import build_program, place
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model

pytestmark = pytest.mark.emulator

MNIST = Path(__file__).parents[2] / "examples" / "mnist"
SIO = 0xD0000000
NAMES = ("nn_cores_port_start", "nn_core_stacks_high", "nn_core_reset")


class Rom:
    """What waits in the second core: sends every word back; one that is not the next lets it begin anew."""

    def __init__(self, garbles: int) -> None:
        self.words: list[int] = []
        self.to_first = [0]
        self.off = 0
        self.resets = 0
        self.garbles = garbles

    def read(self, _: Any, at: int, __: int, base: int) -> int:
        if base != SIO:
            return self.off if at == 4 else 0
        if at == 0x58:
            return self.to_first.pop(0)
        return 2 | bool(self.to_first) if at == 0x50 else 0

    def write(self, _: Any, at: int, __: int, value: int, base: int) -> None:
        if base == SIO and at == 0x54:
            self.taken(value)
        elif at == 0x2004:
            self.off |= value
        elif at == 0x3004:
            self.off &= ~value
            self.resets += 1

    def taken(self, word: int) -> None:
        if self.garbles and len(self.words) == 3:
            self.garbles, self.words = self.garbles - 1, []
            self.to_first.append(0)
            return
        wanted = [0, 0, 1]
        known = len(self.words) >= 3 or word == wanted[len(self.words)]
        self.words = [*self.words, word] if known else []
        self.to_first.append(word if known else 0)


@pytest.mark.turns(3)
@pytest.mark.parametrize("board", ["pico", "pico2"])
@pytest.mark.parametrize("garbles", [0, 2])
def test_the_second_core_is_told_where_to_begin(board: str, garbles: int, tmp_path: Path) -> None:
    unicorn = pytest.importorskip("unicorn")
    arm = pytest.importorskip("unicorn.arm_const")
    data = MNIST / "calibration.npz"
    made = compile_model(Options(MNIST / "mnist.h5", board, "int8", calibrate=data, threads=2))
    assert made.board.firmware is not None
    with place(None) as where:
        program = build_program(made, where)
        image, symbols = program.with_suffix(".bin").read_bytes(), addresses(program, NAMES)
    cpu = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    cpu.ctl_set_cpu_model(arm.UC_CPU_ARM_CORTEX_M33)
    flash, ram = made.board.memory("flash"), made.board.memory("ram")
    cpu.mem_map(flash.origin, flash.length)
    cpu.mem_write(flash.origin, image)
    cpu.mem_map(ram.origin, ram.length)
    rom, psm = Rom(garbles), made.board.firmware.defines["NN_PSM_BASE"]
    for base in (SIO, psm):
        cpu.mmio_map(base, 0x4000, rom.read, base, rom.write, base)
    cpu.reg_write(arm.UC_ARM_REG_SP, ram.origin + ram.length - 64)
    cpu.reg_write(arm.UC_ARM_REG_R0, 1)
    cpu.reg_write(arm.UC_ARM_REG_R1, 1)
    cpu.reg_write(arm.UC_ARM_REG_LR, (flash.origin + 0x200) | 1)
    cpu.emu_start(symbols["nn_cores_port_start"] | 1, flash.origin + 0x200, count=200_000)
    vectors, stack, entry = rom.words[3:]
    assert rom.words[:3] == [0, 0, 1] and rom.resets == 1
    assert stack == symbols["nn_core_stacks_high"] and entry == symbols["nn_core_reset"] | 1
    assert vectors % 256 == 0
    assert struct.unpack("<II", cpu.mem_read(vectors, 8)) == (stack, entry)

"""Runs functions of a linked program in the emulator unicorn and counts their instructions, conditional ones that are
skipped among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import unicorn
from unicorn import arm_const

from nnbuild.bound.image import Image, read_image
from nnbuild.device.unicorn_board import instructions_in

BACK = 0x7FFF_F000
PAGE = 4096
INPUT, STATE = 0, 3
"""Kinds of memory that a program tells of itself (firmware/link/nn_target.h)."""
REGISTERS = [getattr(arm_const, f"UC_ARM_REG_R{number}") for number in range(13)]
SP, LR, PC, STATUS = (getattr(arm_const, f"UC_ARM_REG_{name}") for name in ("SP", "LR", "PC", "XPSR"))


def processor(image: Image) -> Any:
    """A Cortex-M4 with the program in its memory."""
    cpu: Any = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    cpu.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
    spans = [(region.start, region.end) for region in image.constant] + list(image.writable) + [(BACK, BACK + 2)]
    for page in sorted({page for start, end in spans for page in range(start // PAGE, -(-end // PAGE))}):
        cpu.mem_map(page * PAGE, PAGE)
    for region in image.constant:
        cpu.mem_write(region.start, region.data)
    return cpu


class Replay:
    def __init__(self, program: Path) -> None:
        self.image = read_image(program)
        self.cpu = processor(self.image)
        self.stack = self.image.symbol("nn_stack_high") or 0
        self._lengths: dict[tuple[int, int], int] = {}
        self._executed = 0
        self.cpu.hook_add(unicorn.UC_HOOK_BLOCK, self._count)

    def _count(self, cpu: Any, address: int, size: int, data: object) -> None:
        count = self._lengths.get((address, size))
        if count is None:
            count = self._lengths[address, size] = instructions_in(bytes(cpu.mem_read(address, size)))
        self._executed += count

    def call(self, name: str, *arguments: int, below: int = 0) -> int:
        """The instructions of one call."""
        for register, value in zip(REGISTERS, arguments, strict=False):
            self.cpu.reg_write(register, value)
        self.cpu.reg_write(SP, self.stack - below)
        self.cpu.reg_write(LR, BACK | 1)
        self._executed = 0
        self.cpu.emu_start(self.image.functions[name] | 1, BACK)
        return self._executed

    def region(self, kind: int, index: int) -> tuple[int, int] | None:
        """Address and size of an input or a state of the model; None where there is none of this number."""
        size_at = self.stack - 64
        self.cpu.mem_write(size_at, bytes(4))
        self.call("nn_target_region", kind, index, size_at, below=128)
        address = self.cpu.reg_read(REGISTERS[0])
        size = int.from_bytes(self.cpu.mem_read(size_at, 4), "little")
        return (address, size) if address else None

    def regions(self, kind: int) -> list[tuple[int, int]]:
        found = []
        while (region := self.region(kind, len(found))) is not None:
            found.append(region)
        return found

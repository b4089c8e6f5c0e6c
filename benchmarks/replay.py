"""Runs functions of a linked program in the emulator unicorn and counts their instructions, conditional ones that are
skipped among them."""

from __future__ import annotations

from pathlib import Path

from unicorn import UC_HOOK_BLOCK, arm_const

from nnbuild.bound.image import read_image
from nnbuild.cycles.clock import Processor
from nnbuild.device.unicorn_board import instructions_in

INPUT, STATE = 0, 3
"""Kinds of memory that a program tells of itself (firmware/link/nn_target.h)."""
REGISTERS = [getattr(arm_const, f"UC_ARM_REG_R{number}") for number in range(13)]
SP, LR, PC, STATUS = (getattr(arm_const, f"UC_ARM_REG_{name}") for name in ("SP", "LR", "PC", "XPSR"))


class Replay(Processor):
    def __init__(self, program: Path) -> None:
        super().__init__(read_image(program))
        self._lengths: dict[tuple[int, int], int] = {}
        self._executed = 0
        self.cpu.hook_add(UC_HOOK_BLOCK, self._count)

    def _count(self, cpu: object, address: int, size: int, data: object) -> None:
        count = self._lengths.get((address, size))
        if count is None:
            count = self._lengths[address, size] = instructions_in(bytes(self.cpu.mem_read(address, size)))
        self._executed += count

    def count(self, name: str, *arguments: int) -> int:
        """The instructions of one call."""
        self._executed = 0
        self.call(name, *arguments)
        return self._executed

    def region(self, kind: int, index: int) -> tuple[int, int] | None:
        """Address and size of an input or a state of the model; None where there is none of this number."""
        size_at = self.stack - 64
        self.cpu.mem_write(size_at, bytes(4))
        address = self.call("nn_target_region", kind, index, size_at, below=128)
        size = int.from_bytes(self.cpu.mem_read(size_at, 4), "little")
        return (address, size) if address else None

    def regions(self, kind: int) -> list[tuple[int, int]]:
        found = []
        while (region := self.region(kind, len(found))) is not None:
            found.append(region)
        return found

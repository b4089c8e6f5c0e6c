"""Where a simulated device lies in the memory map of an emulated processor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MappedDevice:
    """Its registers, the memory that both reach and the bytes of it, its interrupt, and the shared object that
    simulates it by the functions of firmware/include/nn_simulated.h."""

    registers: int
    memory: int
    bytes: int
    interrupt: int
    library: Path

    def option(self) -> str:
        """For a command line."""
        numbers = (self.registers, self.memory, self.bytes, self.interrupt)
        return ",".join([*(hex(number) for number in numbers), str(self.library)])

    @classmethod
    def parsed(cls, text: str) -> MappedDevice:
        *numbers, library = text.split(",", 4)
        registers, memory, size, interrupt = (int(number, 0) for number in numbers)
        return cls(registers, memory, size, interrupt, Path(library))

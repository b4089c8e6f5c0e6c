"""A simulated device in the memory map of an emulated processor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MappedDevice:
    """Address of its registers, address and size of the shared memory, interrupt number, and the shared object that
    simulates it through the functions of firmware/include/nn_simulated.h."""

    registers: int
    memory: int
    bytes: int
    interrupt: int
    library: Path

    def option(self) -> str:
        """The device as a command-line option."""
        numbers = (self.registers, self.memory, self.bytes, self.interrupt)
        return ",".join([*(hex(number) for number in numbers), str(self.library)])

    @classmethod
    def parsed(cls, text: str) -> MappedDevice:
        *numbers, library = text.split(",", 4)
        registers, memory, size, interrupt = (int(number, 0) for number in numbers)
        return cls(registers, memory, size, interrupt, Path(library))

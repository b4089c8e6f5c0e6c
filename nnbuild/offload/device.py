"""A device beside the processor: its memories, queue, operators, arithmetic, and Python file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nnbuild.model.graph import Array
from nnbuild.numeric.arithmetic import Arithmetic
from nnbuild.offload.task import Addresses, Task

HOLDS = ("constants", "tensors", "exchange")
"""What a memory may hold: packed weights, tensors that tasks compute on, and data that the processor reads and
writes."""


@dataclass(frozen=True)
class Memory:
    """`host`: whether the driver can read and write it. The driver is given `begin` plus the offset, tasks the offset
    alone. The first `reserved` bytes belong to the driver."""

    name: str
    begin: int
    size: int
    alignment: int
    host: bool
    holds: frozenset[str]
    reserved: int = 0


@dataclass(frozen=True)
class Operator:
    """One operation of a device: the engine that computes it, and the limits [least, largest] of its quantities.
    `arithmetic` is the device's own unless the operator has another."""

    name: str
    engine: str
    limits: Mapping[str, tuple[int, int]]
    arithmetic: Arithmetic


@dataclass(frozen=True)
class Driver:
    """C files that drive the device on some kinds of board; `stack` is the most stack that any of its functions takes,
    callees included. software: it computes the tasks itself, without a device. simulated: registers, shared memory, its
    bytes and the interrupt number of the device beside an emulated processor."""

    name: str
    boards: frozenset[str]
    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    stack: int
    software: bool = False
    simulated: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Copying:
    """Processor cycles for a copy by the driver, for submitting a task and for waiting."""

    setup: float
    bytes_per_cycle: float
    submit: float
    wait: float


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions of the device's Python file."""

    pack: Callable[[Task], bytes]
    describe: Callable[[Task, Addresses], bytes]
    cycles: Callable[[Task], float]
    compute: Callable[[Task, tuple[Array, ...]], tuple[Array, ...]]
    link: Callable[[str], list[str]] | None = None
    """What to link besides the driver of this name; built if needed."""
    simulated: Callable[[], Path] | None = None
    """Builds the shared object that simulates the device beside an emulated processor."""


@dataclass(frozen=True, eq=False)
class Device:
    """clock: processor cycles per device cycle. channels: alignment of pixels in bytes. depth: tasks in the queue.
    descriptor: bytes of a descriptor. margin: cycles that a deadline has beyond twice the estimate.
    """

    name: str
    summary: str
    file: Path
    memories: tuple[Memory, ...]
    operators: Mapping[str, Operator]
    arithmetic: Arithmetic
    drivers: tuple[Driver, ...]
    copying: Copying
    functions: Functions
    clock: float = 1.0
    channels: int = 1
    depth: int = 1
    descriptor: int = 64
    margin: int = 10_000
    overhead: float = 0.0
    """Device cycles between two consecutive tasks."""
    macs: int = 0
    """Most multiplications per cycle; 0 if the table does not say."""
    chosen: str | None = None
    """Name of the chosen driver."""

    def memory(self, use: str) -> Memory:
        return next(memory for memory in self.memories if use in memory.holds)

    @property
    def stages_tensors(self) -> bool:
        """Whether tasks load tensors from the memory that the processor reaches into the one they compute on."""
        return self.memory("tensors") is not self.memory("exchange")

    def driver(self) -> Driver | None:
        """The chosen driver; None where the program is for no board that has one."""
        return next((driver for driver in self.drivers if driver.name == self.chosen), None)

    def with_driver(self, kinds: frozenset[str]) -> Device:
        """The device with a driver for a board of these kinds: the requested one, or the first."""
        able = [driver.name for driver in self.drivers if kinds & driver.boards]
        return self if self.chosen is not None else replace(self, chosen=able[0] if able else None)

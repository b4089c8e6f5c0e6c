"""What a device beside the processor is: its memories, queue, operators, arithmetic, and the Python file beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nnbuild.model.graph import Array
from nnbuild.numeric.arithmetic import Arithmetic
from nnbuild.offload.task import Addresses, Task

HOLDS = ("constants", "tensors", "exchange")
"""What a memory may be for: packed weights, what tasks compute on, and what the processor reads and writes."""


@dataclass(frozen=True)
class Memory:
    """`host`: whether the driver's read and write reach it. They are told `begin` plus the place within; tasks are told
    the place within. The first `reserved` bytes belong to the driver."""

    name: str
    begin: int
    size: int
    alignment: int
    host: bool
    holds: frozenset[str]
    reserved: int = 0


@dataclass(frozen=True)
class Operator:
    """What a device takes of one operation: the engine that computes it, and the least and largest of every quantity
    that has limits. `arithmetic` is the device's own unless the operator has another."""

    name: str
    engine: str
    limits: Mapping[str, tuple[int, int]]
    arithmetic: Arithmetic


@dataclass(frozen=True)
class Driver:
    """C files that drive the device, of the programs of some kinds of board; `stack` is what any of its functions takes
    with all it calls. simulated: where the device lies beside an emulated processor: its registers, the memory that
    both reach, the bytes of it, the number of its interrupt."""

    name: str
    boards: frozenset[str]
    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    stack: int
    simulated: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Copying:
    """What the processor pays, in its own cycles: for a copy by the driver, and for handing over a task."""

    setup: float
    bytes_per_cycle: float
    submit: float
    wait: float


@dataclass(frozen=True, eq=False)
class Functions:
    """The device's Python file."""

    pack: Callable[[Task], bytes]
    describe: Callable[[Task, Addresses], bytes]
    cycles: Callable[[Task], float]
    compute: Callable[[Task, tuple[Array, ...]], tuple[Array, ...]]
    link: Callable[[str], list[str]] | None = None
    """What the program is linked with beside the driver of this name, made where it has to be."""
    simulated: Callable[[], Path] | None = None
    """Makes the shared object that simulates the device beside an emulated processor."""


@dataclass(frozen=True, eq=False)
class Device:
    """clock: cycles of the processor in one of the device. channels: pixels begin at multiples of so many bytes.
    depth: tasks in the queue. descriptor: bytes of one. margin: cycles that a deadline has beyond twice the estimate.
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
    """Cycles of the device between two tasks that follow each other."""
    macs: int = 0
    """The most multiplications that it does in a cycle; 0: the table does not say."""
    chosen: str | None = None
    """The driver's name."""

    def memory(self, use: str) -> Memory:
        return next(memory for memory in self.memories if use in memory.holds)

    @property
    def apart(self) -> bool:
        """Whether tasks bring tensors from the memory that the processor reaches to the one they compute on."""
        return self.memory("tensors") is not self.memory("exchange")

    def driver(self) -> Driver | None:
        """The one that is chosen; none where a program is printed for no board that has one."""
        return next((driver for driver in self.drivers if driver.name == self.chosen), None)

    def driven(self, output: str) -> Device:
        """With the driver for a kind of board: the one that was asked for, or the first."""
        able = [driver.name for driver in self.drivers if output in driver.boards]
        return self if self.chosen is not None else replace(self, chosen=able[0] if able else None)

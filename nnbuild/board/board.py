"""What a board is: how programs are compiled for it, which memory it has, how it is emulated and flashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.base.mapped_device import MappedDevice
from nnbuild.board.cores import CoreTable


@dataclass(frozen=True)
class Toolchain:
    """One way to compile for a board. `stack_flags` make the compiler say what the stack bound is computed from."""

    name: str
    command: tuple[str, ...]
    install: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    libraries: tuple[str, ...]
    stack_flags: tuple[str, ...]
    helper_stack: int
    """Bytes of stack that any function takes which this compiler calls by itself, with all it calls: it comes in a
    library that says nothing about frames. Held by a test."""


@dataclass(frozen=True)
class Memory:
    """One stretch of a part's memory; `flash` holds code and constants. `data` is where data of it is read, on
    parts that have one address for instructions and another one for data."""

    name: str
    origin: int
    length: int
    data: int | None = None

    def __contains__(self, address: int) -> bool:
        begins = (self.origin,) if self.data is None else (self.origin, self.data)
        return any(begin <= address < begin + self.length for begin in begins)


@dataclass(frozen=True)
class Firmware:
    """Which parts of firmware/ make up the program around a model. `defines` are numbers these parts ask for; a board
    of one's own may bring parts in a `folder` of the same layout, which outrank ours."""

    folder: Path | None
    architecture: str
    soc: str
    uart: str
    timer: str | None
    link_payload: int
    context_memory: tuple[str, ...]
    """Memories the model may work in, the best first."""
    defines: Mapping[str, int]


@dataclass(frozen=True)
class StandIn:
    """What nnbuild/device/unicorn_board.py must know to run the same image where the emulator is not installed: the
    addresses of the serial port and of the counter."""

    uart: int
    counter: int


@dataclass(frozen=True)
class Emulator:
    """`command` has places for {port} and {image}; what the board's counter shows is so many instructions a tick."""

    command: tuple[str, ...]
    install: str
    instructions_per_tick: float
    lacks: tuple[str, ...]
    """Memories that the part has and the emulator has not."""
    stand_in: StandIn | None


@dataclass(frozen=True)
class FlashTool:
    """A program that flashes and verifies; one without commands is our own client of the part's bootloader, over the
    port. The commands have places for {elf}, {hex}, {bin}, {address} and {size}. Those of a tool that does not verify
    write what the flash holds then to the file {read}, and we compare."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    install: str


@dataclass(frozen=True)
class Flash:
    """How a part is flashed, the best way first. `pages` are the sizes of its flash pages in order, where they are
    known: only those that are needed are erased then."""

    tools: tuple[FlashTool, ...]
    chip: int
    pages: tuple[int, ...]


@dataclass(frozen=True)
class FlashSpeed:
    """How flash answers at the clock the board runs at. wait: cycles a read waits beyond its own. read: bytes that one
    brings. line: bytes of a cache line, which is filled read by read. code_lines, data_lines: how many lines the caches
    of code and of data hold. prefetch: whether what follows the code that is read is read ahead. error: by how many
    percent a model of it may be below and above the part."""

    wait: int = 0
    read: int = 16
    line: int = 16
    code_lines: int = 0
    data_lines: int = 0
    prefetch: bool = False
    error: tuple[float, float] = (0, 0)


STANDARD_RATES = (115_200, 230_400, 460_800, 921_600, 1_000_000, 1_500_000, 2_000_000)
MAX_RATE_ERROR = 0.02
"""What a byte of ten bits still bears when both ends err."""


@dataclass(frozen=True)
class RateClock:
    """Which rates a serial port can make: its clock by a whole number from `least` to `most`; or, where `step` is
    given, a whole number of such steps. None is faster than `fastest`."""

    hertz: float
    least: int
    most: int
    step: float | None
    fastest: int

    def nearest(self, baud: int) -> float:
        """What comes out when this rate is asked for, rounded as the firmware does it."""
        wanted = min(baud, self.fastest)
        if self.step is not None:
            return int(wanted / self.step + 0.5) * self.step
        return self.hertz / min(max(int(self.hertz / wanted + 0.5), self.least), self.most)

    def makes(self, baud: int) -> bool:
        return abs(self.nearest(baud) / baud - 1) <= MAX_RATE_ERROR


@dataclass(frozen=True)
class Board:
    """`isa` is the instruction set that kernels are printed for where the user names none, `features` is what they
    may need beyond it; `table` is all that the file says."""

    name: str
    summary: str
    aliases: tuple[str, ...]
    tested_on: str
    output: str
    architecture: str
    isa: str
    features: frozenset[str]
    alignment: int
    toolchains: tuple[Toolchain, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    audit_policy: str
    stack_budget: int | None
    instruction_budget: int | None
    """The most that a run may execute, for every input."""
    core: str | None
    """The processor, where bounds can be proved of its programs and their cycles be told."""
    multiplier: int
    """Cycles of a multiplication where makers of parts choose them."""
    flash_speed: FlashSpeed
    cores: CoreTable
    memories: tuple[Memory, ...]
    code_memory: str | None
    """Where the model's code is copied when the program starts; None where it stays in flash."""
    firmware: Firmware | None
    emulator: Emulator | None
    flash: Flash | None
    baud: int
    rates: RateClock | None
    table: Mapping[str, Any]
    file: Path
    """Where the table stands."""
    tables: tuple[Path, ...] = ()
    """That file, and those of the tables it extends."""
    driver_stack: int | None = None
    mapped: Callable[[], MappedDevice] | None = None
    """The simulated device that an emulator puts beside the processor, made when it is asked for."""
    """Bytes of stack that any function of a device's driver takes, where there is a device beside the processor."""

    def memory(self, name: str) -> Memory:
        return next(memory for memory in self.memories if memory.name == name)


def with_baud(board: Board, baud: int | None) -> Board:
    """The board with another line rate than its table's, if its serial port can make that."""
    if baud is None:
        return board
    rates = board.rates
    if rates is None:
        raise UsageError(
            f"board {board.name!r}", "it runs on this PC and has no line rate.", "Leave out the baud rate."
        )
    fitting = ", ".join(f"{rate:,}" for rate in STANDARD_RATES if rates.makes(rate))
    if not STANDARD_RATES[0] <= baud <= STANDARD_RATES[-1]:
        cause = f"{baud:,} baud is none of the rates from {STANDARD_RATES[0]:,} to {STANDARD_RATES[-1]:,}."
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {fitting}.")
    if not rates.makes(baud):
        found = rates.nearest(baud)
        off = f"{100 * abs(found / baud - 1):.1f} % off; {100 * MAX_RATE_ERROR:g} % is what a line bears."
        cause = f"its serial port makes {found:,.0f} baud of {baud:,}, {off}"
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {fitting}.")
    return replace(board, baud=baud)


def with_instruction_budget(board: Board, most: int | None) -> Board:
    """The board with another budget of instructions than its table's."""
    return board if most is None else replace(board, instruction_budget=most)


def with_context_memory(board: Board, name: str | None) -> Board:
    """The board with a model's memory in the one that is named. Where none is, in one that its emulator has, too: the
    same program is then checked in the emulator and flashed."""
    part = board.firmware
    known = part.context_memory if part is not None else ()
    if name is not None and name not in known:
        step = f"Take one of {', '.join(known)}." if known else "Leave the memory out."
        raise UsageError(f"board {board.name!r}", f"a model cannot work in a memory {name!r} there.", step)
    if part is None:
        return board
    lacks = board.emulator.lacks if board.emulator is not None else ()
    chosen = (name,) if name is not None else tuple(each for each in known if each not in lacks)
    return replace(board, firmware=replace(part, context_memory=chosen))

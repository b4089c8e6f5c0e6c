"""A board: how programs are compiled for it, its memories, how it is emulated and flashed."""

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
    """One way to compile for a board. `stack_flags` make the compiler emit what the stack bound is computed from."""

    name: str
    command: tuple[str, ...]
    install: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    libraries: tuple[str, ...]
    stack_flags: tuple[str, ...]
    helper_stack: int
    """Most stack of any function that this compiler calls implicitly, callees included: its library carries no frame
    sizes. A test checks it."""


@dataclass(frozen=True)
class Memory:
    """One region of a part's memory; `flash` holds code and constants. `data` is its address for data accesses, on
    parts that have different addresses for instructions and data."""

    name: str
    origin: int
    length: int
    data: int | None = None

    def __contains__(self, address: int) -> bool:
        begins = (self.origin,) if self.data is None else (self.origin, self.data)
        return any(begin <= address < begin + self.length for begin in begins)


@dataclass(frozen=True)
class Firmware:
    """The parts of firmware/ that form the program around a model. `defines` are numbers these parts require; a user's
    board may bring parts in a `folder` of the same layout, which take precedence."""

    folder: Path | None
    architecture: str
    soc: str
    uart: str
    timer: str | None
    link_payload: int
    context_memory: tuple[str, ...]
    """Memories that may hold the model's context, best first."""
    defines: Mapping[str, int]


@dataclass(frozen=True)
class StandIn:
    """What nnbuild/device/unicorn_board.py needs to run the same image where the emulator is not installed: addresses
    of the serial port and of the counter."""

    uart: int
    counter: int


@dataclass(frozen=True)
class Emulator:
    """`command` has placeholders {port} and {image}; a tick of the board's counter is `instructions_per_tick`
    instructions."""

    command: tuple[str, ...]
    install: str
    instructions_per_tick: float
    lacks: tuple[str, ...]
    """Memories of the part that the emulator lacks."""
    stand_in: StandIn | None


@dataclass(frozen=True)
class FlashTool:
    """A program that flashes and verifies; one without commands is nnbuild's own client of the part's bootloader, over
    the port. The commands have placeholders {elf}, {hex}, {bin}, {address} and {size}. A tool that cannot verify dumps
    the flash to the file {read}, and nnbuild compares."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    install: str


@dataclass(frozen=True)
class Flash:
    """How a part is flashed, best tool first. `pages` are the sizes of its flash pages in order, if known: then only
    the needed ones are erased."""

    tools: tuple[FlashTool, ...]
    chip: int
    pages: tuple[int, ...]


@dataclass(frozen=True)
class FlashSpeed:
    """Flash timing at the board's clock. wait: wait cycles per read. read: bytes per read. line: bytes of a cache line,
    which is filled read by read. code_lines, data_lines: lines of the code and data caches. prefetch: whether code is
    read ahead. error: by how many percent a model of it may be below and above the part."""

    wait: int = 0
    read: int = 16
    line: int = 16
    code_lines: int = 0
    data_lines: int = 0
    prefetch: bool = False
    error: tuple[float, float] = (0, 0)


STANDARD_RATES = (115_200, 230_400, 460_800, 921_600, 1_000_000, 1_500_000, 2_000_000)
MAX_RATE_ERROR = 0.02
"""Largest deviation at which a 10-bit frame is still received when both ends deviate."""


@dataclass(frozen=True)
class RateClock:
    """The rates of a serial port: its clock divided by an integer from `least` to `most` or, if `step` is given, a
    multiple of that step. None is faster than `fastest`."""

    hertz: float
    least: int
    most: int
    step: float | None
    fastest: int

    def nearest(self, baud: int) -> float:
        """The actual rate for a requested one, rounded as the firmware does."""
        wanted = min(baud, self.fastest)
        if self.step is not None:
            return int(wanted / self.step + 0.5) * self.step
        return self.hertz / min(max(int(self.hertz / wanted + 0.5), self.least), self.most)

    def makes(self, baud: int) -> bool:
        return abs(self.nearest(baud) / baud - 1) <= MAX_RATE_ERROR


@dataclass(frozen=True)
class Board:
    """`isa` is the default instruction set of kernels, `features` what they may need beyond it; `table` is the whole
    table."""

    name: str
    summary: str
    aliases: tuple[str, ...]
    tested_on: str
    output: str
    architecture: str
    isa: str
    big_endian: bool
    features: frozenset[str]
    alignment: int
    toolchains: tuple[Toolchain, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    audit_policy: str
    stack_budget: int | None
    instruction_budget: int | None
    """Most instructions of a run, for every input."""
    core: str | None
    """The processor, if instruction bounds and cycles of its programs can be computed."""
    multiplier: int
    """Cycles of a multiplication, on cores where the vendor chooses them."""
    float_operation: int
    """Instructions of an addition or multiplication of floats: 1, or many where the compiler's library computes it."""
    wide_product: int
    """Instructions of a product of 64 bits: 1, or many where the compiler's library computes it."""
    flash_speed: FlashSpeed
    cores: CoreTable
    memories: tuple[Memory, ...]
    code_memory: str | None
    """Memory that the model's code is copied to at start-up; None where it stays in flash."""
    firmware: Firmware | None
    emulator: Emulator | None
    flash: Flash | None
    baud: int
    rates: RateClock | None
    table: Mapping[str, Any]
    file: Path
    """The table's file."""
    tables: tuple[Path, ...] = ()
    """That file, and those of the tables it extends."""
    driver_stack: int | None = None
    """Most stack of any function of a device's driver, where there is a device beside the processor."""
    mapped: Callable[[], MappedDevice] | None = None
    """Makes the simulated device of the emulator when it is needed."""
    real_device: str = ""
    """The driver of a device beside the processor that nothing simulates."""

    @property
    def kinds(self) -> frozenset[str]:
        """What a device's driver may say that it serves."""
        return frozenset({self.output, *(["native"] if self.architecture == "native" else [])})

    def memory(self, name: str) -> Memory:
        return next(memory for memory in self.memories if memory.name == name)


def with_baud(board: Board, baud: int | None) -> Board:
    """The board with another serial rate, if its port supports that."""
    if baud is None:
        return board
    rates = board.rates
    if rates is None:
        raise UsageError(
            f"board {board.name!r}", "it runs on this PC and has no serial rate.", "Leave out the baud rate."
        )
    fitting = ", ".join(f"{rate:,}" for rate in STANDARD_RATES if rates.makes(rate))
    if not STANDARD_RATES[0] <= baud <= STANDARD_RATES[-1]:
        cause = f"{baud:,} baud is not between {STANDARD_RATES[0]:,} and {STANDARD_RATES[-1]:,}."
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {fitting}.")
    if not rates.makes(baud):
        found = rates.nearest(baud)
        off = f"{100 * abs(found / baud - 1):.1f} % off; at most {100 * MAX_RATE_ERROR:g} % is tolerable."
        cause = f"its serial port runs at {found:,.0f} baud instead of {baud:,}, {off}"
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {fitting}.")
    return replace(board, baud=baud)


def with_instruction_budget(board: Board, most: int | None) -> Board:
    """The board with another instruction budget."""
    return board if most is None else replace(board, instruction_budget=most)


def with_context_memory(board: Board, name: str | None) -> Board:
    """The board with the model's context in the named memory. By default one that its emulator has, too, so that the
    checked program is the flashed one."""
    part = board.firmware
    known = part.context_memory if part is not None else ()
    if name is not None and name not in known:
        step = f"Take one of {', '.join(known)}." if known else "Leave the memory out."
        raise UsageError(f"board {board.name!r}", f"a model cannot use a memory {name!r} there.", step)
    if part is None:
        return board
    lacks = board.emulator.lacks if board.emulator is not None else ()
    chosen = (name,) if name is not None else tuple(each for each in known if each not in lacks)
    return replace(board, firmware=replace(part, context_memory=chosen))

"""Boards are tables: reads boards/<name>/board.toml."""

from __future__ import annotations

import difflib
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nnbuild.errors import UsageError
from nnbuild.paths import BOARDS

FLASH_PLACES = ("elf", "hex", "bin", "address", "size", "read")
"""What is put into a flash tool's commands when they run."""
OWN = ("abstract", "aliases", "summary", "tested_on")
"""What a board never inherits from the one it extends."""


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
    """One stretch of a part's memory; `flash` holds code and constants."""

    name: str
    origin: int
    length: int

    def __contains__(self, address: int) -> bool:
        return self.origin <= address < self.origin + self.length


@dataclass(frozen=True)
class Firmware:
    """Which parts of firmware/ make up the program around a model. `defines` are numbers these parts ask for."""

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


STANDARD_RATES = (115_200, 230_400, 460_800, 921_600, 1_000_000, 1_500_000, 2_000_000)
FARTHEST_OFF = 0.02
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
        return abs(self.nearest(baud) / baud - 1) <= FARTHEST_OFF


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
    memories: tuple[Memory, ...]
    firmware: Firmware | None
    emulator: Emulator | None
    flash: Flash | None
    baud: int
    rates: RateClock | None
    table: Mapping[str, Any]

    def memory(self, name: str) -> Memory:
        return next(memory for memory in self.memories if memory.name == name)


def boards(folder: Path = BOARDS) -> tuple[Board, ...]:
    """All boards; a table that says `abstract` is only there to be extended."""
    names = [path.parent.name for path in sorted(folder.glob("*/board.toml"))]
    tables = {name: _whole_table(name, folder) for name in names}
    return tuple(_read(name, table) for name, table in tables.items() if not table.get("abstract"))


def find(name: str, folder: Path = BOARDS) -> Board:
    """The board of this name or alias."""
    known = boards(folder)
    for board in known:
        if name == board.name or name in board.aliases:
            return board
    names = [word for board in known for word in (board.name, *board.aliases)]
    near = difflib.get_close_matches(name, names, 3, 0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"board {name!r}", "there is no such board.", f"{hint}All boards: nnbuild boards")


def at_rate(board: Board, baud: int | None) -> Board:
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
        off = f"{100 * abs(found / baud - 1):.1f} % off; {100 * FARTHEST_OFF:g} % is what a line bears."
        cause = f"its serial port makes {found:,.0f} baud of {baud:,}, {off}"
        raise UsageError(f"board {board.name!r}", cause, f"Take one of {fitting}.")
    return replace(board, baud=baud)


def in_memory(board: Board, name: str | None) -> Board:
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


def _rates(table: Mapping[str, Any]) -> RateClock:
    return RateClock(
        hertz=table["clock"],
        least=table.get("least", 1),
        most=table.get("most", 65_535),
        step=table.get("step"),
        fastest=table.get("fastest", STANDARD_RATES[-1]),
    )


def _read(name: str, table: Mapping[str, Any]) -> Board:
    try:
        build, audit = table["build"], table["audit"]
        return Board(
            name=name,
            summary=table["summary"],
            aliases=tuple(table.get("aliases", ())),
            tested_on=table["tested_on"],
            output=table["output"],
            architecture=table["architecture"],
            isa=table["isa"],
            features=frozenset(table["features"]),
            alignment=table["alignment"],
            toolchains=tuple(_toolchain(entry, table.get("cpu", {})) for entry in table["toolchains"]),
            flags=tuple(build["flags"]),
            link_flags=tuple(build["link_flags"]),
            audit_policy=audit["policy"],
            stack_budget=audit.get("stack"),
            memories=tuple(Memory(key, m["origin"], m["length"]) for key, m in table.get("memory", {}).items()),
            firmware=_firmware(table["firmware"]) if "firmware" in table else None,
            emulator=_emulator(table.get("emulator", {})),
            flash=_flash(table["flash"]) if "tools" in table.get("flash", {}) else None,
            baud=table.get("serial", {}).get("baud", STANDARD_RATES[0]),
            rates=_rates(table["serial"]) if "serial" in table else None,
            table=table,
        )
    except KeyError as missing:
        raise UsageError(
            f"board {name!r}",
            f"its board.toml does not say {missing}.",
            "Compare it with that of a board that is like it, in boards/.",
        ) from None


def _toolchain(entry: Mapping[str, Any], cpu: Mapping[str, Any]) -> Toolchain:
    """`cpu` says, for each toolchain, how it calls the board's processor, and under `link` what the linker needs."""
    return Toolchain(
        name=entry["name"],
        command=tuple(word.format(python=sys.executable) for word in entry["command"]),
        install=entry["install"],
        flags=(*entry.get("flags", ()), *cpu.get(entry["name"], ())),
        link_flags=(*entry.get("link_flags", ()), *cpu.get("link", {}).get(entry["name"], ())),
        libraries=tuple(entry.get("libraries", ())),
        stack_flags=tuple(entry["stack_flags"]),
        helper_stack=entry.get("helper_stack", 0),
    )


def _firmware(table: Mapping[str, Any]) -> Firmware:
    return Firmware(
        architecture=table["architecture"],
        soc=table["soc"],
        uart=table["uart"],
        timer=table.get("timer"),
        link_payload=table["link_payload"],
        context_memory=tuple(table["context_memory"]),
        defines=table.get("defines", {}),
    )


def _emulator(table: Mapping[str, Any]) -> Emulator | None:
    """None for a board that no emulator has: its family may still say how one would be started."""
    if "instructions_per_tick" not in table:
        return None
    fill = {"machine": table.get("machine", ""), "port": "{port}", "image": "{image}"}
    command = tuple(word.format(**fill) for word in table["command"])
    unicorn = table.get("unicorn")
    stand_in = StandIn(unicorn["uart"], unicorn["counter"]) if unicorn is not None else None
    lacks = tuple(table.get("lacks", ()))
    return Emulator(command, table["install"], table["instructions_per_tick"], lacks, stand_in)


def _flash(table: Mapping[str, Any]) -> Flash:
    """`names` is what each tool calls the part; its family says how the tool is called."""
    names = {name: str(word) for name, word in table["names"].items()}
    return Flash(
        tools=tuple(_flash_tool(name, table["tool"][name], names) for name in table["tools"]),
        chip=table["chip"],
        pages=tuple(size for count, size in table.get("pages", ()) for _ in range(count)),
    )


def _flash_tool(name: str, table: Mapping[str, Any], names: Mapping[str, str]) -> FlashTool:
    later = {word: f"{{{word}}}" for word in FLASH_PLACES}
    part = {"part": names[name]} if name in names else {}
    commands = tuple(tuple(word.format(**later, **part) for word in command) for command in table["commands"])
    return FlashTool(name, commands, table["install"])


def _whole_table(name: str, folder: Path) -> dict[str, Any]:
    """The board's own table over the one it extends."""
    try:
        own = tomllib.loads((folder / name / "board.toml").read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"board {name!r}", f"its board.toml is no TOML: {error}.", "Mend that line.") from None
    except FileNotFoundError:
        raise UsageError(f"board {name!r}", "a board extends it, but it is not there.", "Mend that name.") from None
    base = own.pop("extends", None)
    if base is None:
        return own
    inherited = _whole_table(base, folder)
    return _merged({key: value for key, value in inherited.items() if key not in OWN}, own)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        result[key] = _merged(base[key], value) if both else value
    return result

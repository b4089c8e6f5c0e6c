"""Reads boards from their tables, each merged over the one that it extends."""

from __future__ import annotations

import difflib
import posixpath
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import BOARDS
from nnbuild.board.board import (
    STANDARD_RATES,
    Board,
    Emulator,
    Firmware,
    Flash,
    FlashSpeed,
    FlashTool,
    Memory,
    RateClock,
    StandIn,
    Toolchain,
)
from nnbuild.board.consistency import contradictions
from nnbuild.board.cores import CoreKind, core_table
from nnbuild.board.fields import expect_fields
from nnbuild.board.search_path import PROJECT_FOLDER as OWN_FOLDER
from nnbuild.board.search_path import Survey, is_file, is_ours, name_of, refuse_taken_name, siblings, survey

FLASH_PLACES = ("elf", "hex", "bin", "address", "size", "read")
"""Placeholders of a flash tool's commands."""
EMULATOR_PLACES = ("port", "image", "plugin", "counter", "cores")
"""Placeholders of an emulator's command."""
CODE = "code"
"""The key of [memory] that names one of the memories."""
NOT_INHERITED = ("abstract", "aliases", "summary", "tested_on")
"""Fields that a board does not inherit."""


def boards() -> tuple[Board, ...]:
    """All boards; `abstract` tables only serve to be extended."""
    return _all_boards()[0]


def strays() -> tuple[tuple[Path, UsageError], ...]:
    """Files among the user's tables that cannot be read as boards."""
    return _all_boards()[1]


def _all_boards() -> tuple[tuple[Board, ...], tuple[tuple[Path, UsageError], ...]]:
    """A user's broken table does not affect other boards."""
    there = survey()
    wrong = list(there.strays)
    found = []
    for file in there.files.values():
        try:
            board = _read_if_board(file, there)
        except UsageError as error:
            if BOARDS in file.parents:
                raise
            wrong.append((file, error))
            continue
        if board is not None:
            found.append(board)
    return tuple(sorted(found, key=lambda board: board.name)), tuple(wrong)


LISTED = 4
"""Boards named in the place of a family."""


def find(name: str) -> Board:
    """The board of this name, alias or file. A user's board is checked for contradictions."""
    board = find_unchecked(name)
    return board if BOARDS in board.file.parents else check_consistency(board)


def find_unchecked(name: str) -> Board:
    """The same without that check."""
    if is_file(name):
        return _of_file(Path(name))
    there = survey()
    there.refuse_stray(name)
    file = there.files.get(name)
    named = _read_if_board(file, there) if file is not None else None
    known = boards() if named is None else (named,)
    for board in known:
        if name == board.name or name in board.aliases:
            return board
    names = [word for board in known for word in (board.name, *board.aliases)]
    if like := _boards_like(name, there):
        cause, hint = "that is a family of boards, not a board.", f"Some of it: {', '.join(like)}. "
    else:
        close = difflib.get_close_matches(name, names, 3, 0.4)
        cause, hint = "there is no such board.", f"Did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(f"board {name!r}", cause, f"{hint}All boards: nnbuild boards")


def _boards_like(name: str, there: Survey) -> list[str]:
    """Some boards of the family with this name, such as cortex-m4 or Cortex-M4F; emulated ones, which need no hardware,
    come first."""
    named = (_letters(name), f"{_letters(name)}f")
    families = {family for family in there.files if _letters(family) in named}
    found = [board for board in boards() if families & {name_of(file) for file in _lineage(board.file, there)}]
    return [board.name for board in sorted(found, key=lambda board: board.emulator is None)[:LISTED]]


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _read_if_board(file: Path, known: Survey) -> Board | None:
    """None for a family, which only serves to be extended."""
    tables = _lineage(file, known)
    return None if tables[file].get("abstract") is True else _read(file, tables)


def _of_file(file: Path) -> Board:
    if not file.is_file():
        step = "Check its name; 'nnbuild board new NAME --like BOARD' writes one."
        raise UsageError(f"board {str(file)!r}", "there is no such file.", step)
    there = survey()
    board = _read_if_board(file, Survey({**there.files, **siblings(file)}, there.strays))
    if board is None:
        step = "Name a board that extends it."
        raise UsageError(f"board {str(file)!r}", "it is a family of boards, not a board.", step)
    return board


def with_core(board: Board, kind: CoreKind) -> Board:
    """The board as seen by programs on such a core."""
    toolchains = tuple(_toolchain(entry, kind.cpu) for entry in board.table["toolchains"])
    return replace(board, isa=kind.isa, features=kind.features, toolchains=toolchains)


def check_consistency(board: Board) -> Board:
    """Returns the board, or raises its gravest contradiction."""
    found = contradictions(board)
    if found:
        step = f"Correct {board.file}; 'nnbuild board check {board.file}' lists all contradictions."
        raise UsageError(f"board {board.name!r}", found[0], step)
    return board


def _rates(table: Mapping[str, Any]) -> RateClock:
    return RateClock(
        hertz=table["clock"],
        least=table.get("least", 1),
        most=table.get("most", 65_535),
        step=table.get("step"),
        fastest=table.get("fastest", STANDARD_RATES[-1]),
    )


def _read(file: Path, tables: Mapping[Path, Mapping[str, Any]]) -> Board:
    name, table = name_of(file), _whole(tables)
    expect_fields(name, table)
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
            big_endian=table.get("byte_order") == "big",
            features=frozenset(table["features"]),
            alignment=table["alignment"],
            toolchains=tuple(_toolchain(entry, table.get("cpu", {})) for entry in table["toolchains"]),
            flags=tuple(build["flags"]),
            link_flags=tuple(build["link_flags"]),
            audit_policy=audit["policy"],
            stack_budget=audit.get("stack"),
            instruction_budget=_budget(name, audit.get("instructions")),
            core=table.get("cpu", {}).get("core"),
            multiplier=table.get("cpu", {}).get("multiplier", 1),
            float_operation=table.get("cpu", {}).get("float_operation", 1),
            wide_product=table.get("cpu", {}).get("wide_product", 1),
            flash_speed=_flash_speed(name, table.get("flash", {}).get("speed", {})),
            cores=core_table(name, table.get("cores", {})),
            memories=tuple(
                Memory(key, each["origin"], each["length"], each.get("data"))
                for key, each in table.get("memory", {}).items()
                if key != CODE
            ),
            code_memory=table.get("memory", {}).get(CODE),
            firmware=_firmware(table["firmware"], file.parent) if "firmware" in table else None,
            emulator=_emulator(table.get("emulator", {})),
            flash=_flash(table["flash"]) if "tools" in table.get("flash", {}) else None,
            baud=table.get("serial", {}).get("baud", STANDARD_RATES[0]),
            rates=_rates(table["serial"]) if "serial" in table else None,
            table=table,
            file=file,
            tables=tuple(tables),
        )
    except KeyError as missing:
        raise UsageError(
            f"board {name!r}",
            f"its {file.name} does not define {missing}.",
            "Compare it with that of a similar board in boards/.",
        ) from None


def _budget(name: str, value: Any) -> int | None:
    if value is None or (type(value) is int and value > 0):
        return value
    cause = f"its [audit] instructions = {value!r} is not a number of instructions."
    raise UsageError(f"board {name!r}", cause, "Write an integer above 0, as in instructions = 3_000_000.")


MINIMUMS = {"wait": 0, "read": 4, "line": 4, "code_lines": 0, "data_lines": 0, "prefetch": 0, "error": 0}
"""Keys of [flash.speed], and their minimums."""


def _flash_speed(name: str, table: Mapping[str, Any]) -> FlashSpeed:
    for key, value in table.items():
        least = MINIMUMS.get(key)
        if least is None:
            raise UsageError(f"board {name!r}", f"its [flash.speed] has no {key}.", f"Write {', '.join(MINIMUMS)}.")
        right = type(value) is bool if key == "prefetch" else type(value) is int and value >= least
        if key == "error":
            right = isinstance(value, list) and len(value) == 2 and all(type(each) in (int, float) for each in value)
        if not right:
            step = "Write it as a similar board in boards/ does."
            raise UsageError(f"board {name!r}", f"its [flash.speed] {key} = {value!r} is not valid.", step)
    given: dict[str, Any] = {key: tuple(value) if key == "error" else value for key, value in table.items()}
    speed = FlashSpeed(**given)
    if speed.line % speed.read:
        cause = f"its flash lines of {speed.line} bytes are not a multiple of reads of {speed.read}."
        raise UsageError(f"board {name!r}", cause, "Make [flash.speed] line a multiple of read.")
    return speed


def _toolchain(entry: Mapping[str, Any], cpu: Mapping[str, Any]) -> Toolchain:
    """`cpu` holds each toolchain's flags for the board's processor, and under `link` its linker flags."""
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


def _firmware(table: Mapping[str, Any], folder: Path) -> Firmware:
    return Firmware(
        folder=folder / table["folder"] if "folder" in table else None,
        architecture=table["architecture"],
        soc=table["soc"],
        uart=table["uart"],
        timer=table.get("timer"),
        link_payload=table["link_payload"],
        context_memory=tuple(table["context_memory"]),
        defines=table.get("defines", {}),
    )


def _emulator(table: Mapping[str, Any]) -> Emulator | None:
    """None for a board without an emulator; its family may still define the command."""
    if "instructions_per_tick" not in table:
        return None
    later = {word: f"{{{word}}}" for word in EMULATOR_PLACES}
    fill = {"machine": table.get("machine", ""), **later}
    command = tuple(word.format(**fill) for word in table["command"])
    unicorn = table.get("unicorn")
    stand_in = StandIn(unicorn["uart"], unicorn["counter"]) if unicorn is not None else None
    lacks = tuple(table.get("lacks", ()))
    return Emulator(command, table["install"], table["instructions_per_tick"], lacks, stand_in)


def _flash(table: Mapping[str, Any]) -> Flash:
    """`names` is each tool's name of the part; the family defines how the tool is called."""
    if "names" not in table:
        raise KeyError("[flash.names]")
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


def _lineage(file: Path, known: Survey) -> dict[Path, dict[str, Any]]:
    """The table, then the one that it extends, and so on."""
    where, found = f"board {name_of(file)!r}", dict[Path, dict[str, Any]]()
    while True:
        own = found[file] = _own_table(where, file)
        base = own.pop("extends", None)
        if base is None:
            return found
        if not isinstance(base, str) or base not in known.files:
            close = difflib.get_close_matches(str(base), known.files, 1, 0.4)
            step = f"Did you mean {close[0]}?" if close else "Correct that name."
            raise UsageError(where, f"it extends {base!r}, which does not exist.", step)
        if known.files[base] in found:
            raise UsageError(where, f"it extends {base!r}, which extends it in turn.", "Break the circle.")
        if is_ours(known.files[base]) and not is_ours(file):
            known.refuse_stray(base)
        file = known.files[base]
        where = f"board {name_of(file)!r}"


@cache
def _parsed(text: str) -> Mapping[str, Any]:
    """Cached: many boards extend the same family."""
    return tomllib.loads(text)


def _own_table(where: str, file: Path) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8")
        found = dict(_parsed(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(where, f"{file} is not valid TOML: {error}.", "Correct that line.") from None
    except OSError as error:
        raise UsageError(where, f"{file} cannot be read ({error.strerror}).", "Check the file.") from None
    if not found:
        what = "says nothing but comments" if text.strip() else "is empty"
        raise UsageError(where, f"{file} {what}.", "'nnbuild board new NAME --like BOARD' writes one to start from.")
    return found


def _whole(tables: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """The board's own table merged over those it extends."""
    own, *bases = tables.values()
    result: dict[str, Any] = {}
    for base in reversed(bases):
        result = _merged(result, {key: value for key, value in base.items() if key not in NOT_INHERITED})
    return _merged(result, dict(own))


def user_files(board: Board) -> dict[str, bytes]:
    """The files of a user's board, as they are placed in a project: its table, the user's tables that it extends, and
    the firmware parts they bring. Empty for boards that come with nnbuild or a package."""
    tables = [file for file in board.tables if not is_ours(file)]
    if not tables or is_ours(board.file):
        return {}
    found: dict[str, bytes] = {}
    for file in tables:
        refuse_taken_name(file)
        nested = f"{name_of(file)}/" if file.name == "board.toml" else ""
        found[f"{OWN_FOLDER}/{nested}{file.name}"] = file.read_bytes()
    folder = board.table.get("firmware", {}).get("folder")
    if folder is not None and not Path(folder).is_absolute():
        nested = f"{board.name}/" if board.file.name == "board.toml" else ""
        inside = posixpath.normpath(f"{OWN_FOLDER}/{nested}{folder}")
        if inside.split("/")[0] != OWN_FOLDER or inside == OWN_FOLDER:
            cause = f"its [firmware] folder = {folder!r} is not below its table, and would lie outside the project."
            raise UsageError(f"board {board.name!r}", cause, "Put that folder beside the table.")
        source = board.file.parent / folder
        for each in sorted(path for path in source.rglob("*") if path.is_file()):
            found[f"{inside}/{each.relative_to(source).as_posix()}"] = each.read_bytes()
    return found


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        result[key] = _merged(base[key], value) if both else value
    return result

"""nnbuild board: creates a table for a user's board, and checks tables for contradictions."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.files import make_folder, write_whole
from nnbuild.base.sanitize import escape_name, printable
from nnbuild.board.board import Board
from nnbuild.board.consistency import contradictions, parts
from nnbuild.board.search_path import NAME, PROJECT_FOLDER, files, is_ours, name_of, refuse_taken_name
from nnbuild.board.tables import boards, find, find_unchecked, strays
from nnbuild.cli.arguments import print_json

NESTED = True
TO_MEND = """\
# A board of your own, copied from {like}. Values not given here come from the table that it extends.
# Change what differs, then: nnbuild board check {file}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    new = commands.add_parser("new", help="write a table for a board that is like another")
    new.add_argument("name", metavar="NAME", help="the board's name, or the file to write, NAME.toml")
    new.add_argument("--like", required=True, metavar="BOARD", help="the board to start from")
    check = commands.add_parser("check", help="check tables against their parts' clocks, ports and memories")
    check.add_argument("boards", nargs="*", metavar="BOARD", help="names or files (default: all boards)")
    check.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    return _new(arguments.name, arguments.like) if arguments.what == "new" else _check(arguments)


def _new(name: str, like: str) -> int:
    if not name.endswith(".toml") and not NAME.fullmatch(name):
        step = "Give such a name, or the file to write, FOLDER/NAME.toml."
        raise UsageError(f"board {name!r}", "a board's name has only letters, digits, '-' and '_'.", step)
    file = Path(name) if name.endswith(".toml") else Path(PROJECT_FOLDER) / f"{name}.toml"
    known = {**{alias: each.file for each in boards() for alias in each.aliases}, **files()}
    if name_of(file) in known:
        step = "Choose another name."
        raise UsageError(f"board {name_of(file)!r}", f"a board of this name exists: {known[name_of(file)]}.", step)
    if file.exists():
        raise UsageError(str(file), "it already exists.", "Give another file, or remove this one.")
    make_folder(file.parent)
    write_whole(file, _table(find(like), file).encode())
    print(f"{file}: like {like}; part may be one of {', '.join(parts())}")
    return 0


def _table(like: Board, file: Path) -> str:
    """A copy of the other board's table under a new name, without its aliases and marked as untested."""
    text = like.file.read_text("utf-8")
    text = re.sub(r"(?m)^aliases = .*\n", "", text)
    text = re.sub(r"(?m)^tested_on = .*$", 'tested_on = "build only"', text)
    text = re.sub(
        r'(?m)^summary = ".*?([:(].*)?"$', lambda found: f'summary = "{name_of(file)}{_tail(found[1])}"', text
    )
    return TO_MEND.format(like=like.name, file=file) + text


def _tail(rest: str | None) -> str:
    return "" if rest is None else f" {rest}" if rest.startswith("(") else rest


def _wrong(board: Board) -> tuple[str, ...]:
    if not is_ours(board.file):
        try:
            refuse_taken_name(board.file)
        except UsageError as error:
            return (error.cause, *contradictions(board))
    return contradictions(board)


def _is_meant(file: Path) -> bool:
    """Whether a file that cannot be read as a board was meant to be one."""
    return re.search(rb"(?m)^\s*(extends\s*=|\[firmware)", file.read_bytes()) is not None


def _check(arguments: argparse.Namespace) -> int:
    chosen = [find_unchecked(name) for name in arguments.boards] if arguments.boards else list(boards())
    found = {board.name: _wrong(board) for board in chosen}
    files_of = {board.name: board.file for board in chosen}
    unread = strays() if not arguments.boards else ()
    found |= {str(file): (error.cause,) for file, error in unread if _is_meant(file)}
    files_of |= {str(file): file for file, _ in unread}
    skipped = {error.where: error.cause for file, error in unread if str(file) not in found}
    if arguments.json is not None:
        told = {name: list(wrong) for name, wrong in found.items()}
        print_json({"boards": told, "skipped": skipped}, arguments.json)
    if arguments.json != "-":
        for name, wrong in found.items():
            print(f"{escape_name(name)}: {'no contradictions' if not wrong else ''}".rstrip())
            for sentence in wrong:
                print(f"  {sentence}")
            if wrong:
                print(f"  Correct these in {escape_name(str(files_of[name]))}.")
        for where, cause in skipped.items():
            print(f"skipped, because it is not a board: {printable(where)}: {printable(cause)}")
    return 1 if any(found.values()) else 0

"""nnbuild boards: lists the boards."""

from __future__ import annotations

import argparse

from nnbuild.board.tables import boards, strays
from nnbuild.cli.arguments import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    known = boards()
    if arguments.json:
        rows = [
            {"name": b.name, "aliases": list(b.aliases), "summary": b.summary, "tested_on": b.tested_on} for b in known
        ]
        print_json({"boards": rows, "notes": [str(error) for _, error in strays()]})
        return 0
    names = [", ".join((board.name, *board.aliases)) for board in known]
    width = max(map(len, names))
    for name, board in zip(names, known, strict=True):
        print(f"{name:{width}}  {board.summary} (tested on: {board.tested_on})")
    for _, error in strays():
        print(f"note: {error}")
    return 0

"""nnbuild module: builds the kernel module of a generated folder and checks it against the kernel's policy."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnbuild.audit.report import render_text
from nnbuild.backends.backend import add_choices, chosen
from nnbuild.backends.kmod.build import CHOICES, kernel_of
from nnbuild.backends.kmod.guest import release_of
from nnbuild.backends.kmod.module import audit_module, make_module, module_objects
from nnbuild.base.errors import UsageError
from nnbuild.board.tables import find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="what nnbuild compile --link made for such a board")
    parser.add_argument("--board", default="linux-kmod", help="the board it was made for (default: %(default)s)")
    add_choices(parser, CHOICES)
    parser.add_argument("--audit", action="store_true", help="do not build: audit what was built, and show the report")


def run(arguments: argparse.Namespace) -> int:
    folder, board = arguments.folder, find(arguments.board)
    prefix = _prefix(folder)
    if arguments.audit:
        if not module_objects(folder):
            raise UsageError(str(folder), "nothing has been built there.", f"Build it: nnbuild module {folder}")
        print(render_text(audit_module(board, prefix, folder)))
        return 0
    module = make_module(board, prefix, folder, kernel_of(chosen(arguments, CHOICES)))
    print(f"{module}: {module.stat().st_size:,} bytes for Linux {release_of(module)}; the audit found nothing")
    return 0


def _prefix(folder: Path) -> str:
    found = sorted(folder.glob("*_bridge.c"))
    if len(found) != 1:
        cause = "there is no generated kernel module."
        raise UsageError(str(folder), cause, "Make one: nnbuild compile MODEL --board linux-kmod --link -o DIR")
    return found[0].stem.removesuffix("_bridge")

"""Arguments and small services that several commands share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nnbuild.pipeline import Options
from nnbuild.plan.select import OPTIMIZE

QUANTIZE = ("float",)


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .h5, .keras or .tflite file")


def add_build_options(parser: argparse.ArgumentParser, board: bool = True) -> None:
    add_model(parser)
    if board:
        parser.add_argument("--board", default="linux", help="where it is to run (default: %(default)s)")
    parser.add_argument("--quantize", choices=QUANTIZE, default="float", help="number format (default: %(default)s)")
    parser.add_argument("--optimize", choices=OPTIMIZE, default="speed", help="what counts (default: %(default)s)")
    parser.add_argument("--name", help="prefix of everything in the C code (default: from the file's name)")
    parser.add_argument(
        "--weights",
        choices=("auto", "array", "binary"),
        default="auto",
        help="constants as C arrays or as a .bin taken in by a .S (default: binary past 256 KB)",
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", help="the device's serial port")
    parser.add_argument("--program", type=Path, help="a program that was built already (default: build one)")


def options_of(arguments: argparse.Namespace, *, layers: bool = False) -> Options:
    return Options(
        model=arguments.model,
        board=arguments.board,
        quantize=arguments.quantize,
        optimize=arguments.optimize,
        name=arguments.name,
        weights=arguments.weights,
        layers=layers,
    )


def print_json(value: Mapping[str, Any], file: str = "-") -> None:
    """One object, to a file or to standard output."""
    text = json.dumps(value, indent=2)
    if file == "-":
        print(text)
    else:
        Path(file).write_text(text + "\n")


def progress(what: str) -> Callable[[int, int], None] | None:
    """A line that moves on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\r\x1b[K" if done >= total else ""
        print(f"\r\x1b[K{what} {done}/{total}{end}", end="", file=sys.stderr, flush=True)

    return show


def say_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        print(f"nnbuild: note: {note}", file=sys.stderr)

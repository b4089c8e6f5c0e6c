"""nnbuild build: builds and audits the program that runs a model on a board."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nnbuild.backends.backend import add_choices, chosen
from nnbuild.backends.firmware.program import OWN_PROGRAM
from nnbuild.backends.recipe import read_by
from nnbuild.backends.registry import backend_of, choices
from nnbuild.base.depfile import write_depfile
from nnbuild.base.errors import UsageError
from nnbuild.base.files import alone_in, remove, removed_on_failure, write_whole
from nnbuild.cli.arguments import (
    add_baud,
    add_build_options,
    add_layers,
    add_max_instructions,
    announce,
    options_of,
    print_json,
    progress,
    say_notes,
    say_weights,
)
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.memory import hold_flash, memory_of
from nnbuild.jobs.options import board_of, prefix_of
from nnbuild.jobs.pipeline import compile_model, inputs_of

_APPLICATION = "C sources of your own program, linked instead of the one that serves the check"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_layers(parser)
    add_baud(parser)
    add_max_instructions(parser)
    add_choices(parser, choices())
    parser.add_argument("-o", dest="folder", type=Path, metavar="DIR", required=True, help="the folder for the files")
    parser.add_argument("--application", nargs="+", type=Path, metavar="SOURCE", default=[], help=_APPLICATION)
    parser.add_argument(
        "--stamp", type=Path, metavar="FILE", help="a file to create and to name as the target in --depfile"
    )
    parser.add_argument("--dry-run", action="store_true", help="build nothing; list what would be built")
    parser.add_argument(
        "--depfile", type=Path, metavar="FILE", help="write the build's dependencies, for make and ninja"
    )
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the built files and their sizes, as JSON")


def run(arguments: argparse.Namespace) -> int:
    options = options_of(arguments, layers=arguments.layers)
    board = board_of(options)
    backend = backend_of(board)
    own, prefix = arguments.application, prefix_of(options)
    program = arguments.folder / (OWN_PROGRAM if own else backend.program(prefix))
    images = backend.images(program)
    said = [path.as_posix() for path in images]
    built: dict[str, Any] = {"board": board.name, "program": program.as_posix(), "images": said}
    if own and options.max_instructions is not None:
        cause = "a bound is proved of the program that serves the model, not of your own."
        raise UsageError("--max-instructions", cause, "Leave it out, or leave --application out.")
    if arguments.dry_run:
        return _say(arguments, built)
    compiled = compile_model(options, progress("calibration sample"), announce)
    compiled.artifact.refuse_strangers(arguments.folder)
    where = Place(arguments.folder, chosen=chosen(arguments, choices()), own=tuple(own))
    with alone_in(arguments.folder, announce), removed_on_failure(program, *images):
        remove((program, *images))  # of an earlier build: a process that is killed must not leave it beside other C
        build_program(compiled, where)
        hold_flash(compiled, program)
        built["memory"] = memory_of(compiled, program)
    if arguments.stamp is not None:
        write_whole(arguments.stamp, b"")
    if arguments.depfile is not None:
        write_depfile(
            arguments.depfile,
            str(arguments.stamp or program),
            [*inputs_of(options), *own, *read_by(own, arguments.folder)],
        )
    say_notes(compiled.graph.notes)
    say_weights(compiled)
    return _say(arguments, built)


def _say(arguments: argparse.Namespace, built: dict[str, Any]) -> int:
    if arguments.json is not None:
        print_json(built, arguments.json)
    if arguments.json != "-":
        print(", ".join([built["program"], *built["images"]]))
    if arguments.json != "-" and "memory" in built:
        print("bytes: " + ", ".join(f"{name} {size:,}" for name, size in built["memory"].items()))
    return 0

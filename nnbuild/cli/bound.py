"""nnbuild bound: proves the maximum number of instructions of a run, over all inputs, on the linked program."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from nnbuild.backends.run_bound import image_bound, run_bound, within
from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.board.tables import find
from nnbuild.bound import Bound, Image, read_image
from nnbuild.bound.facts import ait, otawa
from nnbuild.bound.report import bound_json, bound_text
from nnbuild.cli.arguments import (
    add_build_options,
    announce,
    options_of,
    print_json,
    progress,
    say_notes,
)
from nnbuild.cli.places import add_place, place_of
from nnbuild.jobs.job import build_program
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.program_files import refuse_other_model

ENTRY = "nn_target_run"
ANY_NUMBER = 2**63 - 1
"""Of instructions: a program of kernels that can be bounded is made for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_place(parser)
    parser.add_argument(
        "--entry", metavar="FUNCTION", help="a function without arguments, where MODEL is a linked program"
    )
    parser.add_argument("--facts", type=Path, metavar="DIR", help="write the program and its flow facts: .ff, .ais")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the bound as JSON")


def run(arguments: argparse.Namespace) -> int:
    if _is_program(arguments.model):
        image = read_image(arguments.model)
        bound = image_bound(image, arguments.entry or ENTRY, find(arguments.board).core)
        within(bound, arguments.max_instructions)
        _say(arguments, bound, image, arguments.model)
        return 0
    if arguments.entry is not None:
        raise UsageError("--entry", "it applies to a linked program only.", "Leave it out for a model.")
    options = replace(options_of(arguments), max_instructions=arguments.max_instructions or ANY_NUMBER)
    compiled = compile_model(options, progress("calibration sample"), announce)
    say_notes(compiled.graph.notes)
    with place_of(arguments) as where:
        program = build_program(compiled, where)
        refuse_other_model(compiled, program)
        bound = run_bound(compiled.board, program)
        _say(arguments, bound, read_image(program), program)
    return 0


def _is_program(path: Path) -> bool:
    """Whether the file is a linked program rather than a model."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _say(arguments: argparse.Namespace, bound: Bound, image: Image, program: Path) -> None:
    if arguments.facts is not None:
        arguments.facts.mkdir(parents=True, exist_ok=True)
        kept = arguments.facts / program.name
        if not kept.exists() or not kept.samefile(program):
            shutil.copyfile(program, kept)
        write_whole(kept.with_suffix(".ff"), otawa(program.name, bound, image.name_of).encode())
        write_whole(kept.with_suffix(".ais"), ait(program.name, bound, image.name_of).encode())
    if arguments.json is not None:
        print_json(bound_json(bound), arguments.json)
    if arguments.json != "-":
        print(bound_text(bound), end="")

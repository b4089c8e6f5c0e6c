"""nnbuild flash: builds a model's program, or takes one, and writes it to a board's flash."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnbuild.backends.firmware.flash import choose, flash_program, image_for
from nnbuild.board.tables import find
from nnbuild.cli.arguments import add_build_options, add_layers, announce, options_of, progress, say_notes
from nnbuild.cli.places import add_place, place_of
from nnbuild.device.bootloader import Progress
from nnbuild.jobs.job import build_program
from nnbuild.jobs.memory import hold_flash
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import refuse_other_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_layers(parser)
    add_place(parser)
    own = "--program is your own program, which does not serve the check"
    parser.add_argument("--application", action="store_true", help=own)
    parser.add_argument("--tool", metavar="NAME", help="flashing tool (default: the board's first that is usable)")


def run(arguments: argparse.Namespace) -> int:
    board = find(arguments.board)
    choose(board, arguments.tool, arguments.port)  # fails before the model is compiled
    compiled = compile_model(options_of(arguments, layers=arguments.layers), progress("calibration sample"), announce)
    say_notes(compiled.graph.notes)
    with place_of(arguments) as where:
        program = build_program(compiled, where)
        hold_flash(compiled, program)
        size = _size(compiled, program, arguments.application)
        tool = flash_program(board, program, port=arguments.port, tool=arguments.tool, progress=_progress)
    print(f"flashed {size:,} bytes to {board.name} with {tool}, verified and started")
    return 0


def _size(compiled: Compiled, program: Path, application: bool) -> int:
    image = image_for(compiled.board, program)
    if not application:
        refuse_other_model(compiled, program)
    return len(image.data)


def _progress(what: str) -> Progress:
    return progress(what) or (lambda done, total: None)

"""The back end of microcontrollers."""

from __future__ import annotations

from pathlib import Path

from nnbuild.backends.backend import Backend, RunStack
from nnbuild.backends.firmware.flash import image_for
from nnbuild.backends.firmware.image import write_images
from nnbuild.backends.firmware.line import open_line, refuse_to_run
from nnbuild.backends.firmware.program import IMAGES, PROGRAM, application, file_names, files, recipe
from nnbuild.board.board import Board

FORK_STACK = 192
"""Stack of firmware/cores: nn_cores_run and its callees, without registers saved by an interrupt."""


def refuse_program(board: Board, program: Path) -> None:
    image_for(board, program)


BACKEND = Backend(
    program=lambda prefix: PROGRAM,
    file_names=file_names,
    files=files,
    open_line=open_line,
    recipe=recipe,
    application=application,
    finish=write_images,
    finished_names=IMAGES,
    stack=RunStack(library=(), parts=FORK_STACK),
    bounded="nn_target_run",
    refuse_program=refuse_program,
    refuse_to_run=refuse_to_run,
)

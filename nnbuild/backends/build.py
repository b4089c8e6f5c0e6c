"""Builds the program of a folder of generated files, and audits the model's objects before linking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nnbuild.backends.backend import Chosen
from nnbuild.backends.object_audit import audit_model, model_stack
from nnbuild.backends.recipe import compile_all, link
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board


def build_application(board: Board, prefix: str, folder: Path, generated: Iterable[str], own: Sequence[Path]) -> Path:
    """Builds the user's own program with the model in it, if the board's back end supports that."""
    backend = backend_of(board)
    if backend.application is None:
        cause = "the system's own compiler builds your programs for it."
        step = "Print the C with nnbuild compile, or take env.NNLibrary or nnbuild_add_model, and link that."
        raise UsageError(f"board {board.name!r}", cause, step)
    for source in own:
        if not source.is_file():
            raise UsageError(str(source), "there is no such file.", "Check its name.")
    recipe = backend.application(board, generated, own)
    objects = compile_all(recipe, folder)
    audit_model(board, prefix, folder)
    program = link(recipe, objects, folder)
    backend.finish(program)
    return program


def build(board: Board, prefix: str, folder: Path, generated: Iterable[str], chosen: Chosen) -> Path:
    backend = backend_of(board)
    if backend.own_build is not None:
        return backend.own_build.build(board, prefix, folder, chosen)
    recipe = backend.recipe(board, generated)
    objects = compile_all(recipe, folder)
    audit_model(board, prefix, folder)
    model_stack(board, prefix, folder)
    program = link(recipe, objects, folder)
    backend.finish(program)
    return program

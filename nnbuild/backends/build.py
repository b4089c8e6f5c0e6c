"""Builds the program of a folder of generated files, and audits the model's objects before they are linked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nnbuild.backends.backend import Chosen
from nnbuild.backends.object_audit import audit_model, model_stack
from nnbuild.backends.recipe import compile_all, link
from nnbuild.backends.registry import backend_of
from nnbuild.board.board import Board


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

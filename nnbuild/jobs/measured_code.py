"""The bytes of a model's code as its board's compiler makes them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from elftools.elf.elffile import ELFFile

from nnbuild.backends.recipe import compile_all
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import ToolMissing
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact

CODE = (".text", ".rodata")
_KNOWN: dict[str, int | None] = {}
"""Sizes found, by board and files: a search for few bytes comes back to the same code."""


def code_bytes(path: Path) -> int:
    """Those of an object: functions, and constants other than weights."""
    with path.open("rb") as file:
        sections = ELFFile(file).iter_sections()
        return sum(int(section["sh_size"]) for section in sections if section.name.startswith(CODE))


def objects_of(board: Board, prefix: str, folder: Path) -> list[Path]:
    """The objects in the folder that make up a model's code; none for a program that was moved from it."""
    return [path for stem in _stems(board, prefix) if (path := folder / f"{stem}.o").is_file()]


def measured_code(board: Board, prefix: str, files: Mapping[str, bytes]) -> int | None:
    """Compiles the model's code alone. None if it takes more than calls of a compiler, or there is no compiler."""
    key = _key(board, files)
    if key not in _KNOWN:
        _KNOWN[key] = _compiled(board, prefix, files)
    return _KNOWN[key]


def _key(board: Board, files: Mapping[str, bytes]) -> str:
    seen = hashlib.sha256(repr(board).encode())
    for name, content in sorted(files.items()):
        seen.update(f"{name} {len(content)} ".encode() + content)
    return seen.hexdigest()


def _compiled(board: Board, prefix: str, files: Mapping[str, bytes]) -> int | None:
    backend, stems = backend_of(board), set(_stems(board, prefix))
    if backend.own_build is not None:
        return None
    try:
        recipe = backend.recipe(board, files)
    except ToolMissing:
        return None
    generated = tuple(name for name in recipe.generated if Path(name).stem in stems)
    firmware = tuple(path for path in recipe.firmware if path.stem in stems)
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        Artifact(files).write(Path(folder))
        objects = compile_all(replace(recipe, generated=generated, firmware=firmware), Path(folder))
        return sum(code_bytes(path) for path in objects)


def _stems(board: Board, prefix: str) -> list[str]:
    return [name.format(prefix=prefix) for name in backend_of(board).stack.objects]

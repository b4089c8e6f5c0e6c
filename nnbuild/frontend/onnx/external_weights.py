"""Weights in external files, from the model's folder only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from nnbuild.base.errors import ModelError

TOGETHER = "Put the weight files in the model's folder, or export the model with its weights inside."


def read_external(where: str, folder: Path | None, entries: Mapping[str, str], size: int) -> bytes:
    """Reads `size` bytes from the file that `entries` name."""
    name = entries.get("location", "")
    path = _inside(where, folder, name)
    offset, length = (_number(where, entries, key) for key in ("offset", "length"))
    if length not in (0, size):
        raise ModelError(where, f"its range has {length} bytes of {name!r}, but needs {size}.", TOGETHER)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise ModelError(where, f"its file {name!r} cannot be read ({error.strerror}).", TOGETHER) from None
    if len(data) != size:
        raise ModelError(where, f"its file {name!r} ends before its {size} bytes.", TOGETHER)
    return data


def _inside(where: str, folder: Path | None, name: str) -> Path:
    """Resolves a path and its links, which must stay below the model's folder."""
    parts = PurePosixPath(name)
    if folder is None:
        raise ModelError(where, "its values are in another file, but the model was not read from a folder.", TOGETHER)
    if not name or "\0" in name or parts.is_absolute() or ".." in parts.parts:
        raise ModelError(where, f"its values lie in {name!r}, outside the model's folder.", TOGETHER)
    home = folder.resolve()
    try:
        path = (home / name).resolve()
    except (OSError, RuntimeError):
        path = home
    if not path.is_relative_to(home) or path == home:
        raise ModelError(where, f"its values lie in {name!r}, outside the model's folder.", TOGETHER)
    return path


def _number(where: str, entries: Mapping[str, str], key: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise ModelError(where, f"its {key} {text[:20]!r} is not a number of bytes.", TOGETHER)
    return int(text)

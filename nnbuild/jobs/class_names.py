"""Names of a model's classes: from a file that the user gives, or from a .tflite file's metadata."""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Graph

LONGEST = 200
MOST_BYTES = 1 << 20


def class_names(file: Path | None, model: Path, graph: Graph) -> tuple[str, ...]:
    """Names for the values of the first output; empty where unknown."""
    wanted = prod(graph.tensors[graph.outputs[0]].shape)
    if file is None:
        carried = _carried(model)
        return carried if len(carried) == wanted else ()
    names = _names(file, _text(file))
    if len(names) != wanted:
        cause = f"it names {len(names):,} classes, and the model's first output has {wanted:,} values."
        raise UsageError(str(file), cause, "Write one name per line, in the order of the output.")
    return names


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(str(file), "it is too large for a list of names.", "Write one name per line.")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            str(file), f"it cannot be read ({error}).", "Give a text file with one name per line."
        ) from None


def _names(file: Path, text: str) -> tuple[str, ...]:
    names = tuple(line.strip() for line in text.splitlines())
    while names and not names[-1]:
        names = names[:-1]
    for number, name in enumerate(names, 1):
        if not name or len(name) > LONGEST:
            cause = "is empty" if not name else f"has more than {LONGEST} characters"
            raise UsageError(f"{file}, line {number}", f"the name {cause}.", "Write one name per line.")
    return names


def _carried(model: Path) -> tuple[str, ...]:
    """The labels in the metadata of a .tflite file, which is a zip archive at the file's end."""
    if model.suffix.lower() != ".tflite":
        return ()
    try:
        with zipfile.ZipFile(model) as archive:
            lists = [info for info in archive.infolist() if info.filename.endswith(".txt") and "label" in info.filename]
            if len(lists) != 1 or lists[0].file_size > MOST_BYTES:
                return ()
            return _names(model, archive.read(lists[0]).decode("utf-8"))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, UsageError, EOFError):
        return ()

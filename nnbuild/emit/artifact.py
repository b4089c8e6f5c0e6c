"""The result: file contents by name, not yet written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.files import make_folder, write_together

OPENINGS = (b": printed by nnbuild", b": what is computed, in which order and where.")
"""Found in the first line of a model's main files, separate or as a single file."""


@dataclass(frozen=True)
class Artifact:
    files: Mapping[str, bytes]

    def refuse_strangers(self, folder: Path) -> None:
        """Refuses to overwrite files that nnbuild did not print, before anything is written."""
        for name, content in self.files.items():
            path = folder / name
            if path.is_file() and not ours(path.read_bytes(), content):
                step = "Name another folder with -o, another name with --name, or move that file."
                raise UsageError(str(path), "it exists already, and nnbuild did not print it.", step)

    def write(self, folder: Path) -> None:
        """Writes only files whose content changed, so that nothing else is rebuilt."""
        make_folder(folder)
        wanted = {folder / name: content for name, content in self.files.items()}
        for parent in sorted({path.parent for path in wanted} - {folder}):
            make_folder(parent)
        write_together({p: c for p, c in wanted.items() if not p.is_file() or p.read_bytes() != c})


def refuse_foreign(path: Path, mark: bytes) -> None:
    """The same for products of the files, such as a library: nnbuild's contain `mark`."""
    if path.is_file() and mark not in path.read_bytes():
        raise UsageError(
            str(path), "it exists already, and nnbuild did not make it.", "Move it, or name another folder."
        )


def ours(found: bytes, printed: bytes) -> bool:
    """Whether a file may be an earlier version of what is printed now. nnbuild's files begin with a sentence of their
    own; those that cannot, such as a Cargo.toml, mention nnbuild. Weights are plain bytes and recognized by name alone.
    """
    if found == printed or b"\0" in printed:
        return True
    first, now = (re.sub(rb"\d+", b"", text.lstrip().split(b"\n", 1)[0]) for text in (found, printed))
    if any(opening in first for opening in OPENINGS):
        return True
    return first == now and (first.startswith((b"/*", b"//")) or b"nnbuild" in found)

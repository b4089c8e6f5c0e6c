"""What comes out: files by name, not yet written anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnbuild.base.files import make_folder, write_together


@dataclass(frozen=True)
class Artifact:
    files: Mapping[str, bytes]

    def write(self, folder: Path) -> None:
        """Writes the files whose content is new, so that nothing is rebuilt that has not changed."""
        make_folder(folder)
        wanted = {folder / name: content for name, content in self.files.items()}
        for parent in sorted({path.parent for path in wanted} - {folder}):
            make_folder(parent)
        write_together({p: c for p, c in wanted.items() if not p.is_file() or p.read_bytes() != c})

"""What comes out: files by name, not yet written anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Artifact:
    files: Mapping[str, bytes]

    def write(self, folder: Path) -> None:
        """Writes the files whose content is new, so that nothing is rebuilt that has not changed."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != content:
                part = path.with_name(path.name + ".part")
                part.write_bytes(content)
                part.replace(path)

"""Caches compiled objects within a process, keyed by everything the compiler reads.

Programs of many models share nnbuild's own sources, and a model that is checked, run and reported is built each time.
Build folders are temporary, so neither their names nor those of objects are part of the key; nor is the current
directory, unless flags refer to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MADE = (".o", ".ci", ".su")
"""Suffixes of the object and of the compiler's stack tables."""
LARGEST = 1 << 20
MOST = 200
"""The most objects kept, each of at most LARGEST bytes."""
COMPILER_READS = ("CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "SOURCE_DATE_EPOCH", "LANG", "LC_ALL")
"""Environment variables that compilers read."""
_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_OTHER = re.compile(rb'^\s*#\s*(?:include\s*[^"<\s]|include_next|embed)|\.incbin', re.MULTILINE)
"""Directives that read files whose names are not visible in the text."""
_FROM_HERE = re.compile(r"-I(?!/)|-i|-B|--|@")
"""Flags that may refer to files relative to the current directory."""


class Kept:
    def __init__(self) -> None:
        self._made: dict[str, Mapping[str, bytes]] = {}

    def put_back(self, key: str, target: Path) -> bool:
        made = self._made.get(key, {})
        for suffix, data in made.items():
            target.with_suffix(suffix).write_bytes(data)
        return bool(made)

    def keep(self, key: str, target: Path) -> None:
        files = {suffix: target.with_suffix(suffix) for suffix in MADE}
        made = {suffix: file.read_bytes() for suffix, file in files.items() if file.is_file()}
        if len(made.get(".o", b"")) <= LARGEST:
            while len(self._made) >= MOST:
                del self._made[next(iter(self._made))]
            self._made[key] = made


KEPT = Kept()


def key_of(
    command: Callable[[Path, Path, Path], list[str]], source: Path, folder: Path, includes: Sequence[Path]
) -> str | None:
    """The key of a compilation; None where the compiler's inputs are not known. `command` takes the source, its object
    and the folder."""
    read = _read_by(source, (folder, *includes))
    if read is None:
        return None
    inside = Path(source.name) if source.is_relative_to(folder) else source
    words = command(inside, Path("object"), Path("/folder"))
    here = Path.cwd() if any(map(_FROM_HERE.match, words)) else None
    around = (shutil.which(words[0]), here, *(os.environ.get(name) for name in COMPILER_READS))
    return hashlib.sha256(repr((words, around, read)).encode()).hexdigest()


def _read_by(source: Path, folders: Sequence[Path]) -> list[tuple[str, str]] | None:
    """Digests of a source and all that it includes by name, recursively, except system headers."""
    found: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        text = file.read_bytes()
        if _OTHER.search(text):
            return None
        found[file] = hashlib.sha256(text).hexdigest()
        for name in _INCLUDE.findall(text):
            places = (folder / os.fsdecode(name) for folder in (file.parent, *folders))
            waiting += [path for path in places if path.is_file()][:1]
    return [(file.name if file.is_relative_to(folders[0]) else str(file), digest) for file, digest in found.items()]

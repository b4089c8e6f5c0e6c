"""Dependency files as Make and Ninja read them: `target: prerequisite …`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from nnbuild.base.files import write_whole


def escaped(path: PurePath) -> str:
    """Uses forward slashes on every system and escapes blanks and Make's special characters."""
    text = re.sub(r"([ #])", r"\\\1", path.as_posix())
    return text.replace("$", "$$")


def depfile(target: str, prerequisites: Iterable[Path]) -> str:
    lines = [escaped(path.absolute()) for path in prerequisites]
    return " \\\n  ".join([f"{escaped(Path(target))}:", *lines]) + "\n"


def write_depfile(path: Path, target: str, prerequisites: Iterable[Path]) -> None:
    write_whole(path, depfile(target, prerequisites).encode())


def prerequisites(text: str) -> list[Path]:
    """The files that a compiler's dependency file names behind its target."""
    _, _, rest = text.replace("\\\n", " ").partition(": ")
    words = re.split(r"(?<!\\)\s+", rest.strip())
    return [Path(re.sub(r"\\([ #])", r"\1", word).replace("$$", "$")) for word in words if word]

"""Compiles generated C into objects, and reads their symbols."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.compiled import STRICT


def compile_objects(folder: Path, names: Sequence[str], tool: Sequence[str] = ("gcc", "-O2")) -> list[Path]:
    made = []
    for name in names:
        target = folder / f"{Path(name).stem}.o"
        command = [*tool, *STRICT, f"-I{folder}", "-c", str(folder / name), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made.append(target)
    return made


def symbols(path: Path) -> dict[str, str]:
    """Symbol -> its letter in nm: T text, R read-only data, D and B writable data, U undefined."""
    listed = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
    return {words[-1]: words[-2] for words in (line.split() for line in listed.splitlines())}

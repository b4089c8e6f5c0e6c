"""Programs as a user starts them, and what they said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "mnist"
NNBUILD = [sys.executable, "-m", "nnbuild"]


@dataclass(frozen=True)
class Done:
    """How a program ended, and what it printed, both streams in one."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def start(*words: object, folder: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Runs a program; nnbuild is found as it is here."""
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=whole,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return Done(done.returncode, done.stdout)


def well(*words: object, folder: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """The same for a program that must end well."""
    done = start(*words, folder=folder, env=env)
    assert done.status == 0, done.text
    return done.text


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def printed(folder: Path, prefix: str) -> dict[str, bytes]:
    """The files of a model's C among others."""
    there = {path.name: path.read_bytes() for path in folder.glob(f"{prefix}*")}
    return {name: content for name, content in there.items() if name.endswith((".c", ".h", ".S", ".bin"))}

"""A copy of the checkout to build in, and SCons as a user starts it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.frontend.keras_files import h5_bytes, small

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("SConstruct", "site_scons", "nnbuild", "boards", "firmware")


@dataclass(frozen=True)
class Said:
    """How SCons ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def steps(self) -> list[str]:
        """What was done: the first word of each command and what it was done to."""
        return re.findall(r"^(?:nnbuild \w+|[\w-]*gcc|clang|python) .*$", self.out, re.MULTILINE)

    def did(self, beginning: str) -> list[str]:
        return [step for step in self.steps if step.startswith(beginning)]


def scons(folder: Path, *arguments: str) -> Said:
    command = [sys.executable, "-m", "SCons", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """nnbuild as it is here, with a small model in it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / part)
    write_model(folder / "small.h5")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one's own, beside the checkout; its SConstruct is still to be written."""
    folder = tmp_path / "project"
    folder.mkdir()
    write_model(folder / "small.h5")
    return folder


def write_model(path: Path, scale: float = 1.0) -> None:
    config, weights = small()
    path.write_bytes(h5_bytes(config, {name: [scale * array for array in arrays] for name, arrays in weights.items()}))


HEAD = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
import nnbuild.scons
env = Environment(tools=["default", nnbuild.scons.generate])
"""
"""How a project outside of the checkout takes nnbuild in."""

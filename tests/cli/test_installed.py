"""An installed package is only read: what is made goes where the user says, what is kept into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.frontend.keras_files import h5_bytes, put, small

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [
    "inspect net.h5",
    "compile net.h5 -o c",
    "compile net.h5 --output library -o library",
    "build net.h5 -o program",
    "check net.h5 --program program/program",
    "report net.h5 --program program/program -o report.html",
    "profile net.h5 --alternatives --save",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel lays it out: setup.py puts inside what lies beside it in a checkout."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "nnbuild", site / "nnbuild", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("boards", "firmware", "docs"):
        shutil.copytree(ROOT / name, site / "nnbuild" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return site


def state(folder: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def nnbuild(words: Sequence[str], site: Path, folder: Path) -> None:
    changes = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, "-m", "nnbuild", *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **changes}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.turns(4)
@pytest.mark.slow
def test_nothing_is_written_into_the_package(site: Path, tmp_path: Path) -> None:
    put(tmp_path / "net.h5", h5_bytes(*small()))
    before = state(site)
    for line in COMMANDS:
        nnbuild(line.split(), site, tmp_path)
    assert state(site) == before
    assert [path.name for path in (tmp_path / "cache" / "nnbuild").iterdir()] == ["measured"]

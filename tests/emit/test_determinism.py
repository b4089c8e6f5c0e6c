"""The same model gives the same bytes, wherever, whenever and under whatever hash seed it is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "examples" / "mnist" / "mnist.h5"


def printed(folder: Path, seed: str, model: Path) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nnbuild", "compile", str(model), "-o", "out", "--link"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return printed(tmp_path_factory.mktemp("first") / "a", "0", MNIST)


@pytest.mark.turns(3)
@pytest.mark.slow
def test_two_folders_and_two_hash_seeds(first: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = Path(shutil.copy(MNIST, tmp_path / "elsewhere" / "mnist.h5"))
    assert len(first) == 6
    assert printed(tmp_path / "b" / "deeper", "12345", copy) == first
    assert printed(tmp_path / "c", "random", MNIST) == first


@pytest.mark.slow
def test_no_file_names_the_machine(first: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in first.items():
        for word in (str(tmp_path.parent), str(ROOT), os.uname().nodename):
            assert word.encode() not in content, name


@pytest.mark.turns(3)
@pytest.mark.slow
def test_every_kernel_prints_the_same_twice() -> None:
    for name, maker in cases():
        first, second = (emit(make_plan(maker(), "net", Target())).files for _ in range(2))
        assert first == second, name

"""The model against the study it began as: the firmware of that commit, built again, takes what was found then."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models import path_of
from nnbuild.board.tables import find
from nnbuild.cycles.part import part_of
from nnbuild.cycles.run import time_run

ROOT = Path(__file__).parents[2]
COMMIT = "030f1f9"
CLOSE = {"mps2-an386": 3, "stm32f405": 3, "nucleo-l4r5zi": 5}
"""Board -> percent."""
FOUND = {
    "kws": {"mps2-an386": 3.95, "stm32f405": 5.54, "nucleo-l4r5zi": 9.37},
    "resnet8": {"mps2-an386": 11.35, "stm32f405": 16.45, "nucleo-l4r5zi": 27.28},
    "autoencoder": {"mps2-an386": 0.399, "stm32f405": 0.593, "nucleo-l4r5zi": 0.822},
}
"""Model -> board -> Mcycles."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of that commit."""
    packed = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"commit {COMMIT} is not in this clone")
    folder = tmp_path_factory.mktemp("study")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("board", CLOSE)
@pytest.mark.parametrize("model", FOUND)
def test_the_firmware_of_the_study(model: str, board: str, sources: Path, tmp_path: Path) -> None:
    path = path_of(model)
    if path is None:
        pytest.skip(f"{model} is not here")
    command = ["build", str(path), "--quantize", "int8", "--board", board, "--name", model, "-o", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "nnbuild", *command], cwd=sources, check=True, capture_output=True)
    chance = np.random.default_rng(0)
    found = time_run(tmp_path / "program.elf", part_of(find(board)), lambda number, size: chance.bytes(size))
    assert found.whole.cycles / 1e6 == pytest.approx(FOUND[model][board], rel=CLOSE[board] / 100)

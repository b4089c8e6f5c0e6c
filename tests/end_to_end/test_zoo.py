"""Every model of the zoo as compiled C, against the float64 reference of what was imported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.end_to_end.zoo_batches import batches, failures
from tests.support.batch import CLANG, OPTIMIZED, SANITIZED
from tests.zoo import KERAS3, TFKERAS, WRITERS

pytestmark = pytest.mark.oracle

NEEDS_CLANG = pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang: apt install clang")


def lots(*writers: str, half: bool = False) -> pytest.MarkDecorator:
    """All of the zoo; with `half` every second lot is left to full runs."""
    listed = [(writer, lot, index) for writer in writers for index, lot in enumerate(batches(writer))]
    parameters = [
        pytest.param(writer, lot, id=f"{writer}-{index:02d}", marks=[pytest.mark.full] if half and index % 2 else [])
        for writer, lot, index in listed
    ]
    return pytest.mark.parametrize(("writer", "lot"), parameters)


@pytest.mark.turns(4)
@lots(KERAS3)
def test_outputs_under_the_sanitizers(writer: str, lot: list[str], tmp_path: Path) -> None:
    assert failures(writer, lot, tmp_path, SANITIZED, layers=False) == []


@pytest.mark.turns(4)
@NEEDS_CLANG
@lots(TFKERAS)
def test_outputs(writer: str, lot: list[str], tmp_path: Path) -> None:
    assert failures(writer, lot, tmp_path, CLANG, layers=False) == []


@pytest.mark.turns(4)
@NEEDS_CLANG
@lots(*WRITERS, half=True)
def test_every_layer_of_the_model_as_it_is(writer: str, lot: list[str], tmp_path: Path) -> None:
    assert failures(writer, lot, tmp_path, CLANG, layers=True) == []


@pytest.mark.full
@NEEDS_CLANG
@pytest.mark.parametrize("tool", [SANITIZED, *OPTIMIZED], ids=["sanitized", "gcc-O2", "clang-O2"])
@pytest.mark.parametrize("layers", [False, True], ids=["folded", "layers"])
@lots(*WRITERS)
def test_every_way_of_building(
    writer: str, lot: list[str], layers: bool, tool: tuple[str, ...], tmp_path: Path
) -> None:
    """Optimized, a promise of `restrict` that does not hold would show."""
    assert failures(writer, lot, tmp_path, tool, layers=layers) == []

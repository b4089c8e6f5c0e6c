"""Every model of the zoo as compiled C, against the float64 reference of what was imported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.end_to_end.zoo_batches import batches, failures
from tests.support.batch import CLANG, GCC_SANITIZED
from tests.zoo import KERAS3, TFKERAS

pytestmark = pytest.mark.oracle

LOTS = [
    pytest.param(writer, lot, id=f"{writer}-{index:02d}")
    for writer in (KERAS3, TFKERAS)
    for index, lot in enumerate(batches(writer))
]


@pytest.mark.parametrize(("writer", "lot"), LOTS)
def test_outputs_of_the_folded_model(writer: str, lot: list[str], tmp_path: Path) -> None:
    assert failures(writer, lot, tmp_path, GCC_SANITIZED, layers=False) == []


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang: apt install clang")
@pytest.mark.parametrize(("writer", "lot"), LOTS)
def test_every_layer_of_the_model_as_it_is(writer: str, lot: list[str], tmp_path: Path) -> None:
    assert failures(writer, lot, tmp_path, CLANG, layers=True) == []

"""Files as old versions of Keras wrote them mean the same as the new ones they were made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.test_zoo import assert_close, numbered
from tests.zoo import TFKERAS, names, zoo
from tests.zoo.legacy import DIALECTS, Dialect, rewrite

pytestmark = pytest.mark.oracle

NEWER = ("tfop", "ops", "topology_names_in_chunks")
"""Single operations came with TensorFlow 2.4; names that are split already cannot be split in the old way."""

WIRED = ("topology", "net")
"""How layers are wired and named differs most between versions."""

CASES = [name for name in names(TFKERAS) if not name.startswith(NEWER)]


def cases_for(dialect: Dialect) -> list[str]:
    """Every case in one dialect, and those of wiring in all of them."""
    number = DIALECTS.index(dialect)
    share = set(CASES[number :: len(DIALECTS)])
    return [name for name in CASES if name in share or name.startswith(WIRED)]


@pytest.mark.turns(9)
@pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.name for dialect in DIALECTS])
def test_old_files_agree_with_keras(dialect: Dialect, tmp_path: Path) -> None:
    directory = zoo(TFKERAS)
    for name in cases_for(dialect):
        target = tmp_path / f"{name}.h5"
        rewrite(directory / f"{name}.h5", target, dialect)
        with np.load(directory / f"{name}.npz") as file:
            golden = dict(file)
        graph = load(target)
        inputs = dict(zip(graph.inputs, numbered(golden, "x", len(graph.inputs)), strict=True))
        single, double = interpret.run(graph, inputs), interpret.run(graph, inputs, "float64")
        for output, answer in zip(graph.outputs, numbered(golden, "y", len(graph.outputs)), strict=True):
            assert_close(single[output], double[output], answer, name)
        target.unlink()

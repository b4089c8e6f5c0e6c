"""Files as old versions of Keras wrote them mean the same as the new ones they were made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.test_zoo import numbered
from tests.zoo import TFKERAS, names, zoo
from tests.zoo.legacy import DIALECTS, Dialect, rewrite

pytestmark = pytest.mark.oracle

NEWER = ("tfop", "ops")
"""Single operations came with TensorFlow 2.4: no older file holds one."""

CASES = [name for name in names(TFKERAS) if not name.startswith(NEWER)]


@pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.name for dialect in DIALECTS])
@pytest.mark.parametrize("part", range(4))
def test_old_files_agree_with_keras(dialect: Dialect, part: int, tmp_path: Path) -> None:
    directory = zoo(TFKERAS)
    for name in CASES[part::4]:
        target = tmp_path / f"{name}.h5"
        rewrite(directory / f"{name}.h5", target, dialect)
        with np.load(directory / f"{name}.npz") as file:
            golden = dict(file)
        graph = load(target)
        inputs = dict(zip(graph.inputs, numbered(golden, "x", len(graph.inputs)), strict=True))
        found = interpret.run(graph, inputs)
        for output, answer in zip(graph.outputs, numbered(golden, "y", len(graph.outputs)), strict=True):
            np.testing.assert_allclose(found[output], answer, rtol=1e-5, atol=1e-5, err_msg=name)
        target.unlink()

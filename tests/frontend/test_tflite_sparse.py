"""Sparse weights, which TensorFlow's converter writes for pruned models, and TFLite's interpreter expands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.frontend.test_tflite_zoo import reference
from tests.frontend.tflite_files import File, O, T, to_bytes

pytestmark = pytest.mark.oracle
CHANCE = np.random.default_rng(3)
WHOLE = CHANCE.integers(-9, 9, (4, 8)) * (CHANCE.random((4, 8)) < 0.4)
BLOCKS = np.kron(np.array([[1, 0], [0, 1]]), np.ones((2, 4), int)) * CHANCE.integers(1, 9, (4, 8))


def rows(values: Array) -> tuple[list[int], list[int], list[Any]]:
    """Each row has the columns of what is not zero."""
    kept = [np.flatnonzero(row) for row in values]
    return [0, 1], [], [4, ([0, *np.cumsum([len(k) for k in kept])], np.concatenate(kept))]


FORMS: dict[str, tuple[Array, Array, Any]] = {
    "rows": (WHOLE, WHOLE[WHOLE != 0], rows(WHOLE)),
    "columns": (WHOLE, WHOLE.T[WHOLE.T != 0], ([1, 0], [], [8, rows(WHOLE.T)[2][1]])),
    "blocks": (BLOCKS, BLOCKS[[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], [*range(4)] * 2 + [*range(4, 8)] * 2],
               ([0, 1, 2, 3], [0, 1], [2, ([0, 1, 2], [0, 1]), 2, 4])),
}  # fmt: skip


def written(folder: Path, stored: Array, sparse: Any, dtype: str = "float32") -> Path:
    weights = T("w", (4, 8), dtype, data=stored.astype(dtype), sparse=sparse)
    tensors = [T("x", (1, 8), "float32"), weights, T("dense", (4, 8), dtype), T("y", (1, 4), "float32")]
    operators = [
        O("DENSIFY", [1], [2]),
        O("FULLY_CONNECTED", [0, 2, -1], [3], "FullyConnectedOptions"),
    ]
    path = folder / "sparse.tflite"
    path.write_bytes(to_bytes(File(tensors, operators, [0], [3])))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_sparse_weights_are_expanded(form: str, tmp_path: Path) -> None:
    whole, stored, sparse = FORMS[form]
    path = written(tmp_path, stored, sparse)
    graph, x = passes.run(load(path)), CHANCE.normal(size=(5, 8)).astype(np.float32)
    found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
    np.testing.assert_allclose(found, x @ whole.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, reference(path, [[one[None]] for one in x])[0][:, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "sparse",
    [
        ([0, 1], [], [4, ([0, 3, 2, 5, 6], range(6))]),  # segments that go back
        ([0, 1], [], [4, ([0, 2, 3, 5, 6], [0, 1, 2, 3, 4, 8])]),  # an index outside
        ([0, 1], [], [4, ([0, 2, 3, 5, 7], range(6))]),  # more segments than indices
        ([0, 0], [], [4, ([0, 2, 3, 5, 6], range(6))]),  # an axis twice
        ([0, 1], [7], [4, ([0, 2, 3, 5, 6], range(6))]),  # blocks of no axis
        ([0, 1], [], [2**31 - 1, 2**31 - 1]),
        ([0, 1], [], [4]),
    ],
)
def test_damaged_trees_are_refused(sparse: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tensor 'w': its sparse values do not match its shape"):
        load(written(tmp_path, np.arange(6), sparse))


def test_a_part_of_a_number_is_refused(tmp_path: Path) -> None:
    tree = ([0, 1], [], [4, ([0, 2, 3, 5, 6], [0, 1, 2, 3, 4, 5])])
    weights = T("w", (4, 8), "float32", data=np.zeros(23, np.int8), sparse=tree)
    path = tmp_path / "sparse.tflite"
    path.write_bytes(to_bytes(File([weights, T("x", (1, 8))], [], [1], [1])))
    with pytest.raises(ModelError, match="tensor 'w': its sparse values do not match its shape"):
        load(path)

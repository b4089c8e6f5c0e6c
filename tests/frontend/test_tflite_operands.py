"""Operands of a batch with fewer axes than others, and options of operators that only have constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.frontend.tflite_files import File, O, T, to_bytes


def real(name: str, *shape: int, data: Any = None) -> T:
    return T(name, shape, "float32", data=data)


def written(folder: Path, file: File) -> Path:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return path


@pytest.mark.parametrize("kind", ["SUB", "MAXIMUM", "POW", "SELECT_V2"])
def test_a_batch_as_large_as_another_axis_is_not_taken_for_it(kind: str, tmp_path: Path) -> None:
    """Sums of rows, one for each sample, stand beside columns."""
    axis = T("axis", (1,), "int32", (), (), data=np.array([1], np.int32))
    condition = T("c", (3, 3), "bool", (), ())
    tensors = [real("x", 3, 3), axis, real("sums", 3), condition, real("y", 3, 3)]
    operators = [
        O("SUM", [0, 1], [2], "ReducerOptions"),
        O("LESS", [0, 0], [3]),
        O(kind, [3, 0, 2] if kind == "SELECT_V2" else [0, 2], [4]),
    ]
    with pytest.raises(ModelError, match="fewer axes than its output, so it mixes samples"):
        load(written(tmp_path, File(tensors, operators, [0], [4])))


def looked_up(folder: Path, at: T, axis: int, shape: tuple[int, ...]) -> Graph:
    """GATHER in three tables of 4 x 2, one for each row of indices."""
    operator = O("GATHER", [0, 1], [2], "GatherOptions", {"Axis": axis, "BatchDims": 2})
    inputs = [0] if at.data is not None else [0, 1]
    return load(written(folder, File([real("x", 1, 3, 4, 2), at, real("y", *shape)], [operator], inputs, [2])))


def test_every_row_is_looked_up_in_its_own_table(tmp_path: Path) -> None:
    graph = looked_up(tmp_path, T("at", (1, 3, 5), "int32", (), ()), 2, (1, 3, 5, 2))
    chance = np.random.default_rng(2)
    x, at = chance.normal(size=(6, 3, 4, 2)).astype(np.float32), chance.integers(0, 4, (6, 3, 5), np.int32)
    (found,) = (interpret.run(graph, dict(zip(graph.inputs, (x, at), strict=True)))[name] for name in graph.outputs)
    np.testing.assert_array_equal(found, np.take_along_axis(x, at[..., None], 2))


@pytest.mark.parametrize(
    ("at", "axis", "shape", "message"),
    [
        (T("at", (1, 3, 5), "int32", (), ()), 3, (1, 3, 4, 5), "its axis 3 lies behind its 2 batch axes"),
        (T("at", (1, 2, 5), "int32", (), ()), 2, (1, 2, 5, 2), r"its tables \(1, 3, 4, 2\) do not fit its indices"),
        (
            T("at", (1, 3, 1), "int32", scales=(), zeros=(), data=np.full((1, 3, 1), 4, np.int32)),
            2,
            (1, 3, 1, 2),
            "it looks beyond an axis of 4",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    at: T, axis: int, shape: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=message):
        looked_up(tmp_path, at, axis, shape)


def test_an_activation_of_constants_is_computed(tmp_path: Path) -> None:
    one, other = np.float32([-2, 3, 9, 1]), np.float32([1, 1, 1, -4])
    tensors = [real("x", 1, 4), real("a", 4, data=one), real("b", 4, data=other), real("c", 4), real("y", 1, 4)]
    operators = [
        O("ADD", [1, 2], [3], "AddOptions", {"FusedActivationFunction": 3}),
        O("ADD", [0, 3], [4], "AddOptions"),
    ]
    graph = load(written(tmp_path, File(tensors, operators, [0], [4])))
    found = interpret.run(graph, {"x": np.zeros((1, 4), np.float32)})[graph.outputs[0]]
    np.testing.assert_array_equal(found[0], np.clip(one + other, 0, 6))


def test_ends_that_are_offsets_are_refused_of_constants_too(tmp_path: Path) -> None:
    numbers = [T(n, (1,), "int32", (), (), data=np.array([v], np.int32)) for n, v in (("b", 1), ("e", 2), ("s", 1))]
    tensors = [real("x", 1, 2), real("k", 4, data=np.arange(4, dtype=np.float32)), *numbers, real("p", 2)]
    tensors.append(real("y", 1, 2))
    operators = [
        O("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"Offset": True}),
        O("ADD", [0, 5], [6], "AddOptions"),
    ]
    with pytest.raises(ModelError, match="its ends are offsets"):
        load(written(tmp_path, File(tensors, operators, [0], [6])))

"""Quantiles, vectors, replaced parts and other compositions of Keras' operations, compared with Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_integers, expect_same

pytestmark = pytest.mark.oracle

Build = Callable[[Any, Any], Any]
EDGES = [-1.0, -0.25, 0.5, 0.5, 1.25]


def rising(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def as_floats(ops: Any, x: Any) -> Any:
    return ops.cast(x, "float32")


CASES: dict[str, Build] = {
    "array_split": lambda K, x: K.concatenate(K.array_split(x, 3, axis=1)[::-1], 1),
    "cross": lambda K, x: K.cross(x[:, :, :3], x[:, :, 1:4]),
    "cross of pairs": lambda K, x: K.cross(x[:, :, :2], x[:, :, 2:4]),
    "cross of a pair and three": lambda K, x: K.cross(x[:, :, :2], x[:, :, 2:5]),
    "cross along rows": lambda K, x: K.cross(x[:, :3], x[:, 2:], axis=1),
    "cumprod": lambda K, x: K.cumprod(x, axis=2),
    "digitize": lambda K, x: as_floats(K, K.digitize(x, np.array(EDGES))),
    "dstack": lambda K, x: K.dstack([x, x * 2]),
    "fliplr": lambda K, x: K.fliplr(x),
    "fmod": lambda K, x: K.fmod(x * 5, 1.5),
    "fmod of two": lambda K, x: K.fmod(x * 5, x + 4),
    "heaviside": lambda K, x: K.heaviside(K.relu(x), rising(6)),
    "heaviside of two": lambda K, x: K.heaviside(K.relu(x), x),
    "hsplit": lambda K, x: K.hsplit(x, [2])[1],
    "dsplit": lambda K, x: K.dsplit(x, 2)[1],
    "isclose": lambda K, x: as_floats(K, K.isclose(x, K.round(x), rtol=0.1, atol=0.1)),
    "median": lambda K, x: K.median(x, axis=1),
    "median of all": lambda K, x: K.median(x, axis=(1, 2), keepdims=True),
    "multi_hot": lambda K, x: K.multi_hot(K.cast(K.abs(x[:, 0]) * 2, "int32"), 7),
    "percentile": lambda K, x: K.percentile(x, 80, axis=-1),
    "ptp": lambda K, x: K.ptp(x, axis=2, keepdims=True),
    "low quantile": lambda K, x: K.quantile(x, 0.1, axis=2),
    "lower": lambda K, x: K.percentile(x, 45, axis=2, method="lower"),
    "higher": lambda K, x: K.percentile(x, 40, axis=1, method="higher"),
    "midpoint": lambda K, x: K.percentile(x, 75, axis=2, method="midpoint"),
    "nearest": lambda K, x: K.percentile(x, 75, axis=2, method="nearest"),
    "greatest": lambda K, x: K.quantile(x, 1.0, axis=2),
    **{f"rot90 {k}": lambda K, x, k=k: K.rot90(x[:, :, :5], k, axes=(1, 2)) for k in (1, 2, 3)},
    "rot90 of rows": lambda K, x: K.rot90(x, 3, axes=(1, 2)),
    "rot90 back": lambda K, x: K.rot90(x, 1, axes=(2, 1)),
    "sinc": lambda K, x: K.sinc(K.relu(x)),
    "slice_update": lambda K, x: K.slice_update(x, [0, 1, 2], x[:, :2, :3] * 2),
    "slice_update by constants": lambda K, x: K.slice_update(x, [0, 0, 5], rising(1, 5, 1)),
    "slice_update of all": lambda K, x: K.slice_update(x, [0, 0, 0], x * 2),
    "trapezoid": lambda K, x: K.trapezoid(x, dx=0.5, axis=1),
}
OTHERS: dict[str, tuple[Build, Callable[[np.ndarray], np.ndarray]]] = {
    "rot90": (lambda K, x: K.rot90(x, 2, axes=(1, 2)), lambda x: np.rot90(x, 2, (1, 2))),
    **{
        f"searchsorted {side}": (
            lambda K, x, side=side: K.searchsorted(np.array(EDGES, np.float32), K.round(x * 4) / 4, side=side),
            lambda x, side=side: np.searchsorted(EDGES, np.round(x * 4) / 4, side=side),
        )
        for side in ("left", "right")
    },
}
"""What Keras on TensorFlow does not compute, or not of several axes."""
REFUSED: dict[str, tuple[Build, str]] = {
    "median of a batch": (lambda K, x: K.median(x), "it works over all axes, including the batch"),
    "several quantiles": (lambda K, x: K.quantile(x, [0.1, 0.5], axis=1), "it takes several quantiles"),
    "another method": (lambda K, x: K.quantile(x, 0.1, axis=1, method="lower"), "its method is not the linear one"),
    "an update of samples": (
        lambda K, x: K.slice_update(x, [1, 0, 0], x[:, :2]),
        r"it puts \(2, 6\) at \(1, 0, 0\) of \(5, 6\)",
    ),
    "a falling sequence": (
        lambda K, x: K.digitize(x, np.array(EDGES[::-1])),
        "its sequence is not one sorted list of numbers",
    ),
}


def model(keras: Any, build: Build) -> Any:
    x = keras.Input((5, 6), name="x")
    return keras.Model(x, build(keras.ops, x))


def numbers(count: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(count, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_they_are_as_keras_makes_them(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    expect_same(model(keras, CASES[case]), tmp_path, numbers(2))


@pytest.mark.parametrize("case", OTHERS)
def test_others_are_as_numpy_makes_them(case: str, tmp_path: Path) -> None:
    keras, (build, wanted) = pytest.importorskip("keras"), OTHERS[case]
    model(keras, build).save(tmp_path / "model.keras")
    x, graph = numbers(3), passes.run(load(tmp_path / "model.keras"))
    np.testing.assert_array_equal(interpret.run(graph, {"x": x})[graph.outputs[0]], wanted(x))


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    build, cause = REFUSED[case]
    model(keras, build).save(tmp_path / "model.keras")
    with pytest.raises(ModelError, match=cause):
        load(tmp_path / "model.keras")


@pytest.mark.slow
def test_integers_of_the_c(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")

    def build(ops: Any, x: Any) -> Any:
        return [
            ops.cross(x[:, :, :3], x[:, :, 3:]),
            ops.median(x, axis=2),
            ops.slice_update(x, [0, 1, 2], x[:, :2, :3] * 2),
            ops.trapezoid(x, axis=1),
        ]

    path = tmp_path / "model.keras"
    model(keras, build).save(path)
    expect_integers(path, {"x": numbers(64)}, tmp_path, (0.01, 1e-6))

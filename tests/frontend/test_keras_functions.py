"""Operations of Keras' that are formulas of others or layers with constant weights, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_files import functional, keras_bytes, layer, number, operation_bytes, put, wire

X = np.linspace(-2.1, 2.9, 60, dtype=np.float32).reshape(2, 5, 6)
HELD = np.linspace(-1, 1.5, 30, dtype=np.float32).reshape(5, 6)
SLOPES = np.linspace(0.5, 2, 6, dtype=np.float32)


def answer(path: Path, data: bytes, x: np.ndarray = X) -> np.ndarray:
    graph = load(put(path / "net.keras", data))
    return interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]


def computed(path: Path, class_name: str, *constants: np.ndarray, x: np.ndarray = X, **options: Any) -> np.ndarray:
    operands = [wire("x"), *(number(values) for values in constants)]
    return answer(path, operation_bytes(x.shape[1:], class_name, operands, **options), x)


@pytest.mark.parametrize(
    ("class_name", "function"),
    [
        ("Arctan", np.arctan),
        ("Arcsinh", np.arcsinh),
        ("Sinh", np.sinh),
        ("Cosh", np.cosh),
        ("Cbrt", np.cbrt),
        ("Deg2rad", np.deg2rad),
        ("SparseSigmoid", lambda x: np.clip((x + 1) / 2, 0, 1)),
        ("SparsePlus", lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x))),
    ],
)
def test_functions_of_one_number(class_name: str, function: Callable[[np.ndarray], np.ndarray], tmp_path: Path) -> None:
    np.testing.assert_allclose(computed(tmp_path, class_name), function(X), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("class_name", "function"), [("Arcsin", np.arcsin), ("Arccos", np.arccos), ("Arctanh", np.arctanh)]
)
def test_functions_of_small_numbers(class_name: str, function: Any, tmp_path: Path) -> None:
    np.testing.assert_allclose(computed(tmp_path, class_name, x=X / 3), function(X / 3), atol=1e-6, rtol=1e-5)


def test_angles_of_points_in_all_quadrants(tmp_path: Path) -> None:
    found = computed(tmp_path, "Arctan2", HELD[None])
    np.testing.assert_allclose(found, np.arctan2(X, HELD), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("axis", "wanted"), [(1, (X != 0).sum(1)), ([1, 2], (X != 0).sum((1, 2)))])
def test_elements_that_are_not_zero_are_counted(axis: Any, wanted: np.ndarray, tmp_path: Path) -> None:
    np.testing.assert_array_equal(computed(tmp_path, "CountNonzero", axis=axis).reshape(wanted.shape), wanted)


@pytest.mark.parametrize(
    ("axes", "other"), [(1, HELD.T), (2, HELD), ([[1], [0]], HELD), ([[1, 2], [0, 1]], HELD), ([[2], [-1]], HELD)]
)
def test_sums_of_products_with_a_constant(axes: Any, other: np.ndarray, tmp_path: Path) -> None:
    wanted = np.tensordot(X, other, axes)
    found = computed(tmp_path, "Tensordot", other, axes=axes)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)


@pytest.mark.parametrize("axes", [3, [[0], [0]], [[1, 1], [0, 0]], [[1], [0, 1]], [[9], [0]]])
def test_sums_over_axes_that_do_not_fit_are_refused(axes: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        computed(tmp_path, "Tensordot", HELD, axes=axes)


@pytest.mark.parametrize("equation", ["bij->bji", "bij->bj", "bij->b", "b...j->bj..."])
def test_an_einsum_of_one_tensor(equation: str, tmp_path: Path) -> None:
    data = operation_bytes((5, 6), "Einsum", [wire("x")], subscripts=equation)
    wanted = np.einsum(equation, X)
    np.testing.assert_allclose(answer(tmp_path, data).reshape(wanted.shape), wanted, atol=1e-5)


def test_convolutions_with_constant_kernels(tmp_path: Path) -> None:
    kernel = np.linspace(-1, 1, 3 * 6 * 2, dtype=np.float32).reshape(3, 6, 2)
    windows = np.stack([X[:, i : i + 3] for i in range(3)], 1)
    found = computed(tmp_path, "Conv", kernel, padding="valid", strides=1, data_format="channels_last")
    np.testing.assert_allclose(found, np.einsum("btkc,kco->bto", windows, kernel), atol=1e-5)
    found = computed(tmp_path, "DepthwiseConv", kernel[..., :1], padding="valid", strides=1)
    np.testing.assert_allclose(found, np.einsum("btkc,kc->btc", windows, kernel[..., 0]), atol=1e-5)


HUGE = np.full((1, 5, 6), 1e300)


@pytest.mark.parametrize(
    ("class_name", "operands", "options"),
    [
        ("Conv", [], {"padding": "valid"}),
        ("MaxPool", [number(HUGE)], {"pool_size": 2}),
        ("Hypot", [wire("x"), number(HUGE)], {}),
        ("Matmul", [wire("x"), number(np.ones((1, 2, 3, 4)))], {}),
        ("Slice", [wire("x"), 3], {"shape": [1, 2, 3]}),
        ("ExpandDims", [wire("x")], {"axis": [1, 1]}),
    ],
)
def test_odd_operands_are_refused(class_name: str, operands: Any, options: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        answer(tmp_path, operation_bytes((5, 6), class_name, operands, **options))


def normal(x: np.ndarray, axes: Any, epsilon: float, middle: bool, by: bool) -> np.ndarray:
    mean = x.mean(axes, keepdims=True)
    size = np.square(x - mean if by else x).mean(axes, keepdims=True)
    return (x - mean if middle else x) / np.sqrt(size + epsilon)


def test_normalizations_with_constants(tmp_path: Path) -> None:
    found = computed(tmp_path, "LayerNorm", SLOPES, HELD[0], axis=-1, epsilon=0.01)
    np.testing.assert_allclose(found, normal(X, -1, 0.01, True, True) * SLOPES + HELD[0], atol=1e-5)
    found = computed(tmp_path, "LayerNorm", HELD[:, 0], axis=1)
    np.testing.assert_allclose(found, normal(X, 1, 1e-7, True, True) * HELD[:, :1], atol=1e-5)
    found = computed(tmp_path, "RMSNorm", SLOPES, axis=-1)
    np.testing.assert_allclose(found, normal(X, -1, 1e-7, False, False) * SLOPES, atol=1e-5)
    found = computed(tmp_path, "BatchNorm", HELD[0], SLOPES, HELD[1], HELD[2], axis=-1, epsilon=0.01)
    np.testing.assert_allclose(found, (X - HELD[0]) / np.sqrt(SLOPES + 0.01) * HELD[2] + HELD[1], atol=1e-5)


def of_layer(path: Path, class_name: str, weight: np.ndarray, x: np.ndarray, **options: Any) -> np.ndarray:
    shape, role = [None, *x.shape[1:]], layer("InputLayer", "x", batch_shape=[None, *x.shape[1:]])
    spec = {**layer(class_name, "norm", **options), "name": "norm", "build_config": {"input_shape": shape}}
    spec = {**spec, "module": "keras.layers", "inbound_nodes": [{"args": [wire("x")], "kwargs": {}}]}
    config = functional([{**role, "name": "x", "inbound_nodes": []}, spec], ["x"], ["norm"])
    folder = {"RMSNormalization": "rms_normalization"}.get(class_name, "layer_normalization")
    return answer(path, keras_bytes(config, {f"layers/{folder}/vars/0": weight}), x)


@pytest.mark.parametrize(("axis", "weight"), [([-1], SLOPES), ([1], HELD[:, 0]), ([1, 2], HELD)])
def test_normalization_by_the_deviation_alone(axis: list[int], weight: np.ndarray, tmp_path: Path) -> None:
    found = of_layer(tmp_path, "LayerNormalization", weight, X, axis=axis, rms_scaling=True, epsilon=0.01)
    wanted = normal(X, tuple(axis), 0.01, False, True) * (weight[:, None] if axis == [1] else weight)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_scale_of_a_root_mean_square_is_of_the_last_axis(tmp_path: Path) -> None:
    """Whichever axis is normalized, as in Keras; once it was the normalized one's."""
    x = np.concatenate([X, X[:, :1]], 1)
    found = of_layer(tmp_path, "RMSNormalization", SLOPES, x, axis=[1], epsilon=0.01)
    np.testing.assert_allclose(found, normal(x, 1, 0.01, False, False) * SLOPES, atol=1e-5)

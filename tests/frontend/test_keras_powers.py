"""Powers, norms, products and masks of attention, compared with Keras of both generations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

CHANCE = np.random.default_rng(4)
Build = Callable[..., Any]

OF_ONE: dict[str, Build] = {
    "fraction": lambda K, x: K.abs(x) ** 2.5,
    "root": lambda K, x: K.abs(x) ** (1 / 3),
    "inverse": lambda K, x: x**-3,
    "nothing": lambda K, x: x**0,
    "of_a_number": lambda K, x: 2**x,
    "nan_to_num": lambda K, x: K.nan_to_num(K.log(x), nan=1.0, neginf=-2.0),
    "nan_to_num_of_infinity": lambda K, x: K.nan_to_num(1 / K.relu(x), posinf=7.0),
    "norm_1": lambda K, x: K.norm(x, ord=1, axis=1),
    "norm_infinity": lambda K, x: K.norm(x, ord=np.inf, axis=1),
    "norm_of_matrix": lambda K, x: K.norm(x, ord="fro", axis=(1, 2)),
    "normalize_1": lambda K, x: K.normalize(x, order=1),
    "normalize": lambda K, x: K.normalize(x * 1e-3, epsilon=1e-2),
}


@pytest.mark.parametrize("case", OF_ONE)
def test_operations_on_one_tensor(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3, 4))
    model = keras.Model(x, OF_ONE[case](keras.ops, x))
    given = CHANCE.normal(size=(3, 3, 4)).astype(np.float32)
    expect_same(model, tmp_path, given)


def test_powers_of_two_tensors(tmp_path: Path) -> None:
    """A negative base with a fraction as its exponent is no number."""
    keras = pytest.importorskip("keras")
    x, y = keras.Input((6,)), keras.Input((6,))
    model = keras.Model([x, y], x**y)
    bases = np.array([[-2, -2, -2, 0, 0, 3], [-1.5, 2, 0.5, -3, 1, 0]], np.float32)
    exponents = np.array([[3, 2, 0.5, 0, 2, 2.5], [-3, -2, 0.5, 0, 7, 1]], np.float32)
    expect_same(model, tmp_path, bases, exponents)


def test_a_power_of_a_negative_number_is_refused(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((6,))
    path = tmp_path / "model.keras"
    keras.Model(x, keras.ops.power(-2.0, x)).save(path)
    with pytest.raises(ModelError, match=r"it raises -2\.0 to the power a tensor\. Give it a tensor and a number"):
        load(path)


IN_TENSORFLOW: dict[str, Build] = {
    "matmul": lambda tf, x, y: tf.linalg.matmul(x, y, transpose_b=True),
    "matmul_of_turned": lambda tf, x, y: tf.matmul(x, y, transpose_a=True) + tf.matmul(y, x, True),
    "l2_normalize": lambda tf, x, y: [tf.math.l2_normalize(z * 1e-3, axis=-1, epsilon=1e-3) for z in (x, y)],
    "l2_normalize_all": lambda tf, x, y: tf.linalg.l2_normalize(x + y),
    "norm": lambda tf, x, y: tf.norm(x - y, axis=1),
    "pow": lambda tf, x, y: tf.pow(tf.abs(x), y),
}


@pytest.mark.parametrize("ending", ["h5", "keras"])
@pytest.mark.parametrize("case", IN_TENSORFLOW)
def test_operations_of_tensorflow(case: str, ending: str, tmp_path: Path) -> None:
    """The epsilon of l2_normalize bounds the sum of squares, not its root."""
    tensorflow, keras = pytest.importorskip("tensorflow"), pytest.importorskip("tf_keras")
    x, y = keras.Input((4, 4)), keras.Input((4, 4))
    model = keras.Model([x, y], IN_TENSORFLOW[case](tensorflow, x, y))
    given = [CHANCE.normal(size=(3, 4, 4)).astype(np.float32) for _ in "xy"]
    expect_same(model, tmp_path, *given, ending=ending)


ATTENTION: dict[str, tuple[Build, tuple[int, ...]]] = {
    "query_mask": (lambda layers, x, m: layers.GroupQueryAttention(3, 4, 2)(x, x, query_mask=m), (3,)),
    "value_mask": (lambda layers, x, m: layers.GroupQueryAttention(3, 4, 2)(x, x, value_mask=m), (3,)),
    "of_each_head": (lambda layers, x, m: layers.MultiHeadAttention(2, 4)(x, x, attention_mask=m), (2, 3, 3)),
    "of_any_head": (lambda layers, x, m: layers.MultiHeadAttention(2, 4)(x, x, attention_mask=m), (1, 3, 3)),
    "of_a_head_and_causal": (
        lambda layers, x, m: layers.MultiHeadAttention(2, 4)(x, x, attention_mask=m, use_causal_mask=True),
        (2, 3, 3),
    ),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_masks_of_attention(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    build, shape = ATTENTION[case]
    x, mask = keras.Input((3, 4)), keras.Input(shape, dtype="bool")
    model = keras.Model([x, mask], build(keras.layers, x, mask))
    given = CHANCE.normal(size=(4, 3, 4)).astype(np.float32)
    expect_same(model, tmp_path, given, CHANCE.normal(size=(4, *shape)) > -0.5)


BIASES = [
    ("abc,cd->abd", "b", (3, 4)),
    ("abc,cd->abd", "bd", (3, 4)),
    ("abc,bd->adc", "d", (2, 4)),
    ("abc,bd->adc", "c", (4, 4)),
]


@pytest.mark.parametrize(("equation", "bias_axes", "shape"), BIASES)
def test_biases_of_einsum_dense(equation: str, bias_axes: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3, 4))
    model = keras.Model(x, keras.layers.EinsumDense(equation, output_shape=shape, bias_axes=bias_axes)(x))
    layer = model.layers[1]
    layer.set_weights([CHANCE.normal(size=w.shape) for w in layer.get_weights()])
    expect_same(model, tmp_path, CHANCE.normal(size=(2, 3, 4)).astype(np.float32))


OF_EQUAL_SIZES: dict[str, Build] = {
    "bias": lambda keras, x: keras.layers.EinsumDense("abc,bd->adc", output_shape=(3, 3), bias_axes="d")(x),
    "constant": lambda keras, x: x + np.ones((1, 3, 1), np.float32),
}


@pytest.mark.parametrize("case", OF_EQUAL_SIZES)
def test_additions_on_which_the_backends_of_keras_differ_are_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3, 3))
    path = tmp_path / "model.keras"
    keras.Model(x, OF_EQUAL_SIZES[case](keras, x)).save(path)
    with pytest.raises(ModelError, match="along an axis on which Keras' backends differ"):
        load(path)

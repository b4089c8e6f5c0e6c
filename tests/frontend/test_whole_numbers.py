"""Whole numbers in Keras models: indices, classes, and what small types do."""

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
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

GENERATIONS = pytest.mark.parametrize("generation", ["keras", "tf_keras"])
CHANCE = np.random.default_rng(3)
Build = Callable[[Any, Any], Any]


@GENERATIONS
def test_an_embedding_drops_fractions_of_its_indices(generation: str, tmp_path: Path) -> None:
    """The mask is that of the number before: 0.5 is seen, and takes row 0."""
    keras = pytest.importorskip(generation)
    x = keras.Input((4,))
    hidden = keras.layers.Embedding(6, 3, mask_zero=True)(x)
    model = keras.Model(x, [hidden, keras.layers.GlobalAveragePooling1D()(hidden)])
    given = np.array([[0.0, 0.5, 1.7, 5.9], [3.5, 2.5, 0.49, 0.0]], np.float32)
    expect_same(model, tmp_path, given)


@pytest.mark.parametrize("kind", ["float32", "int32", "int64", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_an_embedding_counts_negative_indices_from_the_end(ending: str, kind: str, tmp_path: Path) -> None:
    """In Keras 3; in Keras 2 they fail. Fractions are dropped first: -0.5 takes row 0, -1.5 the last one."""
    keras = pytest.importorskip("keras")
    x = keras.Input((4,), dtype=kind)
    model = keras.Model(x, keras.layers.Embedding(6, 3, mask_zero=True)(x))
    given = np.array([[0.0, -1.0, 4.0, -6.0], [-3.0, -0.5, -1.5, 2.7]])
    expect_same(model, tmp_path, (given % 6 if kind in ("uint8", "bool") else given).astype(kind), ending=ending)


@pytest.mark.parametrize("kind", ["float32", "int32"])
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_negative_indices_in_quantized_models(form: str, kind: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3,), dtype=kind)
    model = keras.Model(x, keras.layers.Dense(3)(keras.layers.Flatten()(keras.layers.Embedding(700, 4)(x))))
    model.layers[1].set_weights([CHANCE.normal(size=(700, 4)).astype(np.float32)])
    path, samples = tmp_path / "model.keras", tmp_path / "samples.npz"
    model.save(path)
    given = CHANCE.integers(-700, 700, (200, 3)).astype(kind)
    np.savez(samples, x=given)
    graph = passes.run(load(path), form="int8")
    recipe = Recipe(form=form, source=Source(samples))
    quantized = quantize_with(graph, recipe, ranges_of(graph, recipe))
    wanted = np.asarray(model(given, training=False))
    found: Any = interpret.run(quantized, {quantized.inputs[0]: given})[quantized.outputs[0]]
    quant = quantized.tensors[quantized.outputs[0]].quant
    real = found if quant is None else (found - float(quant.zero_point)) * quant.scale
    assert np.linalg.norm(real - wanted) < (0.03 if form == "int8" else 0.01) * np.linalg.norm(wanted)


@pytest.mark.parametrize("mode", ["multi_hot", "one_hot", "count"])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (2, 1), (2, 2, 3)], ids=str)
def test_classes_of_any_shape(shape: tuple[int, ...], mode: str, tmp_path: Path) -> None:
    """What Keras 3 computes of larger tensors differs from the shape that it announces."""
    keras = pytest.importorskip("keras")
    x = keras.Input(shape)
    model = keras.Model(x, keras.layers.CategoryEncoding(5, output_mode=mode)(x))
    expect_same(model, tmp_path, CHANCE.uniform(0, 5, (4, *shape)).astype(np.float32))


@GENERATIONS
@pytest.mark.parametrize("mode", ["multi_hot", "count"])
def test_classes_with_fractions(generation: str, mode: str, tmp_path: Path) -> None:
    keras = pytest.importorskip(generation)
    x = keras.Input((3,))
    model = keras.Model(x, keras.layers.CategoryEncoding(5, output_mode=mode)(x))
    expect_same(model, tmp_path, np.array([[0.2, 1.9, 4.7], [1.5, 1.2, 2.0]], np.float32))


def test_one_hot_drops_fractions(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((3,))
    model = keras.Model(x, keras.ops.one_hot(x, 5))
    expect_same(model, tmp_path, np.array([[0.2, 1.9, 4.7], [-0.5, -1.5, 2.0]], np.float32))


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("float_edge", [False, True])
def test_quantization_leaves_columns_of_indices_whole(float_edge: bool, form: str, tmp_path: Path) -> None:
    """A table's classes and measures come in one input: a scale that holds all would make other classes of them."""
    keras = pytest.importorskip("keras")
    x = keras.Input((4,))
    classes = [keras.layers.Embedding(n, 4)(x[:, i]) for i, n in enumerate((50, 7))]
    measures = keras.layers.Normalization(mean=[0.0, 0.0], variance=[1e6, 1e-2])(x[:, 2:])
    small = keras.ops.cast(x[:, 1:2] > 3.0, "float32")
    y = keras.layers.Dense(3)(keras.layers.Concatenate()([*classes, measures, small]))
    model = keras.Model(x, y)
    for layer in model.layers:
        layer.set_weights([CHANCE.normal(size=held.shape) for held in layer.get_weights()])
    path, samples = tmp_path / "model.keras", tmp_path / "samples.npz"
    model.save(path)
    columns = [CHANCE.integers(0, n, 200) for n in (50, 7)] + [CHANCE.normal(size=200) * size for size in (1e3, 0.1)]
    given = np.stack(columns, axis=1).astype(np.float32)
    np.savez(samples, x=given)
    graph = passes.run(load(path), form="int8")
    recipe = Recipe(form=form, source=Source(samples), float_edge=float_edge)
    quantized = quantize_with(graph, recipe, ranges_of(graph, recipe))
    wanted = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    found: Any = interpret.run(quantized, {quantized.inputs[0]: given})[quantized.outputs[0]]
    quant = quantized.tensors[quantized.outputs[0]].quant
    real = found if quant is None else (found - float(quant.zero_point)) * quant.scale
    assert np.linalg.norm(real - wanted) < 0.03 * np.linalg.norm(wanted)


@pytest.mark.parametrize("float_edge", [False, True])
def test_quantization_leaves_indices_whole(float_edge: bool, tmp_path: Path) -> None:
    """Eight bits cannot tell a thousand words apart."""
    keras = pytest.importorskip("keras")
    x = keras.Input((3,))
    hidden = keras.layers.Embedding(1000, 4, mask_zero=True)(x)
    pooled = keras.layers.GlobalAveragePooling1D()(hidden)
    model = keras.Model(x, keras.layers.Dense(3)(pooled))
    model.layers[1].set_weights([CHANCE.normal(size=(1000, 4)).astype(np.float32)])
    path, samples = tmp_path / "model.keras", tmp_path / "samples.npz"
    model.save(path)
    given = CHANCE.integers(1, 1000, (200, 3)).astype(np.float32)
    given[::2, 2] = 0
    np.savez(samples, x=given)
    graph = passes.run(load(path))
    recipe = Recipe(source=Source(samples), float_edge=float_edge)
    quantized = quantize_with(graph, recipe, ranges_of(graph, recipe))
    assert quantized.tensors[quantized.inputs[0]].dtype == "float32"
    wanted = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    found: Any = interpret.run(quantized, {quantized.inputs[0]: given})[quantized.outputs[0]]
    quant = quantized.tensors[quantized.outputs[0]].quant
    if quant is not None:
        found = (found.astype(np.float32) - quant.zero_point) * quant.scale
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()


BYTES = CHANCE.integers(0, 256, (4, 6))
SIGNED = CHANCE.integers(-128, 128, (4, 6))
GIVEN = {
    "uint8": BYTES.astype(np.uint8),
    "int8": SIGNED.astype(np.int8),
    "uint16": (BYTES * 250).astype(np.uint16),
    "int16": (SIGNED * 200).astype(np.int16),
}
ARITHMETIC: dict[str, Build] = {
    "sum": lambda keras, x: x + x,
    "product": lambda keras, x: x * 3,
    "difference": lambda keras, x: x - 100,
    "several": lambda keras, x: (x + x) * x - 3,
    "rest": lambda keras, x: (x + x) % 7,
    "chosen": lambda keras, x: keras.ops.where(x > 5, x + x, x) + x,
    "maximum": lambda keras, x: keras.ops.max(x + x, axis=1),
    "moved": lambda keras, x: keras.layers.Flatten()(keras.layers.Reshape((2, 3))(x)) + x,
    "layer": lambda keras, x: keras.layers.Add()([x, x]),
    "concatenated": lambda keras, x: keras.layers.Concatenate()([x, x + x]) * 2,
    "wider": lambda keras, x: keras.ops.cast(x, "int32") * 3 + 70000,
    "floats": lambda keras, x: keras.layers.Rescaling(1 / 255)(x + x) * 2,
    "dense": lambda keras, x: keras.layers.Dense(3)(x + x),
    "random": lambda keras, x: keras.layers.RandomFlip()(keras.ops.reshape(x, (-1, 2, 1, 3))) * 2,
    "contrast": lambda keras, x: keras.layers.RandomContrast(0.1)(keras.ops.reshape(x, (-1, 2, 1, 3))) * 2,
    "resized": lambda keras, x: keras.layers.Resizing(4, 4)(keras.ops.reshape(x, (-1, 2, 3, 1))) * 2,
    "cubic": lambda keras, x: keras.ops.image.resize(keras.ops.reshape(x, (-1, 2, 3, 1)), (4, 5), "bicubic"),
}


@pytest.mark.parametrize("case", ARITHMETIC)
@pytest.mark.parametrize("kind", GIVEN)
def test_small_integers_wrap(kind: str, case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((6,), dtype=kind)
    expect_same(keras.Model(x, ARITHMETIC[case](keras, x)), tmp_path, GIVEN[kind], atol=0.02)


@GENERATIONS
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("given", ["float32", "int32"])
def test_casts_keep_the_lowest_bits(given: str, kind: str, generation: str, tmp_path: Path) -> None:
    keras, tensorflow = pytest.importorskip(generation), pytest.importorskip("tensorflow")
    cast = tensorflow.cast if generation == "tf_keras" else keras.ops.cast
    x = keras.Input((6,), dtype=given)
    model = keras.Model(x, cast(cast(x, kind), "float32"))
    low, high = (0, 127) if given == "float32" else (-90000, 90000)  # casts of other floats are undefined in C
    expect_same(model, tmp_path, CHANCE.uniform(low, high, (4, 6)).astype(given))


IN_TENSORFLOW: dict[str, Build] = {
    "sum": lambda tf, x: tf.reduce_sum(x, axis=1),
    "product": lambda tf, x: x * 3,
    "mean_of_wide": lambda tf, x: tf.reduce_mean(tf.cast(x, "int32") - 100, axis=1),
    "wider": lambda tf, x: tf.cast(tf.cast(x, "int16") * 300, "int32"),
}


@pytest.mark.parametrize("case", IN_TENSORFLOW)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_small_integers_in_tensorflow(kind: str, case: str, tmp_path: Path) -> None:
    """Its means of integers are integers."""
    tensorflow, keras = pytest.importorskip("tensorflow"), pytest.importorskip("tf_keras")
    x = keras.Input((6,), dtype=kind)
    expect_same(keras.Model(x, IN_TENSORFLOW[case](tensorflow, x)), tmp_path, GIVEN[kind], ending="h5")


def test_the_pool_of_integers_in_keras_2(tmp_path: Path) -> None:
    keras = pytest.importorskip("tf_keras")
    x = keras.Input((6, 1), dtype="int32")
    model = keras.Model(x, keras.layers.GlobalAveragePooling1D()(x))
    expect_same(model, tmp_path, SIGNED.astype(np.int32)[..., None], ending="h5")


REFUSED: dict[str, tuple[Build, str]] = {
    "power": (lambda keras, x: x**3, "it computes in integers of the type uint8, which are too narrow for it"),
    "average": (
        lambda keras, x: keras.layers.Average()([x, x]),
        "it computes in integers of the type uint8, which are too narrow for it",
    ),
    "array": (
        lambda keras, x: x + np.arange(6),
        "it computes with integers of the type uint8 and numbers of an unknown type",
    ),
    "number": (
        lambda keras, x: keras.ops.where(x > 5, x, -1),
        "it computes with -1, which is no number of the type uint8",
    ),
    "moments": (lambda keras, x: list(keras.ops.moments(x, [1])), "it normalizes integers, which Keras does"),
    "booleans": (lambda keras, x: keras.ops.diff(x > 3, axis=1), "it computes with booleans, and gives booleans"),
    "product of booleans": (
        lambda keras, x: keras.ops.dot(x > 3, np.ones((6, 2), bool)),
        "it computes with booleans, and gives booleans",
    ),
    "product": (
        lambda keras, x: keras.ops.dot(x, np.ones((6, 2), np.uint8)),
        "it computes in integers of the type uint8, which are too narrow for it",
    ),
    "norm": (lambda keras, x: keras.layers.LayerNormalization()(x), "it normalizes integers, which Keras does"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_small_integers_are_too_narrow_for_is_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    build, cause = REFUSED[case]
    x = keras.Input((6,), dtype="uint8")
    path = tmp_path / "model.keras"
    keras.Model(x, build(keras, x)).save(path)
    with pytest.raises(ModelError, match=cause) as caught:
        load(path)
    assert "Cast its input to float32 first" in str(caught.value)


def test_a_sum_in_integers_is_refused(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input((6,))
    path = tmp_path / "model.keras"
    keras.Model(x, keras.ops.cumsum(x, axis=1, dtype="int32")).save(path)
    with pytest.raises(ModelError, match="its dtype is an integer"):
        load(path)

"""Sizes that the user gives to inputs whose shapes the files of Keras leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import cli, passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.frontend.import_options import ImportOptions
from nnbuild.ops import interpret
from tests.frontend.keras_files import called, dense, functional, h5_bytes, input_layer, layer, put, sequential

WEIGHTS = {"a": [np.ones((3, 2), np.float32), np.zeros(2, np.float32)]}


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """A dense layer over rows of 3, any number of them."""
    config = functional([called(input_layer("x", [None, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    return put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS))


def sized(path: Path, **shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    graph = load(path, options=ImportOptions(shapes))
    return [graph.tensors[name].shape for name in (*graph.inputs, *graph.outputs)]


def test_open_axes_take_the_sizes_given(opened: Path) -> None:
    assert sized(opened, x=(1, 5, 3)) == [(5, 3), (5, 2)]


def test_sizes_in_the_file_may_be_changed(tmp_path: Path) -> None:
    config = functional([called(input_layer("x", [7, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    assert sized(put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS)), x=(1, 5, 3)) == [(5, 3), (5, 2)]


def test_a_sequential_model_that_has_no_shape_takes_one(tmp_path: Path) -> None:
    path = put(tmp_path / "net.h5", h5_bytes(sequential(dense("a", 2), layer("Flatten", "f")), WEIGHTS))
    assert sized(path, a_input=(1, 5, 3)) == [(5, 3), (10,)]


def test_the_command_line_takes_sizes(opened: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(opened), "--shape", "x=1,5,3"]) == 0
    assert "input x: float32 [5, 3]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("x", (1, 5), r"--shape x: it has 3 axes, \[None, None, 3\] in the file, .* Give a number for each"),
        ("x", (4, 5, 3), r"--shape x: its first axis is the batch, .* Give it sizes: --shape x=1,5,3"),
        ("x", (1, 5, 4), r"layer 'a': its kernel has the shape \(3, 2\) in the file, but needs \(4, 2\)"),
        ("y", (1, 5, 3), r"layer 'x': its shape \(None, 3\) leaves axes open, .* Give it sizes: --shape x=1,N,3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(opened: Path, name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(NnbuildError, match=message):
        sized(opened, **{name: shape})


def test_an_unknown_input_is_refused(tmp_path: Path) -> None:
    config = functional([called(input_layer("x", [7, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    with pytest.raises(NnbuildError, match=r"--shape y: the inputs of the model are x\."):
        sized(put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS)), y=(1, 5, 3))


def mixed(keras: Any) -> Any:
    """Convolutions down and up again, joined, and a mean over everything."""
    m, image = keras.layers, keras.Input((None, None, 3), name="image")
    down = m.Conv2D(8, 3, padding="same", strides=2, activation="relu")(image)
    up = m.MaxPooling2D(2)(m.Conv2D(8, 3, padding="same")(down))
    up = m.Conv2DTranspose(6, 2, strides=2)(up)
    up = m.Conv2DTranspose(4, 3, strides=2, padding="same")(m.Concatenate()([down, up]))
    return keras.Model(image, [m.Conv2D(2, 1, activation="sigmoid")(up), m.GlobalAveragePooling2D()(up)])


@pytest.mark.oracle
@pytest.mark.parametrize("integers", [False, True])
def test_a_converted_network_is_tflites_own_at_any_size(integers: bool, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    keras.utils.set_random_seed(4)
    model, chance, path = mixed(keras), np.random.default_rng(4), tmp_path / "net.tflite"
    traced = tf.function(model, input_signature=[tf.TensorSpec((1, None, None, 3), tf.float32, "image")])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced.get_concrete_function()], tf.Module())
    if integers:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([chance.random((1, 16, 16, 3), np.float32)] for _ in range(4))
    path.write_bytes(converter.convert())
    given = chance.random((1, 20, 28, 3), np.float32)
    graph = passes.run(load(path, options=ImportOptions({"image": given.shape})))
    found = interpret.run(graph, {graph.inputs[0]: given})
    reference = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    reference.resize_tensor_input(0, given.shape)
    reference.allocate_tensors()
    reference.set_tensor(0, given)
    reference.invoke()
    for name, detail in zip(graph.outputs, reference.get_output_details(), strict=True):
        wanted = reference.get_tensor(detail["index"])
        np.testing.assert_allclose(found[name].reshape(wanted.shape), wanted, atol=0 if integers else 1e-5)


@pytest.mark.oracle
def test_a_network_that_was_saved_without_a_size_is_keras_own_at_any(tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(3)
    image = keras.Input((None, None, 3), name="image")
    model = keras.applications.MobileNetV2(include_top=False, weights=None, alpha=0.35, input_tensor=image)
    path = tmp_path / "net.keras"
    model.save(path)
    given = np.random.default_rng(3).uniform(0, 1, (1, 65, 83, 3)).astype(np.float32)
    graph = passes.run(load(path, options=ImportOptions({"image": given.shape})))
    (found,) = (interpret.run(graph, {graph.inputs[0]: given})[name] for name in graph.outputs)
    wanted = np.asarray(model(given))
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)

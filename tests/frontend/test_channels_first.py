"""Layers with data_format="channels_first", compared with Keras, and what is left of their transposes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_integers, expect_same

pytestmark = pytest.mark.oracle

Build = Callable[[Any], Any]
FIRST = "channels_first"
CASES: dict[str, tuple[tuple[int, ...], Build]] = {
    "Conv1D": ((3, 11), lambda L: L.Conv1D(4, 3, activation="relu")),
    "causal Conv1D": ((3, 11), lambda L: L.Conv1D(4, 3, padding="causal")),
    "Conv2D": ((3, 9, 7), lambda L: L.Conv2D(5, 3, padding="same", strides=2)),
    "Conv2D of one channel": ((1, 9, 7), lambda L: L.Conv2D(1, (3, 2), dilation_rate=2)),
    "Conv2D in groups": ((4, 9, 7), lambda L: L.Conv2D(6, 3, groups=2)),
    "Conv2D with softmax": ((4, 6, 7), lambda L: L.Conv2D(6, 3, activation="softmax")),
    "Conv1D with glu": ((3, 10), lambda L: L.Conv1D(6, 3, activation="glu")),
    "Conv3D": ((3, 5, 6, 7), lambda L: L.Conv3D(4, 2, padding="same")),
    "Conv1DTranspose": ((3, 11), lambda L: L.Conv1DTranspose(4, 3, strides=2)),
    "Conv2DTranspose": ((3, 5, 7), lambda L: L.Conv2DTranspose(4, 3, strides=2, padding="same")),
    "Conv3DTranspose": ((3, 3, 4, 5), lambda L: L.Conv3DTranspose(4, 3, strides=2)),
    "DepthwiseConv1D": ((3, 11), lambda L: L.DepthwiseConv1D(3, depth_multiplier=2)),
    "DepthwiseConv2D": ((3, 9, 7), lambda L: L.DepthwiseConv2D(3, depth_multiplier=2)),
    "SeparableConv1D": ((3, 11), lambda L: L.SeparableConv1D(5, 3)),
    "SeparableConv2D": ((3, 9, 7), lambda L: L.SeparableConv2D(4, 3)),
    "MaxPooling1D": ((3, 11), lambda L: L.MaxPooling1D(2)),
    "MaxPooling2D": ((3, 9, 7), lambda L: L.MaxPooling2D((2, 3))),
    "AveragePooling2D": ((3, 9, 7), lambda L: L.AveragePooling2D(3, 2, padding="same")),
    "AveragePooling3D": ((3, 5, 6, 7), lambda L: L.AveragePooling3D(2)),
    "GlobalAveragePooling1D": ((3, 7), lambda L: L.GlobalAveragePooling1D()),
    "GlobalMaxPooling2D": ((3, 9, 7), lambda L: L.GlobalMaxPooling2D()),
    "GlobalAveragePooling2D": ((3, 9, 7), lambda L: L.GlobalAveragePooling2D(keepdims=True)),
    "GlobalAveragePooling3D": ((3, 2, 9, 7), lambda L: L.GlobalAveragePooling3D()),
    "AdaptiveAveragePooling2D": ((3, 8, 6), lambda L: L.AdaptiveAveragePooling2D(2)),
    "AdaptiveMaxPooling1D": ((3, 8), lambda L: L.AdaptiveMaxPooling1D(4)),
    "UpSampling2D": ((3, 4, 5), lambda L: L.UpSampling2D((2, 3), interpolation="bilinear")),
    "UpSampling3D": ((3, 4, 5, 2), lambda L: L.UpSampling3D((1, 2, 3))),
    "ZeroPadding1D": ((3, 4), lambda L: L.ZeroPadding1D((1, 2))),
    "ZeroPadding2D": ((3, 4, 5), lambda L: L.ZeroPadding2D(((1, 2), (0, 3)))),
    "ZeroPadding3D": ((3, 4, 5, 2), lambda L: L.ZeroPadding3D(((1, 2), (0, 3), (1, 0)))),
    "Cropping2D": ((3, 4, 5), lambda L: L.Cropping2D(((1, 0), (2, 1)))),
    "Cropping3D": ((3, 4, 5, 6), lambda L: L.Cropping3D(((1, 0), (2, 1), (0, 3)))),
    "SpatialDropout2D": ((3, 4, 5), lambda L: L.SpatialDropout2D(0.5)),
    "Flatten": ((3, 4, 5), lambda L: L.Flatten()),
    "Flatten of a row": ((5,), lambda L: L.Flatten()),
    "ConvLSTM1D": ((3, 2, 6), lambda L: L.ConvLSTM1D(4, 3)),
    "ConvLSTM2D": ((3, 2, 6, 5), lambda L: L.ConvLSTM2D(4, 3, return_sequences=True)),
    "Resizing": ((3, 5, 7), lambda L: L.Resizing(8, 4)),
    "CenterCrop": ((3, 5, 7), lambda L: L.CenterCrop(3, 4)),
    "STFTSpectrogram": ((1, 90), lambda L: L.STFTSpectrogram(frame_length=32)),
    "STFTSpectrogram as images": ((1, 90), lambda L: L.STFTSpectrogram(frame_length=32, expand_dims=True)),
}


def rising(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


OPERATIONS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "conv": ((2, 9, 7), lambda K, x: K.conv(x, rising(3, 2, 2, 6), padding="same", data_format=FIRST)),
    "conv of volumes": ((2, 4, 5, 6), lambda K, x: K.conv(x, rising(3, 2, 2, 2, 3), data_format=FIRST)),
    "depthwise_conv": ((3, 9), lambda K, x: K.depthwise_conv(x, rising(3, 3, 2), data_format=FIRST)),
    "separable_conv": (
        (3, 9, 7),
        lambda K, x: K.separable_conv(x, rising(3, 2, 3, 1), rising(1, 1, 3, 4), data_format=FIRST),
    ),
    "average_pool": ((3, 5, 7), lambda K, x: K.average_pool(x, 3, 2, "same", data_format=FIRST)),
    "max_pool": ((3, 5, 7, 6), lambda K, x: K.max_pool(x, 2, data_format=FIRST)),
    "adaptive_average_pool": ((3, 6, 4), lambda K, x: K.adaptive_average_pool(x, (2, 4), data_format=FIRST)),
    "depth_to_space": ((8, 3, 5), lambda K, x: K.depth_to_space(x, 2, data_format=FIRST)),
    "space_to_depth": ((3, 4, 6), lambda K, x: K.space_to_depth(x, 2, data_format=FIRST)),
    "extract_patches": ((3, 5, 7), lambda K, x: K.image.extract_patches(x, 2, data_format=FIRST)),
    "resize": ((3, 5, 7), lambda K, x: K.image.resize(x, (4, 9), data_format=FIRST)),
    "rgb_to_grayscale": ((3, 5, 7), lambda K, x: K.image.rgb_to_grayscale(x, data_format=FIRST)),
}


@pytest.fixture(autouse=True)
def convolutions_of_any_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor TensorFlow computes these by oneDNN alone, which other tests switch off."""
    tensorflow = pytest.importorskip("tensorflow")
    for name in ("convolution", "conv_transpose"):
        monkeypatch.setattr(tensorflow.nn, name, partial(by_the_last, tensorflow, getattr(tensorflow.nn, name)))


def by_the_last(
    tensorflow: Any, function: Build, x: Any, kernel: Any, *others: Any, data_format: str, **named: Any
) -> Any:
    """A convolution of TensorFlow, with the channels last inside."""
    if not data_format.startswith("NC"):
        return function(x, kernel, *others, data_format=data_format, **named)
    rank = len(x.shape)
    if len(others) == 2 and not isinstance(others[1], str):  # a transposed one is told the shape of its result
        (rows, channels, *places), strides = others
        others = ([rows, *places, channels], strides)
    x = tensorflow.transpose(x, (0, *range(2, rank), 1))
    made = function(x, kernel, *others, data_format=f"N{data_format[2:]}C", **named)
    return tensorflow.transpose(made, (0, rank - 1, *range(1, rank - 1)))


class Layers:
    """Keras' layers with the channels first."""

    def __init__(self, keras: Any) -> None:
        self.keras = keras

    def __getattr__(self, name: str) -> Build:
        kind = getattr(self.keras.layers, name)

        def make(*positional: Any, **named: Any) -> Any:
            return kind(*positional, **named, data_format=FIRST)

        return make


def shaken(keras: Any, model: Any, seed: int = 3) -> Any:
    """The model with other weights than those it begins with."""
    chance = np.random.default_rng(seed)
    model.set_weights([w + chance.uniform(0.0, 0.3, w.shape).astype(np.float32) for w in model.get_weights()])
    return model


@pytest.mark.parametrize("case", CASES)
def test_layers_are_as_keras_makes_them(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    shape, build = CASES[case]
    x = keras.Input(shape)
    expect_same(shaken(keras, keras.Model(x, build(Layers(keras))(x))), tmp_path, samples(shape, 2))


@pytest.mark.parametrize("case", OPERATIONS)
def test_operations_are_as_keras_makes_them(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    shape, build = OPERATIONS[case]
    x = keras.Input(shape)
    expect_same(keras.Model(x, build(keras.ops, x)), tmp_path, samples(shape, 2))


@pytest.mark.parametrize("first", [True, False])
def test_transposed_convolutions(first: bool, tmp_path: Path) -> None:
    """Keras itself confuses the options of these where they are in a model."""
    keras = pytest.importorskip("keras")
    shape, kernel = ((3, 5, 4), rising(3, 2, 2, 3)) if first else ((5, 3), rising(3, 2, 3))
    options = {"data_format": FIRST} if first else {"padding": "same", "output_padding": 1}
    x = keras.Input(shape)
    keras.Model(x, keras.ops.conv_transpose(x, kernel, 2, **options)).save(tmp_path / "model.keras")
    given, graph = samples(shape, 2), passes.run(load(tmp_path / "model.keras"))
    wanted = np.asarray(keras.ops.conv_transpose(given, kernel, 2, **options))
    np.testing.assert_allclose(interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]], wanted, atol=1e-5)


@pytest.mark.parametrize("ending", ["h5", "keras"])
def test_files_of_keras_2(ending: str, tmp_path: Path) -> None:
    """Written on TensorFlow, whose own convolutions do not compute them on a processor: pools and sums do."""
    tensorflow, keras = pytest.importorskip("tensorflow"), pytest.importorskip("tf_keras")
    x = keras.Input((3, 6, 8))
    y = keras.layers.BatchNormalization(axis=1)(keras.layers.ZeroPadding2D(1, data_format=FIRST)(x))
    y = tensorflow.nn.bias_add(y, tensorflow.constant([1.0, -2.0, 3.0]), "NCHW")
    y = keras.layers.UpSampling2D(2, data_format=FIRST)(y)
    y = keras.layers.Flatten(data_format=FIRST)(keras.layers.Cropping2D(2, data_format=FIRST)(y))
    expect_same(keras.Model(x, keras.layers.Dense(4)(y)), tmp_path, samples((3, 6, 8), 2), ending=ending)


def _residual(keras: Any, kind: Any, axis: int, x: Any) -> Any:
    """Convolutions, normalizations, a sum, a concatenation, a gate over the channels, pools and a dense layer."""
    layers, flat = keras.layers, keras.layers.Reshape
    x = layers.ReLU()(layers.BatchNormalization(axis=axis)(kind.Conv2D(8, 3, padding="same")(x)))
    y = layers.BatchNormalization(axis=axis)(kind.Conv2D(8, 3, padding="same", use_bias=False)(x))
    x = layers.Activation("relu")(layers.Add()([x, y]))
    x = layers.Concatenate(axis=axis)([x, kind.DepthwiseConv2D(3, padding="same")(x)])
    gate = layers.Dense(16, activation="sigmoid")(kind.GlobalAveragePooling2D()(x))
    x = layers.Multiply()([x, flat((16, 1, 1) if axis == 1 else (1, 1, 16))(gate)])
    x = kind.MaxPooling2D(2)(layers.PReLU(shared_axes=[2, 3] if axis == 1 else [1, 2])(x))
    x = kind.Flatten()(x)
    return layers.Dense(5, activation="softmax")(layers.Dropout(0.5)(x))


def _segmenting(keras: Any, kind: Any, axis: int, x: Any) -> Any:
    layers = keras.layers
    small = kind.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
    large = kind.UpSampling2D(2)(kind.ZeroPadding2D(1)(kind.Cropping2D(1)(small)))
    x = layers.Concatenate(axis=axis)([x, large, kind.Conv2DTranspose(4, 2, strides=2)(small)])
    x = layers.LeakyReLU()(kind.SeparableConv2D(7, 3, padding="same")(x) * 0.5 + 0.25)
    return layers.Softmax(axis=axis)(kind.Conv2D(4, 1)(x))


NETS = {"residual": (_residual, (3, 10, 14), 1), "segmenting": (_segmenting, (3, 10, 14), 2)}


def pair(keras: Any, net: str) -> tuple[Any, Any]:
    """A network with the channels first, and the same with the channels last, whose input is transposed."""
    build, shape, _ = NETS[net]
    keras.utils.set_random_seed(1)
    x = keras.Input(shape, name="image")
    first = shaken(keras, keras.Model(x, build(keras, Layers(keras), 1, x)))
    y = keras.layers.Permute((2, 3, 1))(x)
    last = keras.Model(x, build(keras, keras.layers, -1, y))
    last.set_weights([w.transpose(1, 2, 0) if w.ndim == 3 else w for w in first.get_weights()])  # those of a PReLU
    return first, last


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Both files of each network."""
    keras, folder = pytest.importorskip("keras"), tmp_path_factory.mktemp("files")
    made = {}
    for net in NETS:
        made[net] = folder / f"{net}_first.keras", folder / f"{net}_last.keras"
        for model, path in zip(pair(keras, net), made[net], strict=True):
            model.save(path)
    return made


def samples(shape: tuple[int, ...], count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(count, *shape)).astype(np.float32)


@pytest.mark.parametrize("net", NETS)
def test_nets(net: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    expect_same(pair(keras, net)[0], tmp_path, samples(NETS[net][1], 2))


@pytest.mark.parametrize("net", NETS)
def test_few_transposes_are_left(net: str, files: dict[str, tuple[Path, Path]]) -> None:
    """One at the input, one at an output that is an image; the rest is the same net with the channels last."""
    first, last = (passes.run(load(path)) for path in files[net])
    steps = [[op.kind for op in graph.ops if op.kind not in ("transpose", "reshape")] for graph in (first, last)]
    assert steps[0] == steps[1]
    assert sum(op.kind == "transpose" for op in first.ops) == NETS[net][2]


def cost(path: Path, form: str, x: np.ndarray) -> float:
    """Priced instructions of everything but transposes."""
    plan = nnbuild.compile(path, board="stm32", quantize=form, calibrate={"image": x}).compiled.plan
    return sum(step.choice.price.cycles for step in plan.steps if step.kind != "transpose")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("net", NETS)
def test_it_costs_what_the_channels_last_cost(net: str, form: str, files: dict[str, tuple[Path, Path]]) -> None:
    first, last = (cost(path, form, samples(NETS[net][1], 8)) for path in files[net])
    assert first == last


@pytest.mark.parametrize("net", NETS)
@pytest.mark.slow
def test_integers_of_the_c(net: str, files: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    expect_integers(files[net][0], {"image": samples(NETS[net][1], 8)}, tmp_path, (0.05, 1e-4))

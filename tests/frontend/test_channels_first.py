"""Layers with data_format="channels_first", compared with Keras, and what is left of their transposes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_same
from tests.support.many import run_many

pytestmark = pytest.mark.oracle

Build = Callable[[Any], Any]
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


class Layers:
    """Keras' layers with the channels first."""

    def __init__(self, keras: Any) -> None:
        self.keras = keras

    def __getattr__(self, name: str) -> Build:
        kind = getattr(self.keras.layers, name)

        def make(*positional: Any, **named: Any) -> Any:
            return kind(*positional, **named, data_format="channels_first")

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
    given = np.random.default_rng(3).normal(size=(2, *shape)).astype(np.float32)
    expect_same(shaken(keras, keras.Model(x, build(Layers(keras))(x))), tmp_path, given)


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


def samples(net: str, count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(count, *NETS[net][1])).astype(np.float32)


@pytest.mark.parametrize("net", NETS)
def test_nets(net: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    expect_same(pair(keras, net)[0], tmp_path, samples(net, 2))


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


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("net", NETS)
def test_it_costs_what_the_channels_last_cost(net: str, form: str, files: dict[str, tuple[Path, Path]]) -> None:
    first, last = (cost(path, form, samples(net, 8)) for path in files[net])
    assert first == last


@pytest.mark.parametrize("net", NETS)
def test_integers_of_the_c(net: str, files: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    x = samples(net, 8)
    exact = load(files[net][0])
    wanted = interpret.run(exact, {"image": x}, "float64")[exact.outputs[0]]
    runs = []
    for form in ("int8", "int16"):
        graph = nnbuild.compile(files[net][0], quantize=form, calibrate={"image": x}, io="float").compiled.graph
        runs.append((graph, {graph.inputs[0]: x}))
    for (graph, given), found, error in zip(runs, run_many(runs, tmp_path), (0.05, 1e-4), strict=True):
        whole = interpret.run(graph, given)
        (name,) = graph.outputs
        np.testing.assert_array_equal(found[name], whole[name])
        assert np.square(whole[name] - wanted).mean() < error * wanted.var()

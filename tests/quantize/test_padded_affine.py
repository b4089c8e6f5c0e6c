"""A factor and a summand ahead of padded convolutions: no step of their own in integers, and as near to the floats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.model.graph import Constant, Graph
from nnbuild.ops import interpret
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.reshape import Reshape
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from nnbuild.quantize.report import measure
from nnbuild.quantize.rewrite import rewrite
from tests.passes.test_passes import Chain, kinds

SAME = ((1, 1), (1, 1))


def network(kind: str, one: bool, rng: np.random.Generator) -> Graph:
    """A normalization of bytes of an image or of sensors ahead of a padded convolution, with a near-dead channel."""
    channels = 1 if one else 3
    chain = Chain((9, 7, channels) if kind != "conv1d" else (24, channels), seed=3)
    chain.add(Affine(len(chain.tensors["x"].shape) - 1), scale=(channels,), shift=(channels,))
    if kind == "conv1d":
        chain.add(Reshape((1, 24, channels)))
        chain.add(Conv2D(padding=((0, 0), (2, 2)), clamp=Clamp(0.0, None)), kernel=(1, 5, channels, 6), bias=(6,))
    elif kind == "depthwise":
        chain.add(DepthwiseConv2D(padding=SAME), kernel=(3, 3, channels, 2), bias=(2 * channels,))
    else:
        chain.add(Conv2D((2, 2), padding=((0, 1), (0, 1)), clamp=Clamp(0.0, 6.0)), kernel=(3, 3, channels, 6))
    chain.add(Reshape((int(np.prod(chain.tensors[chain.last].shape)),)))
    chain.add(Dense(), kernel=(chain.tensors[chain.last].shape[0], 4), bias=(4,))
    graph = chain.graph()
    mean, deviation = rng.uniform(100, 140, channels), rng.uniform(40, 70, channels)
    changed = {"scale0": 1 / deviation, "shift0": -mean / deviation}
    (name,) = (op.constants["kernel"] for op in graph.ops if op.kind in ("conv2d", "depthwise_conv2d"))
    kernel = graph.constants[name].data * 0.3
    kernel[..., -1] *= 1e-4
    changed[name] = kernel
    constants = {n: Constant(n, np.asarray(v, np.float32)) for n, v in changed.items()}
    return replace(graph, constants={**graph.constants, **constants})


def error(floats: Graph, integers: Graph, samples: np.ndarray) -> float:
    """The mean error of the outputs, as a share of their deviation."""
    want = interpret.run(floats, {"x": samples})[floats.outputs[0]]
    name = integers.outputs[0]
    x, y = integers.tensors["x"].quant, integers.tensors[name].quant
    assert x is not None and y is not None
    low, high = np.iinfo(integers.tensors["x"].dtype).min, np.iinfo(integers.tensors["x"].dtype).max
    steps = np.clip(np.round(samples / x.scale) + x.zero_point, low, high).astype(integers.tensors["x"].dtype)
    found = interpret.run(integers, {"x": steps})[name].astype(np.float64)
    return float(np.abs((found - y.zero_point) * y.scale - want).mean() / want.std())


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("kind", ["conv1d", "conv2d", "depthwise"])
def test_a_normalization_ahead_of_a_padded_convolution_has_no_step(kind: str, one: bool, form: str) -> None:
    rng = np.random.default_rng(8)
    graph = passes.run(network(kind, one, rng))
    assert "affine" in kinds(graph)  # of floats the zeros around would be others
    samples = rng.integers(0, 256, (200, *graph.tensors["x"].shape)).astype(np.float32)
    ranges = calibrate(graph, lambda: iter([{"x": samples}]), "minmax", 8)
    made = quantize_with(graph, Recipe(form), ranges)
    assert "affine" not in kinds(made)
    assert ("pad" in kinds(made)) == (not one or form == "int16")
    plain = rewrite(graph, ranges, {}, form, False)
    assert "affine" in kinds(plain)
    assert error(graph, made, samples) <= 1.1 * error(graph, plain, samples) + 1e-5


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("kind", ["conv1d", "conv2d", "depthwise"])
def test_the_report_leaves_out_what_is_no_layers_output_any_more(kind: str, one: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    graph = passes.run(network(kind, one, rng))
    np.savez(tmp_path / "x.npz", x=rng.integers(0, 256, (50, *graph.tensors["x"].shape)).astype(np.float32))
    recipe = Recipe("int8", source=Source(tmp_path / "x.npz"))
    loss = measure(graph, quantize_with(graph, recipe, ranges_of(graph, recipe)), recipe.source)
    assert loss.layers[-1].sqnr > loss.layers[0].sqnr > 15

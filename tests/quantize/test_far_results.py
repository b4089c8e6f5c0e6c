"""Results far beyond the bounds of their clamp, or so far apart that a softmax is one of its scores: never wrapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.support.compiled import run_graph
from tests.support.graphs import single

SHAPE, BOUNDS = (3, 3, 4), Clamp(0.0, 6.0)
CASES: dict[str, tuple[Attributes, int, dict[str, Array]]] = {
    "a clamp": (Activation("clamp", (0.0, 6.0)), 1, {}),
    "a sum": (Binary("add", BOUNDS), 1, {"right": np.ones((1,))}),
    "a product": (Binary("multiply", BOUNDS), 2, {}),
    "a minimum": (Binary("minimum"), 2, {}),
    "factors": (Affine(2, BOUNDS), 1, {"scale": np.ones(4), "shift": np.ones(4)}),
    "conv2d": (Conv2D(clamp=BOUNDS), 1, {"kernel": np.ones((3, 3, 4, 4)), "bias": np.zeros(4)}),
    "depthwise": (DepthwiseConv2D(clamp=BOUNDS), 1, {"kernel": np.ones((3, 3, 4, 1)), "bias": np.zeros(4)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_a_bounded_result_does_not_wrap(name: str, form: str, tmp_path: Path) -> None:
    attributes, count, constants = CASES[name]
    graph = single(attributes, [SHAPE] * count, constants)
    low = np.random.default_rng(1).random((40, 1, 1, 1)) < 0.5
    sign = np.broadcast_to(np.where(low, 1.0 if name == "a minimum" else -1.0, 1.0), (40, *SHAPE))
    given = {"x0": np.float32(sign * np.linspace(4e8, 1e9, 40)[:, None, None, None])}
    if count == 2:
        given["x1"] = np.float32(np.abs(given["x0"]) if name == "a product" else np.ones_like(sign))
    wanted = interpret.run(graph, given)["y0"]
    made = quantize_with(graph, Recipe(form=form, float_edge=True), calibrate(graph, lambda: [given], "minmax", 8))
    (out,) = made.outputs
    found = interpret.run(made, given)[out]
    np.testing.assert_array_equal(run_graph(made, given, tmp_path)[out], found)
    assert np.abs(found - wanted).max() < 0.05
    assert made.notes[0].startswith("layer 'op': its results may lie too far beyond their range, ") or name == "factors"
    assert made.notes[0].endswith("for integers, and it is computed in floats")


def test_scores_so_far_apart_that_one_is_all_do_not_wrap(tmp_path: Path) -> None:
    graph = single(Softmax(), [(5,)])
    scores = np.float32(np.random.default_rng(1).permuted(np.tile(np.linspace(-1e6, 1e6, 5), (20, 1)), axis=1))
    made = quantize_with(graph, Recipe(form="int16"), calibrate(graph, lambda: [{"x0": scores}], "minmax", 8))
    (out,) = made.outputs
    held = {"x0": np.int16(np.round(scores / 1e6 * 32767))}
    found = interpret.run(made, held)[out]
    np.testing.assert_array_equal(found, interpret.run(graph, {"x0": scores})["y0"])
    np.testing.assert_array_equal(run_graph(made, held, tmp_path)[out], found)

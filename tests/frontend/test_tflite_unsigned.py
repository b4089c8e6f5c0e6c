"""Files that compute in uint8, as TensorFlow 1 converts networks with fake quantization: TFLite's bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from tests.frontend.test_tflite_detections import given as detected
from tests.frontend.test_tflite_zoo import reference
from tests.frontend.tflite_files import O, T, to_bytes
from tests.fuzz.tflite_detection_seeds import BOXES, anchors, detector, settings
from tests.support.compiled import run_graph

SAMPLES = 60
IMAGE = (1, 9, 10, 6)
Make = Callable[[Any, list[Any], "Draw"], Any]
Draw = Callable[..., Any]
"""Constants of a shape, or with two numbers, weights quantized between these."""


def stepped(x: Any, low: float, high: float) -> Any:
    import tensorflow as tf

    return tf.quantization.fake_quant_with_min_max_args(x, min=low, max=high)


def conv(size: int, stride: int = 1, padding: str = "SAME", dilations: int = 1) -> Make:
    def make(tf: Any, given: list[Any], draw: Draw) -> Any:
        weights = draw(size, size, 6, 5, between=(-0.7, 0.4))
        sums = tf.nn.conv2d(given[0], weights, stride, padding, dilations=dilations)
        return stepped(tf.nn.relu6(sums + draw(5)), 0, 3)

    return make


def depthwise(size: int, stride: int, times: int = 1) -> Make:
    def make(tf: Any, given: list[Any], draw: Draw) -> Any:
        weights = draw(size, size, 6, times, between=(-0.2, 0.9))
        sums = tf.nn.depthwise_conv2d(given[0], weights, [1, stride, stride, 1], "SAME") + draw(6 * times)
        return stepped(sums, -2, 2.5)

    return make


def average(size: int, stride: int, padding: str) -> Make:
    return lambda tf, given, draw: stepped(tf.nn.avg_pool2d(given[0], size, stride, padding), -1, 1)


def joined(tf: Any, given: list[Any], draw: Draw) -> Any:
    """Of different scales, which the join evens out."""
    once = stepped(tf.nn.relu(tf.nn.conv2d(given[0], draw(1, 1, 6, 5, between=(-0.7, 0.4)), 1, "SAME")), 0, 3.1)
    return stepped(tf.concat([given[0], once], 3), -1.3, 2)


def dense(tf: Any, given: list[Any], draw: Draw) -> Any:
    rows = tf.reshape(given[0], (1, 540))
    return tf.nn.softmax(stepped(tf.matmul(rows, draw(540, 9, between=(-0.1, 0.2))) + draw(9), -3, 4))


def block(tf: Any, given: list[Any], draw: Draw) -> Any:
    """What most networks consist of."""
    inner = depthwise(3, 1)(tf, [conv(3, 2)(tf, given, draw)], lambda *shape, **more: draw(*_five(shape), **more))
    outer = stepped(tf.nn.conv2d(inner, draw(1, 1, 5, 5, between=(-0.3, 0.9)), 1, "SAME") + draw(5), -2, 3)
    pooled = stepped(tf.nn.avg_pool2d(stepped(inner + outer, -3, 4), 4, 1, "VALID"), -3, 4)
    return stepped(tf.reduce_mean(pooled, [1, 2]), -3, 4)


def _five(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(5 if size == 6 else size for size in shape)


NETWORKS: dict[str, Make] = {
    "conv 1": conv(1),
    "conv 3 by 2": conv(3, 2),
    "conv 5": conv(5, 1, "VALID"),
    "dilated": conv(3, 1, "SAME", 2),
    "depthwise 3": depthwise(3, 1),
    "depthwise 5 by 2": depthwise(5, 2),
    "depthwise twice": depthwise(3, 1, 2),
    "average 2": average(2, 2, "VALID"),
    "average 3": average(3, 1, "SAME"),
    "average 4": average(4, 2, "SAME"),
    "average 8": average(8, 1, "VALID"),
    "maximum": lambda tf, given, draw: tf.nn.max_pool2d(given[0], 3, 2, "SAME"),
    "sum": lambda tf, given, draw: stepped(given[0] + draw(6, between=(-0.7, 0.4)), -1.5, 1.7),
    "product": lambda tf, given, draw: stepped(given[0] * draw(6, between=(-0.7, 0.4)), -0.6, 0.7),
    "padded": lambda tf, given, draw: tf.pad(given[0], [[0, 0], [1, 2], [2, 1], [0, 0]]),
    "logistic": lambda tf, given, draw: stepped(tf.sigmoid(given[0]), 0, 255 / 256),
    "leaky": lambda tf, given, draw: stepped(tf.nn.leaky_relu(given[0], 0.1), -1, 1),
    "mean": lambda tf, given, draw: stepped(tf.reduce_mean(given[0], [1, 2]), -0.6, 0.7),
    "up": lambda tf, given, draw: stepped(
        tf.nn.conv2d_transpose(given[0], draw(3, 3, 4, 6, between=(-0.7, 0.4)), (1, 18, 20, 4), 2), -2, 2
    ),
    "joined": joined,
    "dense": dense,
    "block": block,
}
QUICK = ("conv 5", "depthwise 3", "average 4", "joined", "dense", "block")


def written(make: Make, folder: Path) -> Path:
    import tensorflow as tf

    chance = np.random.default_rng(4)

    def draw(*shape: int, between: tuple[float, float] | None = None) -> Any:
        values = tf.constant(chance.normal(0, 0.3, shape).astype(np.float32))
        return values if between is None else stepped(values, *between)

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder(tf.float32, IMAGE, "image")
        made = make(tf, [stepped(given, -1, 1)], draw)
        converter = v1.lite.TFLiteConverter.from_session(session, [given], [made])
        converter.inference_type = converter.inference_input_type = converter.inference_output_type = tf.uint8
        converter.quantized_input_stats = {"image": (127.5, 127.5)}
        path = folder / "unsigned.tflite"
        path.write_bytes(converter.convert())
    return path


def inputs() -> Array:
    """Also constant images."""
    values = np.random.default_rng(6).integers(0, 256, (SAMPLES, *IMAGE[1:])).astype(np.uint8)
    values[:3] = np.array([0, 128, 255], np.uint8).reshape(-1, 1, 1, 1)
    return values


def found(graph: Graph, folder: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    samples = {graph.inputs[0]: inputs()}
    return interpret.run(graph, samples), run_graph(graph, samples, folder)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.full) for n in NETWORKS])
def test_bits_equal_those_of_tflite(name: str, tmp_path: Path) -> None:
    path = written(NETWORKS[name], tmp_path)
    graph = passes.run(load(path))
    assert [graph.tensors[end].dtype for end in (*graph.inputs, *graph.outputs)] == ["uint8", "uint8"]
    (wanted,) = reference(path, [[row] for row in inputs()])
    for values in found(graph, tmp_path):
        np.testing.assert_array_equal(values[graph.outputs[0]].reshape(wanted.shape), wanted)


@pytest.mark.oracle
def test_operators_without_a_rule_are_refused(tmp_path: Path) -> None:
    import tensorflow as tf

    path = written(lambda _, given, draw: tf.compat.v1.image.resize_bilinear(given[0], (18, 20)), tmp_path)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert caught.value.cause == "it computes in uint8, for which nnbuild has no rule."
    assert "int8" in caught.value.next_step


def test_detections_of_unsigned_bytes(tmp_path: Path) -> None:
    """Boxes, scores and anchors in bytes are taken as the numbers they mean."""
    boxes, scores = (values.astype(np.float32) for values in detected("int8"))
    plain = detector(settings())
    made = []
    for dtype in ("uint8", "float32"):
        kind: dict[str, Any] = {"dtype": dtype, "scales": (0.05,), "zeros": (128,)}
        kind = kind if dtype == "uint8" else {"dtype": dtype, "scales": ()}
        places = np.rint(anchors() * 255).astype(np.uint8)
        data = places if dtype == "uint8" else places.astype(np.float32) * np.float32(1 / 255)
        ends = [T(name, tensor.shape, **kind) for name, tensor in zip(("boxes", "scores"), plain.tensors, strict=False)]
        fixed = T("anchors", (BOXES, 4), dtype, (1 / 255,) if dtype == "uint8" else (), (0,), data=data)
        inner = T("inner", plain.tensors[1].shape, **kind)
        tensors = [*ends, fixed, *plain.tensors[3:], inner]
        last = replace(plain.operators[0], inputs=[0, 7, 2])
        path = tmp_path / f"{dtype}.tflite"
        path.write_bytes(to_bytes(replace(plain, tensors=tensors, operators=[O("RELU", [1], [7]), last])))
        graph = load(path)
        given = [values + 128 if dtype == "uint8" else values * np.float32(0.05) for values in (boxes, scores)]
        samples = [values.astype(dtype) for values in given]
        values = interpret.run(graph, dict(zip(graph.inputs, samples, strict=True)))
        assert graph.notes == ()
        made.append([values[output] for output in graph.outputs])
    for one, other in zip(*made, strict=True):
        np.testing.assert_allclose(one, other, 1e-6, 1e-7)
    assert (made[0][3] > 2).all()

"""Squared distances between one sample and constant points, for nearest neighbours and Gaussian kernels."""

from __future__ import annotations

from math import inf

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.data_movement import as_shape, joined
from nnbuild.frontend.onnx.products import weighted_sums
from nnbuild.frontend.onnx.records import GraphRecord, Node
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.model.graph import Array
from nnbuild.ops.layout import Value

AT_A_TIME = 4096
"""Differences held at a time."""


def from_products(call: Call, x: Value, points: Array) -> Value:
    """|x|^2 - 2 x p + |p|^2 for each point: little memory, but the rounding of squares, which the points' mean as the
    origin keeps small."""
    origin = points.astype(np.float64).mean(axis=0).astype(np.float32)
    x, points = combined(call, "subtract", x, origin), points - origin
    own = reduced(call, call.activated(x, "square"), "sum", [1], True)
    products = weighted_sums(call, x, -2 * points, (points.astype(np.float64) ** 2).sum(axis=1))
    return call.activated(combined(call, "add", products, own), "clamp", (0.0, inf))


def from_differences(call: Call, x: Value, points: Array) -> Value:
    """Exact; some points at a time, because it needs memory for their differences."""
    some = max(1, AT_A_TIME // points.shape[1])
    parts = [_differences(call, x, points[at : at + some]) for at in range(0, len(points), some)]
    return joined(call, parts, 1)


def _differences(call: Call, x: Value, points: Array) -> Value:
    apart = call.activated(combined(call, "subtract", x, points), "square")
    sums = reduced(call, apart, "sum", [1], False)
    return call.of(call.seen(sums.name, (len(points),)), (1, len(points)))


def scanned(call: Call, graph: GraphRecord) -> bool:
    """Whether a Scan only collects the distances of one sample from constant points, as scikit-learn's nearest
    neighbours are exported; then they are computed together."""
    nodes = [node for node in graph.nodes if node.kind != "Identity"]
    if [node.kind for node in nodes] != ["Sub", "ReduceSumSquare"] or len(graph.nodes) != 4 or not call.is_constant(1):
        return False
    x, points = call.any(0), call.constant(1)
    plain = isinstance(x, Value) and x.is_number and len(x.shape) == 2 and x.shape[0] == 1
    if not plain or points.ndim != 2 or points.dtype != np.float32 or not _squares(nodes[0], nodes[1], graph):
        return False
    x = call.real(0)
    made = from_differences(call, x, points)
    call.put(x)
    call.put(as_shape(call, made, (len(points), 1)), 1)
    return True


def _squares(difference: Node, squares: Node, graph: GraphRecord) -> bool:
    """Whether the body sums the squares of its inputs' difference along the last axis."""
    axes = squares.attributes["axes"].integers if "axes" in squares.attributes else None
    if axes is None and len(squares.inputs) == 2 and squares.inputs[1] in graph.constants:
        axes = tuple(graph.constants[squares.inputs[1]].reshape(-1).tolist())
    kept = "keepdims" not in squares.attributes or squares.attributes["keepdims"].integer
    inputs, moved = [port.name for port in graph.inputs], {n.outputs[0]: n.inputs[0] for n in graph.nodes}
    ends = [moved.get(port.name) for port in graph.outputs]
    return (
        axes in ((1,), (-1,))
        and not kept
        and len(inputs) == 2
        and sorted(difference.inputs) == sorted(inputs)
        and squares.inputs[0] == difference.outputs[0]
        and ends == [inputs[0], squares.outputs[0]]
    )


def cdist(call: Call) -> None:
    """onnxruntime's CDist, as scikit-learn's nearest neighbours use it."""
    metric = call.text("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise call.unsupported(f"its metric is {metric!r}")
    x = call.real(0)
    if not call.is_constant(1) or len(x.shape) != 2 or x.shape[0] != 1:
        raise call.unsupported("it does not measure one sample against constant points")
    points = call.as_floats(call.constant(1), "points")
    call.expect(points.ndim == 2 and points.shape[1] == x.shape[1], "its points do not have the sample's features.")
    squares = from_differences(call, x, points)
    call.put(call.activated(squares, "sqrt") if metric == "euclidean" else squares)


OPERATORS = {"CDist": cdist}

"""Category layers: bucketizing numbers, and encoding classes as one-hot or multi-hot."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.operation_selection import as_kind
from nnbuild.ops.compare import Compare
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape

MODES = ("multi_hot", "one_hot", "count")
MOST_BOUNDS = 255
"""The maximum count in 8 bits."""
MOST_CLASSES = 1 << 16


def _encoding(call: Call) -> str:
    mode = call.config.choice("output_mode", "multi_hot", MODES)
    if len(call.inputs) > 1 or "count_weights" in call.named:
        raise call.config.error("it is called with count_weights.", "Multiply its output instead.")
    count = call.config.integer("num_tokens")
    if not 0 < count <= MOST_CLASSES:
        raise call.config.error(f"it has {count} classes, not 1 to {MOST_CLASSES}.", "Use an Embedding instead.")
    return encoded(call, call.input, count, mode)


def encoded(call: Call, x: str, count: int, mode: str) -> str:
    """Encodes classes as ones among `count` numbers: one row each, or all along an axis in one row. That is the first
    axis after the batch: Keras joins the last one of larger tensors in the shape that it announces alone."""
    shape = call.builder.shape(x)
    if shape[-1:] == (1,) and (mode == "one_hot" or len(shape) == 1):
        shape = shape[:-1]
    wide = call.one(Reshape((*shape, 1)), as_kind(call, x, "int32"))
    classes = call.constant(f"classes {count}", lambda: np.arange(count, dtype=np.int32))
    ones = call.builder.as_float(call.one(Compare("equal"), wide, right=classes))
    if mode == "one_hot" or not shape:
        return ones
    return call.one(Reduce("sum" if mode == "count" else "max", 0, 1), ones)


def _discretization(call: Call) -> str:
    """Counts the bounds that are not above the number."""
    bounds = call.config.values.get("bin_boundaries")
    bounds = bounds if isinstance(bounds, list) else []
    known = all(isinstance(b, int | float) and np.isfinite(b) for b in bounds)
    if not known or not 0 < len(bounds) <= MOST_BOUNDS:
        raise call.config.error(
            f"it has no bin_boundaries of 1 to {MOST_BOUNDS} numbers.",
            "Give the ones that adapt() found: Discretization(bin_boundaries=adapted.bin_boundaries).",
        )
    mode = call.config.choice("output_mode", "int", ("int", *MODES))
    sides = call.constant("bounds", lambda: np.asarray(bounds, np.float32))
    above = call.one(Compare("greater_equal"), call.one(Reshape((*call.shape, 1)), call.input), right=sides)
    total = call.one(Reduce("sum", len(call.shape), 1), call.builder.as_float(above))
    number = call.convert(total, INT32)
    return number if mode == "int" else encoded(call, number, len(bounds) + 1, mode)


LAYERS = {
    "CategoryEncoding": LayerKind(single(_encoding), takes_whole=True),
    "Discretization": LayerKind(single(_discretization)),
}

"""Embedding and masking: table look-ups, and masks of steps."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import apply
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, Wire, single
from nnbuild.frontend.keras_layers.operation_selection import truth
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Array
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.gather import Gather
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape


def _embedding(call: Call) -> str:
    size = call.config.integer("input_dim"), call.config.integer("output_dim")
    whole = call.builder.tensor(call.input).is_whole
    rows = call.convert(call.input if whole else apply(call, call.input, ("floor", ())), INT32)
    y = call.one(Gather(), rows, table=call.weight("embeddings", size))
    if call.config.flag("mask_zero", False):
        call.builder.masks[y] = truth(call, Wire(call.input)).name
    return y


def _embedding_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(("embeddings",))


def _masking(call: Call) -> str:
    """A step is valid if any of its features differs from the mask value; invalid steps become zeros."""
    if len(call.shape) < 2:
        raise call.config.error(f"it masks steps of {call.shape}, which has none.", "Leave it out.")
    left_out = np.float32(call.config.number("mask_value", 0.0))

    def value() -> Array:
        return np.full((1,), left_out, np.float32)

    different = call.one(Compare("not_equal"), call.input, right=call.constant("mask value", value))
    steps = call.one(Reduce("max", len(call.shape) - 1, 1), different)
    y = call.input
    if left_out != 0:
        counted = call.builder.as_float(call.one(Reshape((*call.shape[:-1], 1)), steps))
        y = call.one(Binary("multiply"), y, counted)
    else:
        y = call.builder.copied(y)
    call.builder.masks[y] = steps
    return y


LAYERS = {
    "Embedding": LayerKind(single(_embedding), _embedding_weights, takes_whole=True),
    "Masking": LayerKind(single(_masking)),
}

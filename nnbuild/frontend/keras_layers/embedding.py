"""Embedding and masking: table look-ups, and masks of steps."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import apply
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, Wire, single
from nnbuild.frontend.keras_layers.normalization import scaled
from nnbuild.frontend.keras_layers.operation_selection import as_kind, truth
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Array
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.dense import Dense
from nnbuild.ops.gather import Gather
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.whole import Whole

UNSIGNED = ("uint8", "uint16")


def _embedding(call: Call) -> str:
    size = call.config.integer("input_dim"), call.config.integer("output_dim")
    rows = _from_the_end(call, size[0]) if call.dialect.keras3 else _from_the_first(call)
    y = call.one(Gather(), rows, table=call.weight("embeddings", size))
    if call.config.flag("mask_zero", False):
        call.builder.masks[y] = truth(call, Wire(call.input)).name
    return y


def _reversible(call: Call) -> str:
    """In reverse, a product with the table, or with a kernel of its own."""
    if call.named.get("reverse") is not True:
        return _embedding(call)
    rows, size = call.config.integer("input_dim"), call.config.integer("output_dim")
    if call.config.flag("tie_weights", True):
        kernel = call.constant(
            "turned embeddings", lambda: np.ascontiguousarray(call.values("embeddings", (rows, size)).T)
        )
    else:
        kernel = call.weight("reverse_embeddings", (size, rows))
    y = call.one(Dense(), call.builder.as_float(call.input), kernel=kernel)
    if "logit_soft_cap" not in call.config:
        return y
    most = call.config.number("logit_soft_cap")
    if most <= 0:
        raise call.config.wrong("logit_soft_cap", "a number above 0")
    bent = apply(call, scaled(call, y, "divide", "cap", np.asarray(most)), ("tanh", ()))
    return scaled(call, bent, "multiply", "cap", np.asarray(most))


def _reversible_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(("embeddings",) if config.flag("tie_weights", True) else ("embeddings", "reverse_embeddings"))


def _from_the_first(call: Call) -> str:
    """Keras 2 has no meaning for negative indices."""
    whole = call.builder.tensor(call.input).is_whole
    return call.convert(call.input if whole else apply(call, call.input, ("floor", ())), INT32)


def _from_the_end(call: Call, count: int) -> str:
    """Keras 3 counts negative indices from the end."""
    rows = as_kind(call, call.input, "int32")
    if call.builder.integers.get(call.input) in UNSIGNED or call.builder.tensor(call.input).dtype == "int8":
        return rows
    zero = call.constant("first row", lambda: np.zeros((1,), np.int32))
    size = call.constant(f"rows {count}", lambda: np.full((1,), count, np.int32))
    negative = call.one(Compare("less"), rows, right=zero)
    made = call.builder.one(Select(), (negative, call.one(Whole("add"), rows, right=size), rows))
    return made if call.shape else call.one(Reshape(()), made)


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
    "ReversibleEmbedding": LayerKind(single(_reversible), _reversible_weights, takes_whole=True),
    "Masking": LayerKind(single(_masking)),
}

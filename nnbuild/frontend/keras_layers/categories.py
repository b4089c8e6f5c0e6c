"""Category layers: bucketizing numbers, looking them up, and encoding classes as one-hot or multi-hot."""

from __future__ import annotations

import re

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.checked_config import Config, is_integer
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.operation_selection import as_kind
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Array
from nnbuild.ops.arg import Arg
from nnbuild.ops.compare import Compare
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape

MODES = ("multi_hot", "one_hot", "count")
MOST_BOUNDS = 255
"""The maximum count in 8 bits."""
MOST_CLASSES = 1 << 16
FEWER = "Use fewer, or compute it outside the model."


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
    number = places_among(call, call.input, np.asarray(bounds), "greater_equal")
    return number if mode == "int" else encoded(call, number, len(bounds) + 1, mode)


def places_among(call: Call, x: str, bounds: Array, function: str) -> str:
    """For each number, how many of the bounds it exceeds in that sense."""
    if not 0 < bounds.size <= MOST_BOUNDS:
        raise call.config.error(f"it compares with {bounds.size} numbers; nnbuild counts at most {MOST_BOUNDS}.", FEWER)
    shape = call.builder.shape(x)
    sides = call.constant("bounds", lambda: np.asarray(bounds, np.float32))
    above = call.one(Compare(function), call.one(Reshape((*shape, 1)), x), right=sides)
    return call.convert(call.one(Reduce("sum", len(shape), 1), call.builder.as_float(above)), INT32)


def _lookup(call: Call) -> str:
    """The place of a whole number in a vocabulary; 0 for all others, behind which the vocabulary begins."""
    for key in ("invert", "pad_to_max_tokens", "sparse", "idf_weights"):
        call.config.refuse(key, "Leave it out.")
    if call.config.get("mask_token") is not None or call.config.one("num_oov_indices", 1) != 1:
        raise call.config.error(
            "it has a mask_token, or not one index for unknown numbers.", "Use mask_token=None and num_oov_indices=1."
        )
    mode = call.config.choice("output_mode", "int", ("int", *MODES))
    known = _vocabulary(call.config, call.stored.text("vocabulary"))
    keys = call.constant("vocabulary", lambda: np.asarray(known, np.int32))
    x = as_kind(call, call.input, "int32")
    found = call.one(Compare("equal"), call.one(Reshape((*call.shape, 1)), x), right=keys)
    place = call.one(Arg("max", len(call.shape)), found)
    return place if mode == "int" else encoded(call, place, len(known), mode)


def _vocabulary(config: Config, adapted: str | None) -> list[int]:
    """The numbers by place, given or found by adapt(), which a .keras file holds as lines. What stands for unknown
    ones, at 0, is in none of them, so it is found for itself alone."""
    words, unknown = config.get("vocabulary"), config.one("oov_token", -1)
    if words is None and adapted is not None and re.fullmatch(r"(-?[0-9]{1,10}\n?)+", adapted):
        words = [int(line) for line in adapted.split()]
    fits = isinstance(words, list) and all(is_integer(word) and abs(word) < 2**31 for word in words)
    if not fits or not 0 < len(words) <= MOST_CLASSES:
        raise config.error(
            f"it has no vocabulary of 1 to {MOST_CLASSES} whole numbers of 32 bits.",
            "Save the model as .keras, which keeps what adapt() found, or give it: "
            "IntegerLookup(vocabulary=adapted.get_vocabulary()).",
        )
    known = [unknown, *(words[1:] if words[0] == unknown else words)]
    if len(set(known)) < len(known) or abs(unknown) >= 2**31:
        raise config.error("its vocabulary holds a number twice, or its oov_token.", "Give each number once.")
    return known


LAYERS = {
    "CategoryEncoding": LayerKind(single(_encoding), takes_whole=True),
    "Discretization": LayerKind(single(_discretization)),
    "IntegerLookup": LayerKind(
        single(_lookup), weights=lambda config, layers: WeightTree(text="vocabulary"), takes_whole=True
    ),
}

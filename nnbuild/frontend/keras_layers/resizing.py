"""Image resizing with each of Keras's interpolations."""

from __future__ import annotations

from functools import partial

import numpy as np

from nnbuild.frontend.keras_layers.base import Call
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import CENTRES, nearest
from nnbuild.ops.base import Pair
from nnbuild.ops.dense import Dense
from nnbuild.ops.pick import Pick
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.transpose import Transpose

INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
CUBIC = -0.5
LONGEST, MOST = 1 << 16, 1 << 24
"""Maximum pixels of an image side, and maximum weights of a resizing matrix."""
TABLE = 1024
"""TensorFlow rounds an output's position between two inputs to this fraction."""


def resized(call: Call, x: str, size: Pair, interpolation: str) -> str:
    height, width = call.builder.shape(x)[:2]
    if (height, width) == size:
        return x
    weights = max(height * size[0], width * size[1]) if interpolation == "bicubic" else 0
    if max(size) > LONGEST or weights > MOST:
        raise call.config.error(f"it makes images of {size[0]} by {size[1]}: too large.", "Make them smaller.")
    if interpolation == "bilinear":
        return call.one(ResizeBilinear(size), x)
    if interpolation == "nearest":
        places = [tuple(nearest(n, m, CENTRES).tolist()) for n, m in zip((height, width), size, strict=True)]
        return call.one(Pick((places[0], places[1], None)), x)
    for axis, (before, after) in enumerate(zip((height, width), size, strict=True)):
        order = (1, 2, 0) if axis == 0 else (0, 2, 1)
        back = (2, 0, 1) if axis == 0 else (0, 2, 1)
        kernel = call.constant(f"cubic {before} to {after}", partial(cubic, before, after))
        x = call.one(Transpose(back), call.one(Dense(), call.one(Transpose(order), x), kernel=kernel))
    return x


def cubic(size: int, out: int) -> Array:
    """[inputs, outputs]: Keys' weights of the four inputs around each output; inputs beyond the edge are omitted."""
    at = (np.arange(out) + 0.5) * size / out - 0.5
    first = np.floor(at).astype(int) - 1
    weights = np.zeros((size, out))
    for tap in range(4):
        place = first + tap
        far = np.abs(np.rint((at - np.floor(at)) * TABLE) / TABLE + np.floor(at) - place)
        near = (CUBIC + 2) * far**3 - (CUBIC + 3) * far**2 + 1
        beyond = CUBIC * (far**3 - 5 * far**2 + 8 * far - 4)
        inside = (place >= 0) & (place < size)
        np.add.at(weights, (place[inside], np.arange(out)[inside]), np.where(far <= 1, near, beyond)[inside])
    return np.asarray(weights / weights.sum(axis=0), np.float32)

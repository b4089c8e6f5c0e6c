"""LocallyConnected1D and 2D of Keras 2: every place of a window has weights of its own."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single, trained_by
from nnbuild.frontend.keras_layers.channels_first import is_first
from nnbuild.frontend.keras_layers.convolution import Geometry, as_row, from_row, geometry, pads
from nnbuild.frontend.keras_layers.operation_windows import patches
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import Padding, windows_along

LARGEST = 1 << 24
"""The most weights."""


def _local(flat: bool) -> LayerKind:
    """The patches become the channels of one pixel, and each of them a group of a convolution."""

    def build(call: Call) -> str:
        if is_first(call.config):
            raise call.config.error("its weights are stored for channels that come first.", "Put the channels last.")
        window, filters = geometry(call.config, flat), call.config.integer("filters")
        x = as_row(call, flat)
        shape, around = call.builder.shape(x), pads(call, x, window)
        counts = _counts(call, window, shape, around)
        places, depth = prod(counts), prod(window.kernel) * shape[2]
        if places * depth * filters > LARGEST:
            raise call.config.error(
                f"it has {places * depth * filters} weights.", "Use fewer filters, or larger strides."
            )

        def kernel() -> Array:
            held = _by_place(call, window, counts, shape, around, filters, flat)
            return np.ascontiguousarray(held.transpose(1, 0, 2).reshape(1, 1, depth, places * filters))

        constants = {"kernel": call.constant("kernel of each place", kernel)}
        if call.config.flag("use_bias", True):
            size = (*counts[flat:], filters)
            constants["bias"] = call.weight("bias", size, (places * filters,))
        x = call.one(Pad((*around, (0, 0))), x)
        x = patches(call, x, window.kernel, window.strides, (1, 1))
        x = call.one(Reshape((1, 1, places * depth)), x)
        y = call.builder.one(Conv2D(groups=places), (x,), constants)
        return activate(call, from_row(call, call.one(Reshape((*counts, filters)), y), flat))

    return LayerKind(single(build), trained_by("kernel"))


def _counts(call: Call, window: Geometry, shape: Shape, around: Padding) -> Pair:
    try:
        rows, columns = (windows_along(shape[i], window.kernel[i], window.strides[i], 1, around[i]) for i in (0, 1))
    except ValueError as error:
        raise call.config.error(str(error)) from None
    return rows, columns


def _by_place(
    call: Call, window: Geometry, counts: Pair, shape: Shape, around: Padding, filters: int, flat: bool
) -> Array:
    """[places, taps * channels, filters], from one of the three forms in which Keras stores them."""
    places, taps, channels = prod(counts), prod(window.kernel), shape[2]
    form = call.config.integer("implementation", 1)
    if form == 1:
        return call.values("kernel", (places, taps * channels, filters))
    found = np.zeros((places, taps, channels, filters), np.float32)
    inside = _inside(window, counts, shape, around)
    if form == 2:
        whole = call.values("kernel", (*shape[flat:2], channels, *counts[flat:], filters))
        whole = whole.reshape(*shape, *counts, filters)
        for place, tap in np.argwhere(inside >= 0):
            row, column = divmod(int(inside[place, tap]), shape[1])
            found[place, tap] = whole[row, column, :, place // counts[1], place % counts[1]]
        return found.reshape(places, taps * channels, filters)
    if form != 3:
        raise call.config.wrong("implementation", "1, 2 or 3")
    kept = np.broadcast_to(inside[:, None, :, None] >= 0, (places, filters, taps, channels))
    listed = np.zeros(kept.shape, np.float32)
    listed[kept] = call.values("kernel", (int(kept.sum()),))
    return np.asarray(listed.transpose(0, 2, 3, 1).reshape(places, taps * channels, filters))


def _inside(window: Geometry, counts: Pair, shape: Shape, around: Padding) -> Array:
    """[places, taps]: the pixel under each tap, or -1 outside of the image."""
    found = np.full((prod(counts), prod(window.kernel)), -1)
    for place, (row, column) in enumerate(product(*map(range, counts))):
        for tap, (i, j) in enumerate(product(*map(range, window.kernel))):
            y, x = row * window.strides[0] + i - around[0][0], column * window.strides[1] + j - around[1][0]
            if 0 <= y < shape[0] and 0 <= x < shape[1]:
                found[place, tap] = y * shape[1] + x
    return found


LAYERS = {"LocallyConnected1D": _local(flat=True), "LocallyConnected2D": _local(flat=False)}

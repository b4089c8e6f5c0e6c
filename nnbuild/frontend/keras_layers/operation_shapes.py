"""Operations that reduce, reshape or index: their axes include the batch, which must stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, inf, prod
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, is_integer, shown
from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, options
from nnbuild.frontend.keras_layers.shaping import filled_in
from nnbuild.ops.base import Pair, normal_axis
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

_BORROWED = ("reflect", "symmetric")
"""Modes of padding with the elements next to a border: without the outermost, or with it."""
CHANNELS_LAST = "Put the channels last."
BATCH = "A compiled model computes one sample at a time: do not use the first axis."


def reduced(call: Call, function: str) -> str:
    found = options(call)
    if found.get("initial") is not None:
        raise call.config.error("it begins with a number.", "Take the maximum or minimum with it afterwards.")
    if "axis" not in found:
        raise call.config.error("it reduces over all axes, including the batch.", BATCH)
    axes = sample_axes(call.config, found.integers("axis"), call.shape)
    x, keep = call.input, found.flag("keepdims") if "keepdims" in found else False
    for first, count in reversed(_runs(axes)):
        x = call.one(Reduce(function, first, count, keep), x)
    return x


def sizes_of(found: Config, key: str) -> tuple[int, ...]:
    """The sizes of a tensor, of which Keras 3 leaves the batch's open: keras.ops.shape(x)[0] is None."""
    value = found.get(key)
    items = list(value) if isinstance(value, (list, tuple)) and value else [0]
    if None in items[1:]:
        raise found.error(f"its option {key!r} is {shown(value)}, across samples.", BATCH)
    return found.integers(key) if items[0] is not None else (1, *Config(found.where, {key: items[1:]}).integers(key))


def _runs(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Groups ascending axes into (first, count) of adjacent ones."""
    runs: list[tuple[int, int]] = []
    for axis in axes:
        if runs and sum(runs[-1]) == axis:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((axis, 1))
    return runs


def reshaped(call: Call) -> str:
    found = options(call)
    key = "newshape" if "newshape" in found else "shape"
    whole = sizes_of(found, key)
    if len(whole) < 1 or (whole[0] == -1 and prod(whole[1:]) != prod(call.shape)):
        raise call.config.error(f"it reshapes {call.shape} to {whole}, across samples.", BATCH)
    return call.one(Reshape(filled_in(call.config, whole[1:], call.shape)), call.input)


def transposed(call: Call) -> str:
    found = options(call)
    key = "perm" if "perm" in found else "axes"
    order = found.integers(key) if key in found else tuple(reversed(range(len(call.shape) + 1)))
    if len(order) != len(call.shape) + 1 or order[0] != 0:
        raise call.config.error(f"it orders the axes {call.shape} as {order}, including the batch.", BATCH)
    return call.one(Transpose(tuple(axis % len(order) - 1 for axis in order[1:])), call.input)


def matrix_transposed(call: Call) -> str:
    rank = len(call.shape)
    if rank < 2:
        raise call.config.error(f"it transposes {call.shape}, which is no matrix.", BATCH)
    return call.one(Transpose((*range(rank - 2), rank - 1, rank - 2)), call.input)


def mirrored(call: Call, axis: int) -> str:
    """An image with one of its axes reversed."""
    if len(call.shape) != 3:
        raise call.config.error("its images are not [height, width, channels].", CHANNELS_LAST)
    begins = tuple(n - 1 if i == axis else 0 for i, n in enumerate(call.shape))
    return call.one(Slice(begins, tuple(-1 if i == axis else 1 for i in range(3)), call.shape), call.input)


def expanded(call: Call) -> str:
    axes = options(call).integers("axis")
    places = sample_axes(call.config, axes, (*call.shape, *(1 for _ in axes)))
    if len(places) != len(axes):
        raise call.config.error(f"it adds axes at {list(axes)}, of which two are one.")
    shape = list(call.shape)
    for place in places:
        shape.insert(place, 1)
    return call.one(Reshape(tuple(shape)), call.input)


def squeezed(call: Call) -> str:
    found = options(call)
    if "axis" not in found:
        return call.one(Reshape(tuple(n for n in call.shape if n != 1)), call.input)
    axes = sample_axes(call.config, found.integers("axis"), call.shape)
    if any(call.shape[axis] != 1 for axis in axes):
        raise call.config.error(f"it squeezes an axis of {call.shape} that is not 1.")
    return call.one(Reshape(tuple(n for i, n in enumerate(call.shape) if i not in axes)), call.input)


def padded(call: Call) -> str:
    """Pads a tensor with a constant or what lies at its borders; the first pair is the batch's."""
    found = options(call)
    mode = found.text("mode", "constant").lower()
    if mode != "constant" and mode not in _BORROWED:
        raise call.config.error(f"it pads in the mode {shown(found.get('mode'))}.", "Pad with a constant.")
    pairs = found.items("pad_width" if "pad_width" in found else "paddings")
    amounts = [Config(call.config.where, {"padding": pair}).pair("padding", 0, 0) for pair in pairs]
    if len(amounts) != len(call.shape) + 1 or amounts[0] != (0, 0):
        raise call.config.error(f"it pads {call.shape} by {shown(pairs)}, including the batch.", BATCH)
    if mode != "constant":
        places = tuple(_borrowed(call.config, n, pair, mode) for n, pair in zip(call.shape, amounts[1:], strict=True))
        return call.one(Pick(places), call.input) if any(places) else call.input
    value = found.get("constant_values")
    if value in (inf, -inf):  # what a maximum or a minimum of windows does not take
        value = copysign(float(np.finfo(np.float32).max), value)
    elif value is not None:
        value = found.number("constant_values")
    return call.one(Pad(tuple(amounts[1:]), value or 0.0), call.input)


def _borrowed(config: Config, size: int, pair: Pair, mode: str) -> tuple[int, ...] | None:
    """The source index of each element of a longer axis."""
    if pair == (0, 0):
        return None
    room = size - 1 if mode == "reflect" else size
    if max(pair) > room:
        raise config.error(f"it pads an axis of {size} by {max(pair)} of its own elements.", f"Pad by {room} at most.")
    before, after = pair
    inside = range(size)
    turned = inside[1:], inside[:-1]
    left, right = turned if mode == "reflect" else (inside, inside)
    return (*reversed(left[:before]), *inside, *reversed(right[len(right) - after :]))


def blocks(call: Call, deep: bool) -> str:
    """Blocks of channels become squares of pixels (pixel shuffle), or the reverse."""
    found = options(call)
    if len(call.shape) != 3:
        raise call.config.error("its images are not [height, width, channels].", CHANNELS_LAST)
    size = found.one("block_size")
    height, width, channels = call.shape
    if size < 1 or (channels % size**2 if deep else height % size or width % size):
        raise call.config.error(f"blocks of {size} do not divide {call.shape}.")
    if deep:
        channels //= size * size
        seen, made = (height, width, size, size, channels), (height * size, width * size, channels)
    else:
        height, width = height // size, width // size
        seen, made = (height, size, width, size, channels), (height, width, size * size * channels)
    turned = call.one(Transpose((0, 2, 1, 3, 4)), call.one(Reshape(seen), call.input))
    return call.one(Reshape(made), turned)


def picked(call: Call) -> str:
    """x[batch, …] with integers, ranges, an ellipsis and new axes."""
    items = _items(call)
    ranges: list[tuple[int, int, int]] = []
    kept: list[int] = []
    for item in items:
        if item is None:
            kept.append(1)
            continue
        begin, step, count = _range(call.config, item, call.shape[len(ranges)])
        ranges.append((begin, step, count))
        if not is_integer(item):
            kept.append(count)
    begins, steps, counts = zip(*ranges, strict=True) if ranges else ((), (), ())
    y = call.one(Slice(begins, steps, counts), call.input)
    return y if tuple(kept) == counts else call.one(Reshape(tuple(kept)), y)


def _items(call: Call) -> list[Any]:
    """One item for every axis of a sample, and None for every new axis."""
    value = call.named.get("slice_spec", call.named.get("key", call.arguments[1] if len(call.arguments) > 1 else None))
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    places = [i for i, item in enumerate(given) if _is_ellipsis(item)]
    missing = len(call.shape) + 1 - sum(item is not None and not _is_ellipsis(item) for item in given)
    if len(places) > 1 or missing < 0:
        raise call.config.error(f"it selects {shown(value)} from {call.shape}.", BATCH)
    at = places[0] if places else len(given)
    given[at : at + len(places)] = [_WHOLE] * missing
    if not given or not isinstance(given[0], Mapping) or any(given[0].get(k) for k in ("start", "stop")):
        raise call.config.error(f"it selects {shown(value)} from {call.shape}, including the batch.", BATCH)
    return given[1:]


_WHOLE: Mapping[str, Any] = {"start": None, "stop": None, "step": None}


def _is_ellipsis(item: Any) -> bool:
    return item == "..." or (isinstance(item, Mapping) and item.get("class_name") == "__ellipsis__")


def _range(config: Config, item: Any, size: int) -> tuple[int, int, int]:
    """(begin, step, count) of one item along an axis."""
    if is_integer(item):
        try:
            return normal_axis(item, size), 1, 1
        except ValueError:
            raise config.error(f"it selects index {shown(item)} of {size}.") from None
    parts = [item.get(key) for key in ("start", "stop", "step")] if isinstance(item, Mapping) else [item]
    if not all(part is None or is_integer(part) for part in parts) or len(parts) != 3 or parts[2] == 0:
        raise config.error(f"it selects {shown(item)}, which nnbuild does not support.", BATCH)
    found = range(*slice(*parts).indices(size))
    if not found:
        raise config.error(f"it selects nothing from an axis of {size}.")
    return found.start, found.step, len(found)

"""GridSample and AffineGrid: pixels gathered at positions that are computed, or known at compile time.

Zeros around an image are a border of one pixel, to which positions outside are limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.onnx.arithmetic import Operand, combined, whole
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call
from nnbuild.frontend.onnx.data_movement import as_shape, every, padded, part, picked
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.model.graph import Array
from nnbuild.model.views import transposed
from nnbuild.ops.gather import Gather
from nnbuild.ops.layout import Value

EXACT = 1 << 24
"""Pixels that floats can count."""
FARTHEST = 1e6
"""Known positions beyond are as far outside."""
PLANAR = "nnbuild supports it on images of two axes, not on"
KNOWN: Mapping[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


def either(call: Call, function: str, left: Operand | float, right: Operand | float) -> Operand:
    """Combines what is known at compile time, or computed."""
    one, other = (at if isinstance(at, Value) else np.asarray(at, np.float32) for at in (left, right))
    if isinstance(one, Value) or isinstance(other, Value):
        return combined(call, function, one, other)
    return np.asarray(KNOWN[function](one, other), np.float32)


def _whole(call: Call, function: str, x: Operand) -> Operand:
    """ "floor", or "round" to the nearest whole number, halves to even ones."""
    if isinstance(x, Value):
        return call.activated(x, function)
    return np.asarray({"floor": np.floor, "round": np.rint}[function](x))


def _within(call: Call, x: Operand, low: float, high: float) -> Operand:
    return call.activated(x, "clamp", (low, high)) if isinstance(x, Value) else np.clip(x, low, high)


def _reflected(call: Call, x: Operand, low: float, high: float) -> Operand:
    """Positions mirrored at both edges, as often as needed."""
    span = high - low
    if span == 0:
        return _within(call, x, low, low)
    x = either(call, "subtract", x, low)
    turns = _whole(call, "floor", either(call, "multiply", x, 1 / (2 * span)))
    x = either(call, "subtract", x, either(call, "multiply", turns, 2 * span))
    return either(call, "add", either(call, "minimum", x, either(call, "subtract", 2 * span, x)), low)


def grid_sample(call: Call) -> None:
    x, mode, edge = call.real(0), call.text("mode", "linear"), call.text("padding_mode", "zeros")
    corners = bool(call.integer("align_corners"))
    call.expect(len(x.shape) == 4, f"{PLANAR} {len(x.shape) - 2}.", "Use images of two axes.")
    grid = np.clip(call.weights(1), -FARTHEST, FARTHEST) if call.is_constant(1) else call.real(1)
    fits = len(grid.shape) == 4 and grid.shape[0] == x.shape[0] and grid.shape[3] == 2
    call.expect(fits, f"its grid {list(grid.shape)} does not match {list(x.shape)}.")
    call.expect(edge in ("zeros", "border", "reflection"), f"its padding_mode is {edge!r}.")
    if mode not in ("linear", "bilinear", "nearest"):
        raise call.error(f"it samples with {mode!r}.", "Use bilinear or nearest sampling.")
    places = []
    for axis, size in ((1, x.shape[2]), (0, x.shape[3])):
        at = either(call, "add", _column(call, grid, axis), 1.0)
        at = either(call, "multiply", at, (size - 1) / 2 if corners else size / 2)
        at = at if corners else either(call, "subtract", at, 0.5)
        if edge == "reflection":
            ends = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
            at = _reflected(call, at, *ends)
        places.append(_whole(call, "round", at) if mode == "nearest" else at)
    made = sampled(call, x, places[0], places[1], mode == "nearest", edge == "zeros")
    made = as_shape(call, made, (x.shape[0], *grid.shape[1:3], x.shape[1]))
    call.put(replace(made, view=transposed(made.view, (0, 3, 1, 2))))


def _column(call: Call, grid: Operand, axis: int) -> Operand:
    """One coordinate of all positions, as [batch, positions]."""
    shape = (grid.shape[0], prod(grid.shape[1:3]))
    if not isinstance(grid, Value):
        return grid[..., axis].reshape(shape)
    return as_shape(call, part(call, grid, [*every(grid.shape[:3]), (axis, 1, 1)]), shape)


def sampled(call: Call, x: Value, rows: Operand, columns: Operand, nearest: bool, zeros: bool) -> Value:
    """[batch, positions, channels] of an image at positions [batch, positions]; nearest ones are whole numbers."""
    if zeros:
        x = padded(call, x, [(0, 0), (0, 0), (1, 1), (1, 1)], "constant", 0.0)
        rows, columns = (either(call, "add", at, 1.0) for at in (rows, columns))
    batch, channels, height, width = x.shape
    call.expect(batch * height * width < EXACT, f"its image {list(x.shape)} is too large.")
    pixels = replace(x, view=transposed(x.view, (0, 2, 3, 1)))
    pixels = as_shape(call, pixels, (batch * height * width, channels))
    ends = [_within(call, at, 0.0, n - 1.0) for at, n in ((rows, height), (columns, width))]
    if nearest:
        return _at(call, pixels, _place(call, ends, width, height))
    first = [
        _within(call, _whole(call, "floor", at), 0.0, max(n - 2.0, 0.0))
        for at, n in zip(ends, (height, width), strict=True)
    ]
    shares = [either(call, "subtract", at, low) for at, low in zip(ends, first, strict=True)]
    place, made = _place(call, first, width, height), None
    for down in (0, 1) if height > 1 else (0,):
        for right in (0, 1) if width > 1 else (0,):
            share = [s if d else either(call, "subtract", 1.0, s) for s, d in zip(shares, (down, right), strict=True)]
            weight = either(call, "multiply", share[0], share[1])
            moved = _moved(call, place, down * width + right)
            found = combined(call, "multiply", _at(call, pixels, moved), _as_column(call, weight))
            made = found if made is None else combined(call, "add", made, found)
    assert made is not None
    return made


def _place(call: Call, ends: list[Operand], width: int, height: int) -> Operand:
    """The number of each pixel, of all images one after the other."""
    place = either(call, "add", either(call, "multiply", ends[0], float(width)), ends[1])
    begins = (np.arange(place.shape[0]) * width * height).astype(np.float32)[:, None]
    place = either(call, "add", place, begins) if len(begins) > 1 else place
    return call.converted(place, INT32, "int64") if isinstance(place, Value) else place.astype(np.int64)


def _moved(call: Call, place: Operand, by: int) -> Operand:
    if not isinstance(place, Value):
        return np.asarray(place + by)
    return whole(call, "add", place, np.array(by, np.int64)) if by else place


def _as_column(call: Call, values: Operand) -> Operand:
    """[batch, positions] beside channels."""
    shape = (*values.shape, 1)
    return as_shape(call, values, shape) if isinstance(values, Value) else values.reshape(shape)


def _at(call: Call, pixels: Value, place: Operand) -> Value:
    """[batch, positions, channels] of pixels [all, channels]."""
    shape = (*place.shape, pixels.shape[1])
    if not isinstance(place, Value):
        return as_shape(call, picked(call, pixels, 0, [int(i) for i in place.reshape(-1)]), shape)
    table, places = call.plain(pixels), call.plain(place)
    names = [call.seen(table.name, table.shape), call.seen(places.name, (prod(place.shape),))]
    return as_shape(
        call, call.of(call.add(Gather(0), names, form=call.form(table)), (prod(place.shape), shape[-1])), shape
    )


def affine_grid(call: Call) -> None:
    """Products of matrices with the positions of all pixels."""
    theta, size, corners = call.real(0), call.whole_numbers(1), bool(call.integer("align_corners"))
    axes, sides = len(size) - 2, size[2:]
    fits = axes in (2, 3) and theta.shape == (size[0], axes, axes + 1) and min(size) > 0
    call.expect(fits, f"its matrices {list(theta.shape)} do not match {list(size)}.")
    call.within_tables(prod(sides) * (axes + 1))
    if corners and 1 in sides:
        raise call.error(f"it aligns the corners of {list(sides)}: one pixel has no two.", "Use align_corners=False.")
    steps = [np.linspace(-1, 1, n) if corners else (2 * np.arange(n) + 1) / n - 1 for n in sides]
    places = np.stack([*np.meshgrid(*steps, indexing="ij")[::-1], np.ones(sides)]).reshape(axes + 1, -1)
    made = dense(call, Mode((theta,), FLOAT), theta, places.astype(np.float32))
    made = as_shape(call, made, (size[0], axes, *sides))
    call.put(replace(made, view=transposed(made.view, (0, *range(2, axes + 2), 1))))


OPERATORS: dict[str, Callable[[Call], None]] = {"GridSample": grid_sample, "AffineGrid": affine_grid}

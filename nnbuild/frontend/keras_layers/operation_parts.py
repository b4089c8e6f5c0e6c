"""Quantiles, products of vectors, parts that are replaced, places among sorted numbers, and other compositions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import floor, pi, prod
from typing import Any

import numpy as np

from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.categories import encoded, places_among
from nnbuild.frontend.keras_layers.merging import concatenated
from nnbuild.frontend.keras_layers.normalization import as_array, single_precision
from nnbuild.frontend.keras_layers.operation_formulas import (
    axes_of,
    by,
    flip,
    held,
    number,
    of,
    one_axis,
    pieces,
    split_along,
    two,
)
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, REDUCED, Operation
from nnbuild.frontend.keras_layers.operation_selection import number as constant
from nnbuild.frontend.keras_layers.operation_selection import operands, two_sided
from nnbuild.frontend.keras_layers.operation_shapes import BATCH, reduced
from nnbuild.frontend.keras_layers.products import ordered
from nnbuild.model.graph import Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.known import Known
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose

MOST_SORTED = 1 << 12
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


# Order.


def _quantile(call: Call, share: float, x: str) -> str:
    """From the largest numbers down to the ones beside that place, or of the negated ones if fewer."""
    found, shape, axes = options(call), call.builder.shape(x), axes_of(replace(call, inputs=(x,)))
    size = prod(shape[axis] for axis in axes)
    method = found.choice("method", "linear", METHODS)
    if size > MOST_SORTED or not 0 <= share <= 1:
        cause = f"it takes the quantile {share:g} of {size} numbers; nnbuild sorts at most {MOST_SORTED} there."
        raise call.config.error(cause, OTHERWISE)
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    lead = tuple(shape[axis] for axis in rest)
    y = call.one(Reshape((*lead, size)), ordered(call, x, (*rest, *axes)))
    place = share * (size - 1)
    below = round(place) if method == "nearest" else floor(place + 1e-9)
    above = min(below + (method not in ("lower", "nearest") and place - below > 1e-9), size - 1)
    turned = above < size / 2  # from the smallest on
    values, _ = call.builder.add(
        TopK(above + 1 if turned else size - below), [of(call, "negative", y) if turned else y]
    )

    def at(index: int) -> str:
        spot = index if turned else size - 1 - index
        taken = call.one(Slice((*(0 for _ in lead), spot), (1,) * (len(lead) + 1), (*lead, 1)), values)
        return of(call, "negative", taken) if turned else taken

    part = {"linear": place - below, "midpoint": 0.5}.get(method, 1.0)
    made = at(below) if method in ("lower", "nearest") or above == below else at(above)
    if above > below and part < 1:
        made = two(call, "add", by(call, "multiply", at(below), 1 - part), by(call, "multiply", made, part))
    keep = found.flag("keepdims") if "keepdims" in found else False
    kept: Shape = tuple(1 if axis in axes else n for axis, n in enumerate(shape)) if keep else lead
    return call.one(Reshape(kept or (1,)), made)


def _of_whole(call: Call) -> str:
    """A model of Keras' interpolates whatever method it names."""
    if options(call).get("method") not in (None, "linear"):
        raise call.config.error("its method is not the linear one that Keras then uses.", "Use percentile.")
    return _of_share(1.0, call)


def _of_share(scale: float, call: Call) -> str:
    x, share = operands(call, 2, "x", "q")
    if not isinstance(x, Wire) or isinstance(share, bool) or not isinstance(share, int | float):
        raise call.config.error("it takes several quantiles, or computed ones.", "Take one constant quantile each.")
    return _quantile(call, share * scale, x.name)


def _among(call: Call, sequence: Any, values: Any, function: str) -> str:
    if not isinstance(values, Wire) or isinstance(sequence, Wire):
        raise call.config.error("its sequence is computed.", "Give it a constant one.")
    bounds = as_array(call.config, sequence, "sequence")
    if bounds.ndim != 1 or (np.diff(bounds) < 0).any():
        raise call.config.error("its sequence is not one sorted list of numbers.", OTHERWISE)
    return places_among(call, values.name, bounds, function)


def _searched(call: Call) -> str:
    sequence, values = operands(call, 2, "sorted_sequence", "values")
    side = options(call).choice("side", "left", ("left", "right"))
    return _among(call, sequence, values, "greater" if side == "left" else "greater_equal")


def _digitized(call: Call) -> str:
    values, bins = operands(call, 2, "x", "bins")
    return _among(call, bins, values, "greater_equal")


# Vectors and parts.


def _cross(call: Call) -> str:
    found = options(call)
    if len(call.inputs) != 2:
        raise call.config.error("it is called with one tensor.", OTHERWISE)
    rows = []
    every = found.one("axis") if found.get("axis") is not None else None
    for key, x in zip(("axisa", "axisb"), call.inputs, strict=True):
        shape = call.builder.shape(x)
        (axis,) = sample_axes(call.config, (found.one(key, -1) if every is None else every,), shape)
        if shape[axis] not in (2, 3):
            raise call.config.error(f"its vectors have {shape[axis]} numbers, not 2 or 3.", OTHERWISE)
        x = ordered(call, x, (*(i for i in range(len(shape)) if i != axis), axis))
        rows.append(pieces(call, len(shape) - 1, [1] * shape[axis], x))
    left, right = rows

    def part(i: int, j: int) -> str:
        """left[i] * right[j] - left[j] * right[i], where missing numbers are 0."""
        products = [
            two(call, "multiply", left[m], right[n]) if m < len(left) and n < len(right) else None
            for m, n in ((i, j), (j, i))
        ]
        first, second = products
        if first is None:
            return of(call, "negative", str(second))
        return first if second is None else two(call, "subtract", first, second)

    if len(left) == len(right) == 2:
        made = part(0, 1)
        return call.one(Reshape(call.builder.shape(made)[:-1] or (1,)), made)
    parts = [part(1, 2), part(2, 0), part(0, 1)]
    rank = len(call.builder.shape(parts[0]))
    made = call.one(Concatenate(rank - 1), *parts)
    (axis,) = sample_axes(call.config, (found.one("axisc", -1) if every is None else every,), call.builder.shape(made))
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return ordered(call, made, tuple(order))


def _updated(call: Call) -> str:
    """The parts around the new one are kept."""
    given = {"inputs": None, "start_indices": None, "updates": None}
    given |= dict(zip(given, call.arguments, strict=False)) | {k: v for k, v in call.named.items() if k in given}
    x, starts, part = given.values()
    if not isinstance(x, Wire) or not isinstance(starts, (list, tuple)) or not all(isinstance(n, int) for n in starts):
        raise call.config.error("its start is computed.", "Give it a constant one.")
    shape = call.builder.shape(x.name)
    if not isinstance(part, Wire):
        values = as_array(call.config, part, "update")
        if values.shape[:1] != (1,):
            raise call.config.error(f"its update {values.shape} differs between samples.", BATCH)
        part = Wire(known(call, x.name, "update", single_precision(values[0])))
    size = call.builder.shape(part.name)
    fits = len(starts) == len(shape) + 1 and not starts[0] and len(size) == len(shape)
    if not fits or any(not 0 <= b <= n - m for b, n, m in zip(starts[1:], shape, size, strict=True)):
        raise call.config.error(f"it puts {size} at {tuple(starts)} of {shape}.", BATCH)
    return _put(call, x.name, part.name, list(starts[1:]), 0)


def known(call: Call, beside: str, role: str, values: Any) -> str:
    constant = call.constant(f"{role} of {call.builder.layer}", lambda: values)
    return call.builder.one(Known(), (beside,), {"values": constant})


def _put(call: Call, x: str, part: str, starts: list[int], axis: int) -> str:
    shape, size = call.builder.shape(x), call.builder.shape(part)
    if axis == len(shape):
        return part
    begin, end = starts[axis], starts[axis] + size[axis]
    sizes = [n for n in (begin, size[axis], shape[axis] - end) if n]
    kept = list(pieces(call, axis, sizes, x)) if len(sizes) > 1 else [x]
    kept[int(begin > 0)] = _put(call, kept[int(begin > 0)], part, starts, axis + 1)
    return call.one(Concatenate(axis), *kept) if len(kept) > 1 else kept[0]


def _running_product(call: Call) -> str:
    axis = one_axis(call)
    found = list(pieces(call, axis, [1] * call.shape[axis], call.input))
    for index in range(1, len(found)):
        found[index] = two(call, "multiply", found[index - 1], found[index])
    return call.one(Concatenate(axis), *found) if len(found) > 1 else found[0]


def _area(call: Call) -> str:
    """Sums of trapezoids of one width."""
    if options(call).get("x") is not None or len(call.inputs) > 1:
        raise call.config.error("its trapezoids differ in width.", "Multiply by the widths and sum.")
    axis = one_axis(call, default=-1)
    if call.shape[axis] < 2:
        raise call.config.error(f"its axis of {call.shape[axis]} is too short.")
    shares = np.full(call.shape[axis], number(call, "dx", 1.0), np.float32)
    shares[[0, -1]] /= 2
    along = shares.reshape([-1 if i == axis else 1 for i in range(len(call.shape))])
    weighed = call.one(Binary("multiply"), call.input, right=call.constant(f"widths {axis}", lambda: along))
    return call.one(Reduce("sum", axis, 1), weighed)


def _rotated(call: Call) -> str:
    found = options(call)
    axes = found.integers("axes", (0, 1))
    times = found.one("k", 1) % 4
    if len(axes) != 2:
        raise found.wrong("axes", "two axes")
    (first,), (second,) = (sample_axes(call.config, (axis,), call.shape) for axis in axes)
    x = call.input
    order = list(range(len(call.shape)))
    order[first], order[second] = second, first

    def flipped(name: str, axis: int) -> str:
        shape = call.builder.shape(name)
        begins = tuple(n - 1 if i == axis else 0 for i, n in enumerate(shape))
        return call.one(Slice(begins, tuple(-1 if i == axis else 1 for i in range(len(shape))), shape), name)

    if times == 2:
        return flipped(flipped(x, first), second)
    if times == 1:
        return call.one(Transpose(tuple(order)), flipped(x, second))
    return flipped(call.one(Transpose(tuple(order)), x), second) if times == 3 else x


# Elementwise.


def _fmod(call: Call) -> str:
    """The remainder with the sign of the dividend."""
    left, right = operands(call, 2, "x1", "x2")
    if not isinstance(left, Wire):
        raise call.config.error("it divides a constant.", OTHERWISE)
    if isinstance(right, Wire):
        divisor: Any = Wire(of(call, "absolute", right.name))
    else:
        divisor = np.abs(as_array(call.config, right, "divisor"))
    size = of(call, "absolute", left.name)
    quotient = of(call, "floor", two_sided(call, Binary("divide"), Wire(size), divisor))
    rest = two(call, "subtract", size, two_sided(call, Binary("multiply"), Wire(quotient), divisor))
    below = call.one(Compare("less"), left.name, right=held(call, 0.0))
    return call.one(Select(), below, of(call, "negative", rest), rest)


def _step(call: Call) -> str:
    x, middle = operands(call, 2, "x1", "x2")
    if not isinstance(x, Wire):
        raise call.config.error("its first operand is a constant.", OTHERWISE)
    above, below = (call.one(Compare(f), x.name, right=held(call, 0.0)) for f in ("greater", "less"))
    zero, one = held(call, 0.0), held(call, 1.0)
    if isinstance(middle, Wire):
        inner = call.one(Select(), below, middle.name, chosen=zero)
    else:
        other = constant(call, middle, "float32", len(call.builder.shape(x.name)))
        inner = call.one(Select(), below, chosen=zero, other=other)
    return call.one(Select(), above, inner, chosen=one)


def _sinc(call: Call) -> str:
    angle = by(call, "multiply", call.input, pi)
    nothing = call.one(Compare("equal"), call.input, right=held(call, 0.0))
    safe = call.one(Select(), nothing, angle, chosen=held(call, 1.0))
    return call.one(Select(), nothing, two(call, "divide", of(call, "sin", safe), safe), chosen=held(call, 1.0))


def _close(call: Call) -> str:
    """|x1 - x2| <= atol + rtol * |x2|."""
    given = [*call.arguments, *(call.named[key] for key in ("x1", "x2") if key in call.named)]
    if len(given) < 2:
        raise call.config.error("it is not called with two operands.", OTHERWISE)
    (left, right, *rest), found = given, options(call)
    if len(rest) > 2 or not all(isinstance(value, int | float) for value in rest):
        raise call.config.error("its tolerances are not numbers.", OTHERWISE)
    defaults = found.number("rtol", 1e-5), found.number("atol", 1e-8)
    bounds = (*map(float, rest), *defaults[len(rest) :])
    apart = of(call, "absolute", two_sided(call, Binary("subtract"), left, right))
    if isinstance(right, Wire):
        least = by(call, "add", by(call, "multiply", of(call, "absolute", right.name), bounds[0]), bounds[1])
        return call.one(Compare("less_equal"), apart, least)
    allowed = np.abs(as_array(call.config, right, "operand")) * bounds[0] + bounds[1]
    return two_sided(call, Compare("less_equal"), Wire(apart), allowed)


def _multi_hot(call: Call) -> str:
    found = options(call)
    if found.one("axis", -1) not in (-1, len(call.shape) + 1):
        raise call.config.error("its classes are not the last axis.", "Leave axis at -1.")
    return encoded(call, call.input, found.integer("num_classes"), "multi_hot")


_QUANTILE = (*REDUCED, "method", "q")
_CLOSE = ("rtol", "atol")
OPERATIONS: dict[str, Operation] = {
    "array_split": Operation(partial(split_along, even=False), ("indices_or_sections", "axis"), whole=True),
    "cross": Operation(_cross, ("axis", "axisa", "axisb", "axisc")),
    "cumprod": Operation(_running_product, ("axis",)),
    "digitize": Operation(_digitized, ("bins",), numbers=True),
    "dsplit": Operation(partial(split_along, axis=2), ("indices_or_sections",), whole=True),
    "dstack": Operation(lambda call: concatenated(call, 2), whole=True),
    "fliplr": Operation(lambda call: flip(call, (1,)), whole=True),
    "fmod": Operation(_fmod, numbers=True),
    "heaviside": Operation(_step, numbers=True),
    "hsplit": Operation(partial(split_along, axis=1), ("indices_or_sections",), whole=True),
    "isclose": Operation(_close, _CLOSE, numbers=True),
    "median": Operation(lambda call: _quantile(call, 0.5, call.input), REDUCED),
    "multi_hot": Operation(_multi_hot, ("num_classes", "axis"), whole=True),
    "percentile": Operation(partial(_of_share, 0.01), _QUANTILE, numbers=True),
    "ptp": Operation(lambda call: two(call, "subtract", reduced(call, "max"), reduced(call, "min")), REDUCED),
    "quantile": Operation(_of_whole, _QUANTILE, numbers=True),
    "rot90": Operation(_rotated, ("k", "axes"), whole=True),
    "search_sorted": Operation(_searched, ("side", "sorted_sequence"), numbers=True),
    "sinc": Operation(_sinc),
    "slice_update": Operation(_updated, ("start_indices", "updates"), numbers=True),
    "trapezoid": Operation(_area, ("x", "dx", "axis")),
}

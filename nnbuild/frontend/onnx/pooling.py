"""Pooling over windows and whole images; channels stay in their stored order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import combined, raised, times_plus
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.convolution import Pairs, cropped, padding, per_axis
from nnbuild.frontend.onnx.data_movement import every, padded, part
from nnbuild.frontend.onnx.quantized import formed
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.model.graph import WHOLE, Shape
from nnbuild.model.views import View
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.layout import Value, arranged, whole
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.windows import spread, windows_along

MOST_COUNTED = 1 << 21
"""Limit for the constant that counts the elements in each window: a damaged size must not take much memory."""

LOWEST = -float(np.finfo(np.float32).max)


def _places(size: int, window: int, stride: int, pads: Pair, ceil: bool) -> int:
    """The number of windows; with `ceil`, including one that starts inside, or in the padding before."""
    over = size + sum(pads) - window
    places = (-(-over // stride) if ceil else over // stride) + 1
    if ceil and (places - 1) * stride >= size + pads[0]:
        places -= 1
    return places


def _window(call: Call, x: Value) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Pairs, Shape]:
    rank = len(x.shape)
    call.expect(3 <= rank <= 5, f"its input {list(x.shape)} does not have 1 to 3 spatial axes.")
    window = call.integers("kernel_shape")
    call.expect(len(window) == rank - 2 and min(window) > 0, f"its kernel_shape is {list(window)}.")
    strides, dilation = (per_axis(call, name, rank - 2) for name in ("strides", "dilations"))
    pads = padding(call, x.shape[2:], window, strides, dilation)
    ceil = bool(call.integer("ceil_mode", 0))
    wide = [spread(k, d) for k, d in zip(window, dilation, strict=True)]
    places = tuple(_places(n, k, s, p, ceil) for n, k, s, p in zip(x.shape[2:], wide, strides, pads, strict=True))
    call.expect(min(places) > 0, "its windows are larger than its input.")
    return window, strides, dilation, pads, places


def max_pool(call: Call) -> None:
    mode = formed(call, 0, same=True)
    (x,) = mode.inputs
    call.expect(
        len(call.node.outputs) < 2 or not call.node.outputs[1],
        "it also outputs the indices of its maxima, which nnbuild does not compute.",
        "Use an upsampling without indices instead of the unpooling that reads them.",
    )
    window, strides, dilation, pads, places = _window(call, x)
    scaled = call.form(x)[1] not in (None, WHOLE)
    if not x.is_number and not scaled:
        x = call.converted(x, FLOAT, "float32")
        mode = replace(mode, form=FLOAT)
    made = pooled(call, x, "max", (window, strides, dilation), pads, places, mode.form)
    if scaled:
        made = replace(made, dtype=x.dtype)
    elif not call.value(0).is_number:
        from nnbuild.frontend.onnx.arithmetic import as_type

        made = as_type(call, made, call.value(0).dtype)
    call.put(made)


def average_pool(call: Call) -> None:
    x = call.value(0)
    window, strides, dilation, pads, places = _window(call, x)
    if window == x.shape[2:] and max(places) == 1 and not any(map(any, pads)):
        mode = formed(call, 0)
        call.put(reduced(call, mode.inputs[0], "mean", range(2, len(x.shape)), True, mode.form))
        return
    counted = bool(call.integer("count_include_pad", 0))
    call.put(averaged(call, call.real(0), (window, strides, dilation), pads, places, counted))


def averaged(
    call: Call, x: Value, windows: tuple[Sequence[int], ...], pads: Pairs, places: Shape, counted: bool
) -> Value:
    if counted and any(map(any, pads)):
        x, pads = padded(call, x, [(0, 0), (0, 0), *pads], "constant", 0.0), ((0, 0),) * len(pads)
    if max(windows[2]) == 1:
        return pooled(call, x, "average", windows, pads, places, FLOAT)
    if prod(x.shape) > MOST_COUNTED:
        raise call.unsupported(f"it averages over every other of {prod(x.shape):,} values")
    ones = call.as_value(np.ones(x.shape, np.float32))
    total, count = (
        _by_slices(
            call,
            padded(call, v, [(0, 0), (0, 0), *_grown(v, windows, pads, places)], "constant", 0.0),
            "add",
            windows,
            places,
            FLOAT,
        )
        for v in (x, ones)
    )
    return combined(call, "divide", total, count)


def _grown(x: Value, windows: tuple[Sequence[int], ...], pads: Pairs, places: Shape) -> list[Pair]:
    """Padding that completes every window, and no more; elements after the last window are ignored."""
    found = []
    for n, k, s, d, p, m in zip(x.shape[2:], *windows, pads, places, strict=True):
        found.append((p[0], (m - 1) * s + spread(k, d) - n - p[0]))
    return found


def pooled(
    call: Call,
    x: Value,
    function: str,
    windows: tuple[Sequence[int], ...],
    pads: Pairs,
    places: Shape,
    form: Form,
) -> Value:
    """Pools two axes at once, three in two steps; dilated windows use shifted copies."""
    window, strides, dilation = windows
    around = _grown(x, windows, pads, places)
    if max(dilation) > 1:
        low = padded(call, x, [(0, 0), (0, 0), *around], "constant", LOWEST)
        return _by_slices(call, low, "maximum", windows, places, form)
    around = [
        (before, 0) if after < 0 and windows_along(n, k, s, 1, (before, 0)) == m else (before, after)
        for (before, after), n, k, s, m in zip(around, x.shape[2:], window, strides, places, strict=True)
    ]  # a pool ignores what lies behind its last window
    x, cut = cropped(call, x, tuple(around), form)
    if any(max(p) >= k for p, k in zip(cut, window, strict=True)):
        raise call.error(f"its padding {list(pads)} leaves windows of {list(window)} without any input.")
    if len(window) == 3:
        return _volume(call, x, function, windows, cut, places, form)
    value = arranged(call, x, [0, *range(2, len(x.shape))])
    outer = (x.shape[0],) if x.shape[0] > 1 else ()
    one_row = len(window) == 1
    inner = (*((1,) if one_row else ()), *x.shape[2:], x.shape[1])
    name = call.seen(value.name, (*outer, *inner))
    size, step = ((1, w[0]) if one_row else (w[0], w[1]) for w in (window, strides))
    op = Pool2D(function, size, step, ((0, 0), cut[0]) if one_row else (cut[0], cut[1]))
    name = call.add(op, [name], form=form, outer=outer)
    return replace(x, name=name, view=_sized(value.view, (*x.shape[:2], *places)))


def _volume(
    call: Call,
    x: Value,
    function: str,
    windows: tuple[Sequence[int], ...],
    cut: Pairs,
    places: Shape,
    form: Form,
) -> Value:
    """Pools rows and columns first, then the depth: both functions allow this split."""
    window, strides, _ = windows
    batch, channels, depth, *flat = x.shape
    if function == "average" and any(map(any, cut)):
        raise call.unsupported("it averages over three axes with padding")
    value = arranged(call, x, [0, 2, 3, 4])
    name = call.seen(value.name, (batch * depth, *flat, channels))
    inner = Pool2D(function, (window[1], window[2]), (strides[1], strides[2]), (cut[1], cut[2]))
    name = call.add(inner, [name], form=form, outer=(batch * depth,))
    name = call.seen(name, (batch, depth, places[1] * places[2], channels))
    outer = Pool2D(function, (window[0], 1), (strides[0], 1), (cut[0], (0, 0)))
    name = call.add(outer, [name], form=form, outer=(batch,))
    return replace(x, name=name, view=_sized(value.view, (batch, channels, *places)))


def _sized(view: View, shape: Shape) -> View:
    """Stored as [batch, rows, columns, channels], with the view's channel order."""
    own = sorted(view.axes[1])
    lead = [i for i in (0, *range(2, len(shape))) if shape[i] > 1]
    atoms = (*(shape[i] for i in lead), *(view.atoms[a] for a in own))
    places = {a: len(lead) + i for i, a in enumerate(own)}
    axes: list[tuple[int, ...]] = [(lead.index(i),) if i in lead else () for i in range(len(shape))]
    axes[1] = tuple(places[a] for a in view.axes[1])
    return View(atoms, tuple(axes))


def _by_slices(
    call: Call, x: Value, function: str, windows: tuple[Sequence[int], ...], places: Shape, form: Form
) -> Value:
    """Uses one strided slice per element of the window."""
    window, strides, dilation = windows
    call.expect(prod(window) <= 256, f"its dilated windows of {list(window)} are too large.")
    made: Value | None = None
    for at in np.ndindex(*window):
        ranges = every(x.shape)
        for axis, (i, s, d, m) in enumerate(zip(at, strides, dilation, places, strict=True), 2):
            ranges[axis] = (i * d, s if m > 1 else 1, m)
        piece = part(call, x, ranges)
        if made is None:
            made = piece
        elif form == FLOAT:
            made = combined(call, function, made, piece)
        else:
            made, order = whole(call, made)
            names = [made.name, whole(call, piece, order)[0].name]
            made = replace(made, name=call.add(Binary(function), names, form=form))
    assert made is not None
    return made


def lp_pool(call: Call) -> None:
    """The p-th root of a sum of p-th powers, computed as an average times the window's size."""
    x, p = call.real(0), call.integer("p", 2)
    window, strides, dilation, pads, places = _window(call, x)
    call.expect(0 < p <= 16, f"its p is {p}.")
    grown = (
        raised(call, x if p % 2 == 0 else call.activated(x, "absolute"), float(p))
        if p > 1
        else call.activated(x, "absolute")
    )
    complete = _grown(grown, (window, strides, dilation), pads, places)  # so that each mean is over a whole window
    none = ((0, 0),) * len(window)
    grown = padded(call, grown, [(0, 0), (0, 0), *complete], "constant", 0.0)
    mean = averaged(call, grown, (window, strides, dilation), none, places, False)
    total = times_plus(call, mean, float(prod(window)))
    call.put(raised(call, total, 1.0 / p) if p > 1 else total)


def global_pool(function: str, call: Call) -> None:
    mode = formed(call, 0) if function == "mean" else formed(call, 0, same=True)
    (x,) = mode.inputs
    call.expect(len(x.shape) > 2, f"its input {list(x.shape)} is not an image.")
    call.put(reduced(call, x, function, range(2, len(x.shape)), True, mode.form))


def global_lp(call: Call) -> None:
    x, p = call.real(0), call.integer("p", 2)
    call.expect(0 < p <= 16, f"its p is {p}.")
    grown = raised(call, call.activated(x, "absolute"), float(p)) if p > 1 else call.activated(x, "absolute")
    total = reduced(call, grown, "sum", range(2, len(x.shape)), True, FLOAT)
    call.put(raised(call, total, 1.0 / p) if p > 1 else total)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalMaxPool": partial(global_pool, "max"),
    "GlobalAveragePool": partial(global_pool, "mean"),
    "GlobalLpPool": global_lp,
}

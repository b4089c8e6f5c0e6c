"""Resize and Upsample: positions and weights are known at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import floor

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import as_type
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.convolution import pixels
from nnbuild.frontend.onnx.data_movement import picked
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.model.graph import WHOLE, Array, Shape
from nnbuild.model.views import stored, transposed
from nnbuild.numeric.resize import CENTRES, CORNERS, EDGES
from nnbuild.ops.layout import Value, arranged, whole
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.resize_bilinear import ResizeBilinear

LARGEST = 2**14
TIE = 1e-6
"""Positions so near to the middle between two pixels are there, for onnxruntime too: float32 rounded them."""
DIRECT = {"half_pixel": CENTRES, "align_corners": CORNERS, "asymmetric": EDGES, "pytorch_half_pixel": CENTRES}


def resize(call: Call) -> None:
    x = call.value(0)
    rank = len(x.shape)
    axes = [call.axis(a, rank) for a in call.integers("axes", range(rank))]
    sizes, scales = _wanted(call, x.shape, axes)
    mode = call.text("mode", "nearest")
    way = call.text("coordinate_transformation_mode", "half_pixel" if call.opset >= 11 else "asymmetric")
    antialias = bool(call.integer("antialias", 0))
    call.expect(mode in ("nearest", "linear", "cubic"), f"its mode is {mode!r}.")
    moving = [i for i in axes if sizes[i] != x.shape[i] or way in ("tf_crop_and_resize",)]
    if mode == "nearest" and moving:  # a scale near 1 that changes no size takes other neighbours, too
        moving = [i for i in axes if i in moving or scales[i] != 1]
    exact = all(abs(scales[i] - sizes[i] / x.shape[i]) < 1e-6 for i in moving)
    plain = (
        mode == "linear"
        and not antialias
        and exact
        and way in DIRECT
        and moving
        and set(moving) <= {2, 3}
        and rank == 4
    )
    given, form = x, call.form(x)
    if mode != "nearest":
        x = call.as_real(x) if x.is_number else call.converted(x, FLOAT, "float32")
    if plain and not (way == "pytorch_half_pixel" and 1 in [sizes[i] for i in moving]):
        call.put(_as_given(call, _bilinear(call, x, (sizes[2], sizes[3]), DIRECT[way]), given, form))
        return
    for axis in moving:
        at = _coordinates(call, way, x.shape[axis], sizes[axis], scales[axis], axis, rank)
        if mode == "nearest":
            x = _nearest(call, x, axis, at, x.shape[axis])
            continue
        matrix = _weights(call, mode, at, x.shape[axis], scales[axis] if antialias else 1.0)
        x = along(call, x, axis, matrix)
    call.put(_as_given(call, x, given, form))


def _as_given(call: Call, made: Value, x: Value, form: Form) -> Value:
    """The result in the type of the input: integers keep their format, plain ones lose their fraction."""
    if x.is_number or call.form(made) == form:
        return made
    if form[1] == WHOLE:
        return as_type(call, made, x.dtype)
    return call.converted(made, form, x.dtype)


def _wanted(call: Call, shape: Shape, axes: Sequence[int]) -> tuple[list[int], list[float]]:
    """The size of every axis, and its scale."""
    places = (2, 3) if call.opset >= 11 else (1, 99)
    sizes, scales = list(shape), [1.0] * len(shape)
    if call.given(places[1]) and call.constant(places[1]).size:
        wanted = call.whole_numbers(places[1])
        call.expect(not call.given(places[0]) or not call.constant(places[0]).size, "it has scales and sizes.")
        call.expect(len(wanted) == len(axes), "its sizes do not match its axes.")
        ratios = [n / shape[a] for n, a in zip(wanted, axes, strict=True)]
        policy = call.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            wanted = tuple(floor(ratio * shape[a] + 0.5) for a in axes)
            ratios = [ratio] * len(axes)
        for axis, size, ratio in zip(axes, wanted, ratios, strict=True):
            sizes[axis], scales[axis] = size, ratio
    else:
        found = (
            call.floats("scales")
            if call.has("scales")
            else tuple(float(v) for v in call.constant(places[0]).reshape(-1))
        )
        call.expect(len(found) == len(axes), f"it has {len(found)} scales for {len(axes)} axes.")
        call.expect(all(0 < s < LARGEST for s in found), f"its scales are {list(found)}.")
        for axis, scale in zip(axes, found, strict=True):
            sizes[axis], scales[axis] = floor(np.float32(shape[axis]) * np.float32(scale)), scale
    call.expect(all(0 < n <= LARGEST for n in sizes), f"it resizes {list(shape)} to {sizes}.")
    return sizes, scales


def _coordinates(call: Call, way: str, size: int, out: int, scale: float, axis: int, rank: int) -> Array:
    """Where in the input each output lies, rounded to float32 as onnxruntime does: a position that is meant to be
    whole decides which neighbour is the nearest."""
    call.within_tables(out)
    at, factor = np.arange(out, dtype=np.float32), np.float32(scale)
    one, half = np.float32(1), np.float32(0.5)
    match way:
        case "half_pixel":
            return (at + half) / factor - half
        case "half_pixel_symmetric":
            offset = np.float32(size) / 2 * (one - np.float32(out) / (factor * np.float32(size)))
            return offset + (at + half) / factor - half
        case "pytorch_half_pixel":
            return (at + half) / factor - half if out > 1 else np.zeros(1)
        case "align_corners":
            return at * np.float32(size - 1) / (factor * np.float32(size) - one) if out > 1 else np.zeros(1)
        case "asymmetric":
            return at / factor
        case "tf_half_pixel_for_nn":
            return (at + half) / factor
    raise call.unsupported(f"its coordinate_transformation_mode is {way!r}")


def _nearest(call: Call, x: Value, axis: int, at: Array, size: int) -> Value:
    mode = call.text("nearest_mode", "round_prefer_floor" if call.opset >= 11 else "floor")
    at = at.astype(np.float64)
    rounded = {
        "round_prefer_floor": np.ceil(at - 0.5 - TIE),
        "round_prefer_ceil": np.floor(at + 0.5 + TIE),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }.get(mode)
    call.expect(rounded is not None, f"its nearest_mode is {mode!r}.")
    places = np.clip(np.asarray(rounded), 0, size - 1).astype(int)
    times, rest = divmod(len(places), size)
    if rest == 0 and list(places) == [i // times for i in range(len(places))]:
        x, order = whole(call, x)
        made = call.add(Repeat(tuple(times if i == axis else 1 for i in order)), [x.name], form=call.form(x))
        return replace(
            x, name=made, view=stored(tuple(n * times if i == axis else n for i, n in enumerate(x.shape)), order)
        )
    return picked(call, x, axis, [int(i) for i in places])


def _bilinear(call: Call, x: Value, size: tuple[int, int], mode: str) -> Value:
    n, channels, height, width = x.shape
    value = arranged(call, x, [0, 2, 3], [1])
    outer = (n,) if n > 1 else ()
    name = call.seen(value.name, (*outer, height, width, channels))
    return replace(x, name=call.add(ResizeBilinear(size, mode), [name], outer=outer), view=pixels((n, channels, *size)))


def _weights(call: Call, mode: str, at: Array, size: int, scale: float) -> Array:
    """[in, out]: the weight of each input in each output. When shrinking, `scale` widens the filter."""
    narrow = min(scale, 1.0)
    reach = (1.0 if mode == "linear" else 2.0) / narrow
    call.within_tables(size * len(at))
    matrix = np.zeros((size, len(at)), np.float64)
    outside = bool(call.integer("exclude_outside", 0))
    for out, place in enumerate(at):
        if mode == "linear" and narrow == 1.0:
            place = min(max(place, 0.0), size - 1.0)
        low = int(np.floor(place - reach)) + 1 if narrow == 1.0 else int(np.ceil(place - reach))
        high = low + 2 * int(reach) - 1 if narrow == 1.0 else int(np.floor(place + reach))
        taps = np.arange(low, high + 1)
        shares = _filter(call, mode, (taps - place) * narrow)
        if (outside and mode == "cubic") or narrow < 1.0:
            inside = (taps >= 0) & (taps < size) if outside else np.ones(len(taps), bool)
            shares = np.where(inside, shares, 0.0)
            shares = shares / shares.sum()
        np.add.at(matrix[:, out], np.clip(taps, 0, size - 1), shares)
    return matrix.astype(np.float32)


def _filter(call: Call, mode: str, off: Array) -> Array:
    x = np.abs(off)
    if mode == "linear":
        return np.asarray(np.maximum(1 - x, 0))
    a = call.number("cubic_coeff_a", -0.75)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.asarray(np.where(x <= 1, near, np.where(x < 2, far, 0.0)))


def along(call: Call, x: Value, axis: int, matrix: Array) -> Value:
    """Weighted sums along one axis."""
    rank = len(x.shape)
    order = [*(i for i in range(rank) if i != axis), axis]
    turned = replace(x, view=transposed(x.view, order))
    made = dense(call, Mode((turned,), FLOAT), turned, matrix)
    back = [order.index(i) for i in range(rank)]
    return replace(made, view=transposed(made.view, back))


OPERATORS: dict[str, Callable[[Call], None]] = {"Resize": resize, "Upsample": resize}

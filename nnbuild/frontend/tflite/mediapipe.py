"""MediaPipe's custom operators: a transposed convolution with a bias, and crops of an image around landmarks.

Landmarks are rows of (x, y) or (x, y, z). A crop is given by the upper two rows of a matrix of 4x4: (x, y) in the image
is [M00 M01; M10 M11] (x, y) + (M03, M13) of its place in the crop.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from math import cos, isfinite, pi, sin

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.flex_options import flex_options, flex_whole_numbers
from nnbuild.frontend.tflite.linear import filter_quant, filters, image, weighted
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.spectra import held
from nnbuild.model.graph import WHOLE, Array, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.gather import Gather
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.pick import Pick
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.slice import Slice
from nnbuild.ops.whole import Whole

SAME, VALID = 1, 2
"""How the options of a transposed convolution count paddings."""
LONGEST = 1 << 12
"""Of a crop's side."""
EXACT = 1 << 24
"""Pixels that floats can count."""
NOTHING = 1e-30
"""Added to the distance of two landmarks, so that equal ones have a direction."""


def transposed_with_bias(call: Call) -> None:
    """The padding is that of the input's last window, which the output's size follows."""
    _floats(call)
    call.expect(len(call.operator.custom) == 12, f"its options have {len(call.operator.custom)} bytes.")
    padding, columns, rows = struct.unpack("<3i", call.operator.custom)
    call.expect(padding in (SAME, VALID), f"its padding is number {padding}.")
    call.expect(0 < min(rows, columns) <= max(rows, columns) < 2**16, f"its strides are {rows} and {columns}.")
    x, sizes, outer = image(call, 0)
    stored = filters(call, 1, 4)  # [out, rows, columns, in]
    sides = tuple(_side(sizes[i], stored.shape[1 + i], (rows, columns)[i], padding) for i in (0, 1))
    crop, size = (sides[0][0] // 2, sides[1][0] // 2), (sides[0][1], sides[1][1])
    attributes = Conv2DTranspose(size, (rows, columns), (1, 1), crop)
    quant = filter_quant(call, 1, stored.shape[0], 2)
    call.done(weighted(call, attributes, x, (1, 2), stored.transpose(1, 2, 0, 3), quant, outer))


def _side(size: int, kernel: int, stride: int, padding: int) -> Pair:
    """The padding along a side, and the output's length."""
    padded = max(0, kernel - (size - 1) % stride - 1) if padding == SAME else 0
    return padded, stride * (size - 1) + kernel - padded


def transform_matrix(call: Call) -> None:
    """The crop around some landmarks, turned so that the line between two of them has a given angle."""
    _floats(call)
    landmarks, whole = call.value(0), call.whole(0)
    call.expect(len(whole) == 3 and whole[0] == 1 and whole[2] == 3, f"its landmarks are {list(whole)}.", CONVERT_AGAIN)
    landmarks = call.seen(landmarks, whole[1:])
    some = flex_whole_numbers(call, "subset_idxs")
    ends = tuple(int(_option(call, f"{side}_rotation_idx", 0, whole[1] - 1)) for side in ("left", "right"))
    call.expect(bool(some) and min(some) >= 0 and max(some) < whole[1], f"its subset is {list(some[:8])}.")
    turned = _turned(call, _points(call, landmarks, ends[:1]), _points(call, landmarks, ends[1:]))
    points = call.add(MatMul(), [_points(call, landmarks, some), turned])
    low, high = (call.add(Reduce(which, 0, 1, True), [points]) for which in ("min", "max"))
    middle = _by(call, "multiply", call.add(Binary("add"), [low, high]), [[0.5]])
    sides = [int(_option(call, f"output_{side}", 1, LONGEST)) for side in ("width", "height")]
    shares = [_option(call, f"scale_{axis}", 1e-6, 1e6) / n for axis, n in zip("xy", sides, strict=True)]
    scales = _by(call, "multiply", call.add(Binary("subtract"), [high, low]), [shares])
    steps = call.add(Binary("multiply"), [turned, scales])
    back = call.add(Dense(), [steps], {"kernel": held(call, "half", np.array([[-n / 2] for n in sides]))})
    centre = call.seen(call.add(MatMul(True), [middle, turned]), (2, 1))
    begin = call.add(Binary("add"), [back, centre])
    upper = call.add(Concatenate(1), [steps, call.known(np.zeros((2, 1), np.float32), call.plain), begin])
    lower = call.known(np.array([[0, 0, 1, 0], [0, 0, 0, 1]], np.float32), call.plain)
    call.reshaped(call.add(Concatenate(0), [upper, lower]), whole=(1, 4, 4))


def _turned(call: Call, left: str, right: str) -> str:
    """[[c, s], [-s, c]] for the angle from the line between two points to the given one."""
    angle = _option(call, "target_rotation_radians", -2 * pi, 2 * pi)
    line = call.add(Binary("subtract"), [right, left])
    length = call.add(
        Activation("sqrt"), [call.add(Reduce("sum", 1, 1, True), [call.add(Activation("square"), [line])])]
    )
    line, length = _by(call, "add", line, [[NOTHING, 0]]), _by(call, "add", length, [[NOTHING]])
    unit = call.add(Binary("divide"), [line, length])
    c, s = cos(angle), sin(angle)
    kernel = np.array([[c, s, -s, c], [s, -c, c, s]])
    return call.seen(call.add(Dense(), [unit], {"kernel": held(call, "turn", kernel)}), (2, 2))


def transformed_landmarks(call: Call) -> None:
    _floats(call)
    (landmarks, matrix), whole = call.data_inputs(0, 1), call.whole(0)
    fits = len(whole) == 3 and whole[0] == 1 and whole[2] in (2, 3) and call.whole(1) == (1, 4, 4)
    call.expect(fits, f"its landmarks are {list(whole)}, its matrix {list(call.whole(1))}.", CONVERT_AGAIN)
    landmarks, matrix = call.seen(landmarks, whole[1:]), call.seen(matrix, (4, 4))
    steps, shift = (_part(call, matrix, (0, first), (2, count)) for first, count in ((0, 2), (3, 1)))
    places = call.add(MatMul(True), [_part(call, landmarks, (0, 0), (whole[1], 2)), steps])
    places = call.add(Binary("add"), [places, call.seen(shift, (1, 2))])
    if whole[2] == 3:
        places = call.add(Concatenate(1), [places, _part(call, landmarks, (0, 2), (whole[1], 1))])
    call.reshaped(places, whole=whole)


def transformed_image(call: Call) -> None:
    """Pixels at the places of a crop, weighted by nearness; outside the image 0."""
    _floats(call)
    (x, matrix), whole = call.data_inputs(0, 1), call.whole(0)
    fits = len(whole) == 4 and whole[0] == 1 and call.whole(1) == (1, 4, 4)
    call.expect(fits, f"its image is {list(whole)}, its matrix {list(call.whole(1))}.", CONVERT_AGAIN)
    _, height, width, channels = whole
    call.expect(height * width < EXACT, f"its image {list(whole)} is too large.")
    rows, columns = (int(_option(call, f"output_{side}", 1, LONGEST)) for side in ("height", "width"))
    at, last = _places(call, matrix, rows, columns), np.array([[width - 1], [height - 1]])
    within = _by(call, "minimum", _by(call, "maximum", at, [[0]]), last)
    first = _by(call, "minimum", call.add(Activation("floor"), [within]), np.maximum(last - 1, 0))
    share = call.add(Binary("subtract"), [within, first])
    shares = _by(call, "subtract", share, [[1]], "left"), share
    number = call.add(Reduce("sum", 0), [_by(call, "multiply", first, [[1], [width]])])
    whole_number = replace(call.plain, dtype="int32", quant=WHOLE)
    number = call.add(Convert(), [number], like=whole_number)
    pixels, parts = call.seen(x, (height * width, channels)), []
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        by = call.assembly.constant(
            call.operator, f"{call.layer}/by", np.array([down * width + right], np.int32), WHOLE
        )
        place = call.add(Whole("add"), [number], {"right": by}, like=whole_number)
        weight = call.add(Binary("multiply"), [_row(call, shares[right], 0), _row(call, shares[down], 1)])
        found = call.add(Gather(0), [pixels, place])
        parts.append(call.add(Binary("multiply"), [found, call.seen(weight, (rows * columns, 1))]))
    made = parts[0]
    for other in parts[1:]:
        made = call.add(Binary("add"), [made, other])
    inside = call.add(Convert(), [call.add(Compare("equal"), [at, within], like=call.truth)], like=call.plain)
    inside = call.seen(call.add(Reduce("min", 0), [inside]), (rows * columns, 1))
    call.reshaped(call.add(Binary("multiply"), [made, inside]), whole=(1, rows, columns, channels))


def _places(call: Call, matrix: str, rows: int, columns: int) -> str:
    """x and y in the image for the centres of a crop's pixels, one after the other."""
    down, right = np.indices((rows, columns)).reshape(2, -1) + 0.5
    kernel = np.stack([right, down, np.zeros_like(right), np.ones_like(right)])
    upper = _part(call, call.seen(matrix, (4, 4)), (0, 0), (2, 4))
    return _by(call, "subtract", call.add(Dense(), [upper], {"kernel": held(call, "places", kernel)}), [[0.5]])


def _floats(call: Call) -> None:
    call.expect(call.is_float() and call.batch == 1, "it is not of floats.", CONVERT_AGAIN)


def _option(call: Call, name: str, low: float, high: float) -> float:
    value = flex_options(call).get(name, 0.0)
    call.expect(isfinite(value) and low <= value <= high, f"its option {name!r} is {value:g}.", CONVERT_AGAIN)
    return float(value)


def _by(call: Call, function: str, x: str, values: Array | list[list[float]], role: str = "right") -> str:
    """With constants, one for each row or column."""
    constant = np.asarray(values, np.float32)
    return call.add(Binary(function), [x], {role: held(call, f"{function} {constant.flat[0]:g}", constant)})


def _points(call: Call, landmarks: str, places: tuple[int, ...]) -> str:
    return call.add(Pick((places, (0, 1))), [landmarks])


def _part(call: Call, x: str, begins: Shape, sizes: Shape) -> str:
    return call.add(Slice(begins, (1,) * len(begins), sizes), [x])


def _row(call: Call, x: str, row: int) -> str:
    return _part(call, x, (row, 0), (1, call.shape(x)[1]))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "CUSTOM Convolution2DTransposeBias": transposed_with_bias,
    "CUSTOM Landmarks2TransformMatrix": transform_matrix,
    "CUSTOM TransformLandmarks": transformed_landmarks,
    "CUSTOM TransformTensorBilinear": transformed_image,
}

"""Colours, borders and windows of images as single operations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.base import Call, options
from nnbuild.frontend.keras_layers.channels_first import of_images, turned
from nnbuild.frontend.keras_layers.operation_formulas import by, held, of, pieces, two
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, Operation
from nnbuild.frontend.keras_layers.operation_misc import gray
from nnbuild.frontend.keras_layers.operation_windows import patches
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.windows import same_padding

WIDEST = 255


def _of_rank_3(call: Call, channels: int | None = None) -> None:
    if len(call.shape) != 3 or channels not in (None, call.shape[2]):
        raise call.config.error(f"its images are {call.shape}.", OTHERWISE)


def _hue_of(call: Call) -> str:
    """[hue, saturation, value] of red, green and blue; where these are equal, hue and saturation are 0."""
    _of_rank_3(call, 3)
    red, green, blue = pieces(call, 2, [1, 1, 1])
    high, low = (call.one(Reduce(function, 2, 1, True), call.input) for function in ("max", "min"))
    reach, zero, one = two(call, "subtract", high, low), held(call, 0.0), held(call, 1.0)

    def safe(x: str) -> str:
        return call.one(Select(), call.one(Compare("greater"), x, right=zero), x, other=one)

    sixth = by(call, "multiply", safe(reach), 6.0)

    def turn(left: str, right: str, third: float) -> str:
        made = two(call, "divide", two(call, "subtract", left, right), sixth)
        return by(call, "add", made, third) if third else made

    def is_high(x: str) -> str:
        return call.one(Compare("equal"), x, high)

    hue = call.one(Select(), is_high(green), turn(blue, red, 1 / 3), turn(red, green, 2 / 3))
    hue = call.one(Select(), is_high(red), turn(green, blue, 0.0), hue)
    hue = call.one(Select(), call.one(Compare("greater"), reach, right=zero), hue, other=zero)
    hue = call.one(Select(), call.one(Compare("less"), hue, right=zero), by(call, "add", hue, 1.0), hue)
    return call.one(Concatenate(2), hue, two(call, "divide", reach, safe(high)), high)


def _of_hue(call: Call) -> str:
    """Red, green and blue rise and fall with the hue, each from its own place on."""
    _of_rank_3(call, 3)
    hue, saturation, value = pieces(call, 2, [1, 1, 1])
    places = call.constant("places", lambda: np.array([3.0, 2.0, 4.0], np.float32))
    signs = call.constant("signs", lambda: np.array([1.0, -1.0, -1.0], np.float32))
    shifts = call.constant("shifts", lambda: np.array([-1.0, 2.0, 2.0], np.float32))
    far = of(call, "absolute", call.one(Binary("subtract"), by(call, "multiply", hue, 6.0), right=places))
    slope = call.one(Binary("add"), call.one(Binary("multiply"), far, right=signs), right=shifts)
    pure = of(call, "clamp", slope, 0.0, 1.0)
    mixed = by(call, "add", two(call, "multiply", by(call, "subtract", pure, 1.0), saturation), 1.0)
    return two(call, "multiply", mixed, value)


def _sides(call: Call, found: Config, kind: str, size: Shape, sign: int) -> tuple[Pair, Pair]:
    """(before, after) of rows and of columns, of which the target may stand for one."""
    made = []
    sides = (("top", "bottom", "height"), ("left", "right", "width"))
    for n, (first, last, target) in zip(size, sides, strict=False):
        names = (f"{first}_{kind}", f"{last}_{kind}", f"target_{target}")
        before, after, wanted = (found.integer(k, minimum=0) if found.get(k) is not None else None for k in names)
        rest = None if wanted is None else sign * (wanted - n)
        if before is None:
            before = None if rest is None or after is None else rest - after
        elif after is None:
            after = None if rest is None else rest - before
        if before is None or after is None or min(before, after) < 0:
            raise call.config.error(f"its {first} and {last} sides do not follow from its options.", OTHERWISE)
        made.append((before, after))
    return made[0], made[1]


def _padded(call: Call) -> str:
    _of_rank_3(call)
    return call.one(Pad((*_sides(call, options(call), "padding", call.shape, 1), (0, 0))), call.input)


def _cropped(call: Call) -> str:
    _of_rank_3(call)
    sides = _sides(call, options(call), "cropping", call.shape, -1)
    counts = tuple(n - sum(pair) for n, pair in zip(call.shape, (*sides, (0, 0)), strict=True))
    return call.one(Slice((sides[0][0], sides[1][0], 0), (1, 1, 1), counts), call.input)


def _blurred(call: Call) -> str:
    """As Keras lays out the products of both bells, also where the window is not square."""
    _of_rank_3(call)
    found = options(call)
    taps, spread = found.pair("kernel_size", 3), found.get("sigma")
    spread = (1.0, 1.0) if spread is None else spread
    known = isinstance(spread, (list, tuple)) and len(spread) == 2
    if not known or not all(isinstance(s, int | float) and s > 0 for s in spread) or max(taps) > WIDEST:
        raise call.config.error("its kernel_size or sigma is not two numbers above 0.", OTHERWISE)
    bells = [np.exp(-0.5 * np.square((np.arange(n) - (n - 1) / 2) / s)) for n, s in zip(taps, spread, strict=True)]
    wide = np.outer(bells[1] / bells[1].sum(), bells[0] / bells[0].sum()).reshape(*taps, 1, 1)
    channels = call.shape[2]

    def kernel() -> Array:
        return np.tile(wide, (1, 1, channels, 1)).astype(np.float32)

    around = same_padding(call.shape[0], taps[0], 1, 1), same_padding(call.shape[1], taps[1], 1, 1)
    return call.one(DepthwiseConv2D(padding=around), call.input, kernel=call.constant("bells", kernel))


def _unfolded(call: Call) -> str:
    """[channels * taps, places] of an image [channels, height, width]."""
    _of_rank_3(call)
    found, channels = options(call), call.shape[0]
    taps, (up, left) = found.pair("kernel_size"), found.pair("padding", 0, 0)
    x = call.one(Pad(((up, up), (left, left), (0, 0))), turned(call, call.input, 2, last=True))
    x = patches(call, x, taps, found.pair("stride"), found.pair("dilation"))
    rows, columns, _ = call.builder.shape(x)
    x = call.one(Reshape((rows * columns, taps[0] * taps[1], channels)), x)
    return call.one(Reshape((channels * taps[0] * taps[1], rows * columns)), call.one(Transpose((2, 1, 0)), x))


def _of(build: Callable[[Call], str], *names: str) -> Operation:
    return Operation(of_images(build, 2), names)


_TARGET = ("target_height", "target_width")
OPERATIONS: dict[str, Operation] = {
    "crop_images": _of(_cropped, *(f"{side}_cropping" for side in ("top", "left", "bottom", "right")), *_TARGET),
    "gaussian_blur": _of(_blurred, "kernel_size", "sigma"),
    "hsvto_rgb": _of(_of_hue),
    "pad_images": _of(_padded, *(f"{side}_padding" for side in ("top", "left", "bottom", "right")), *_TARGET),
    **dict.fromkeys(("rgb_to_grayscale", "rgbto_grayscale"), _of(gray)),
    "rgbto_hsv": _of(_hue_of),
    "unfold": Operation(_unfolded, ("kernel_size", "dilation", "padding", "stride")),
}

"""Layers that prepare images, and those that change them in training only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.shaping import NOTHING_TO_DO
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import CENTRES, nearest
from nnbuild.ops.base import Pair
from nnbuild.ops.dense import Dense
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
CUBIC = -0.5
LONGEST, MOST = 1 << 16, 1 << 24
"""Pixels of a side of what is resized, and weights of a matrix that resizes it."""
TABLE = 1024
"""TensorFlow rounds an output's place between two inputs to such parts."""


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
    """[inputs, outputs]: Keys' weights of the four inputs around each output; those beyond the edge are left out."""
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


def _image(call: Call) -> Pair:
    call.channels_last()
    if len(call.shape) != 3:
        raise call.config.error(f"it needs an input [height, width, channels], not {call.shape}.")
    return call.shape[0], call.shape[1]


def _resizing(call: Call) -> str:
    size, wanted = _image(call), (call.config.integer("height"), call.config.integer("width"))
    interpolation = call.config.choice("interpolation", "bilinear", INTERPOLATIONS)
    if call.config.flag("antialias", False) and (wanted[0] < size[0] or wanted[1] < size[1]):
        raise call.config.error("it smooths what it shrinks.", "Set antialias=False.")
    x = call.input
    if call.config.flag("crop_to_aspect_ratio", False):
        kept = _fitted(size, wanted, min)
        x = _cropped(call, x, kept)
    elif call.config.flag("pad_to_aspect_ratio", False):
        x = _bordered(call, x, _fitted(size, wanted, max))
    return resized(call, x, wanted, interpolation)


def _fitted(size: Pair, wanted: Pair, choose: Callable[[int, int], int]) -> Pair:
    """The part, or the surroundings, of an image in another shape."""
    height = int(float(size[1] * wanted[0]) / wanted[1])
    width = int(float(size[0] * wanted[1]) / wanted[0])
    return choose(size[0], height), choose(size[1], width)


def _cropped(call: Call, x: str, kept: Pair) -> str:
    height, width, channels = call.builder.shape(x)
    begins = (int(float(height - kept[0]) / 2), int(float(width - kept[1]) / 2), 0)
    return call.one(Slice(begins, (1, 1, 1), (*kept, channels)), x)


def _bordered(call: Call, x: str, wanted: Pair) -> str:
    if call.config.values.get("fill_mode", "constant") != "constant":
        raise call.config.error("its fill_mode is not 'constant'.", "Fill with a constant.")
    size = call.builder.shape(x)
    sides = []
    for n, m in zip(size, wanted, strict=False):
        before = int(float(m - n) / 2)
        sides.append((before, before))  # Keras lets the last row go where an odd number is added
    return call.one(Pad((*sides, (0, 0)), call.config.number("fill_value", 0.0)), x)


def _center_crop(call: Call) -> str:
    size, wanted = _image(call), (call.config.integer("height"), call.config.integer("width"))
    if wanted[0] > size[0] or wanted[1] > size[1]:
        kept = _fitted(size, wanted, min)
        return resized(call, _cropped(call, call.input, kept), wanted, "bilinear")
    begins = ((size[0] - wanted[0]) // 2, (size[1] - wanted[1]) // 2, 0)
    return call.one(Slice(begins, (1, 1, 1), (*wanted, call.shape[2])), call.input)


TRAINING_ONLY = (
    *("RandomFlip", "RandomRotation", "RandomZoom", "RandomTranslation", "RandomContrast", "RandomBrightness"),
    *("RandomHeight", "RandomWidth", "RandomHue", "RandomSaturation", "RandomColorJitter", "RandomGrayscale"),
    *("RandomSharpness", "RandomShear", "RandomPosterization", "RandomColorDegeneration", "RandomErasing"),
    *("RandomGaussianBlur", "RandomPerspective", "RandomElasticTransform", "RandomInvert", "MixUp", "CutMix"),
    *("RandAugment", "AugMix", "StochasticDepth", "SpatialDropout3D"),
)
LAYERS = {
    "Resizing": LayerKind(single(_resizing)),
    "CenterCrop": LayerKind(single(_center_crop)),
    **dict.fromkeys(TRAINING_ONLY, NOTHING_TO_DO),
}

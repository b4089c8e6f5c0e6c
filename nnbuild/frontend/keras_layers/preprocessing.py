"""Layers that prepare images, and those that change them only in training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.keras_layers.base import Call, LayerKind
from nnbuild.frontend.keras_layers.channels_first import of_images
from nnbuild.frontend.keras_layers.normalization import as_array, scaled
from nnbuild.frontend.keras_layers.resizing import INTERPOLATIONS, resized
from nnbuild.frontend.keras_layers.shaping import unmasked_in
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.pad import Pad
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice


def _image(call: Call) -> Pair:
    if len(call.shape) != 3:
        raise call.config.error(f"it needs an input [height, width, channels], not {call.shape}.")
    return call.shape[0], call.shape[1]


def _resizing(call: Call) -> str:
    size, wanted = _image(call), (call.config.integer("height"), call.config.integer("width"))
    interpolation = call.config.choice("interpolation", "bilinear", INTERPOLATIONS)
    if call.config.flag("antialias", False) and (wanted[0] < size[0] or wanted[1] < size[1]):
        raise call.config.error("it uses antialiasing.", "Set antialias=False.")
    x = call.input
    if call.config.flag("crop_to_aspect_ratio", False):
        kept = _fitted(size, wanted, min)
        x = _cropped(call, x, kept)
    elif call.config.flag("pad_to_aspect_ratio", False):
        x = _bordered(call, x, _fitted(size, wanted, max))
    return resized(call, x, wanted, interpolation)


def _fitted(size: Pair, wanted: Pair, choose: Callable[[int, int], int]) -> Pair:
    """The crop or padding of an image to another aspect ratio."""
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
        sides.append((before, before))  # Keras drops the last row where an odd number is added
    return call.one(Pad((*sides, (0, 0)), call.config.number("fill_value", 0.0)), x)


def _center_crop(call: Call) -> str:
    size, wanted = _image(call), (call.config.integer("height"), call.config.integer("width"))
    if wanted[0] > size[0] or wanted[1] > size[1]:
        kept = _fitted(size, wanted, min)
        return resized(call, _cropped(call, call.input, kept), wanted, "bilinear")
    begins = ((size[0] - wanted[0]) // 2, (size[1] - wanted[1]) // 2, 0)
    return call.one(Slice(begins, (1, 1, 1), (*wanted, call.shape[2])), call.input)


def _random_crop(call: Call) -> str:
    """At inference Keras 2 resizes what fits best; Keras 3 leaves images as they are, although its layers behind it
    expect the size of the crop."""
    size, wanted = _image(call), (call.config.integer("height"), call.config.integer("width"))
    if not call.dialect.keras3:
        return resized(call, _cropped(call, call.input, _fitted(size, wanted, min)), wanted, "bilinear")
    if size != wanted:
        cause = f"at inference Keras does not crop its images of {size}, but the layers behind it expect {wanted}."
        raise call.config.error(cause, "Use CenterCrop, or leave it out of the model.")
    return call.input


def _auto_contrast(call: Call) -> str:
    """Stretches each channel to the whole range; one of a single value stays as it is."""
    _image(call)
    given = call.config.values.get("value_range", (0, 255))
    limits = as_array(call.config, given, "value_range")
    if limits.shape != (2,):
        raise call.config.wrong("value_range", "two numbers")
    low, high = (call.one(Reduce(function, 0, 2, True), call.input) for function in ("min", "max"))
    reach, above = call.one(Binary("subtract"), high, low), call.one(Binary("subtract"), call.input, low)
    share = call.one(Activation("clamp", (0.0, 1.0)), call.one(Binary("divide"), above, reach))
    made = scaled(call, share, "multiply", "range", np.asarray(limits.max() - limits.min()))
    made = scaled(call, made, "add", "least", np.asarray(limits.min()))
    return call.one(Select(), call.one(Compare("equal"), low, high), call.input, made)


TRAINING_ONLY = (
    *("RandomFlip", "RandomRotation", "RandomZoom", "RandomTranslation", "RandomContrast", "RandomBrightness"),
    *("RandomHeight", "RandomWidth", "RandomHue", "RandomSaturation", "RandomColorJitter", "RandomGrayscale"),
    *("RandomSharpness", "RandomShear", "RandomPosterization", "RandomColorDegeneration", "RandomErasing"),
    *("RandomGaussianBlur", "RandomPerspective", "RandomElasticTransform", "RandomInvert", "MixUp", "CutMix"),
    *("RandAugment", "AugMix", "StochasticDepth", "Solarization"),
)
LAYERS = {
    "Resizing": LayerKind(of_images(_resizing, 2)),
    "AutoContrast": LayerKind(of_images(_auto_contrast, 2)),
    "RandomCrop": LayerKind(of_images(_random_crop, 2)),
    "CenterCrop": LayerKind(of_images(_center_crop, 2)),
    **dict.fromkeys(TRAINING_ONLY, unmasked_in(3)),
}

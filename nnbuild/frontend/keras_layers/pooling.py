"""Pooling over windows and over whole axes."""

from __future__ import annotations

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.base import Call, LayerKind
from nnbuild.frontend.keras_layers.channels_first import of_images
from nnbuild.frontend.keras_layers.convolution import PADDINGS, Geometry, as_row, from_row, pads
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import NO_PADDING


def _window(config: Config, flat: bool) -> Geometry:
    size: Pair = (1, config.single("pool_size", 2)) if flat else config.pair("pool_size", 2)
    strides: Pair = size
    if "strides" in config:
        strides = (1, config.single("strides")) if flat else config.pair("strides")
    return Geometry(size, strides, (1, 1), config.choice("padding", "valid", PADDINGS), flat)


def _pool(function: str, flat: bool) -> LayerKind:
    def build(call: Call) -> str:
        window = _window(call.config, flat)
        x = as_row(call, flat)
        op = Pool2D(function, window.kernel, window.strides, pads(call, x, window))
        return from_row(call, call.one(op, x), flat)

    return LayerKind(of_images(build, 1 if flat else 2))


def _adaptive(function: str, flat: bool) -> LayerKind:
    """Equal windows side by side, as many as its output has elements."""

    def build(call: Call) -> str:
        x = as_row(call, flat)
        shape = call.builder.shape(x)
        counts: Pair = (1, call.config.single("output_size")) if flat else call.config.pair("output_size")
        if len(shape) != 3 or any(size % count for size, count in zip(shape, counts, strict=False)):
            cause = f"its input of {call.shape} does not divide into equal windows for an output of {counts[flat:]}."
            raise call.config.error(cause, "Choose an output_size that divides it, or pool with overlapping windows.")
        window = (shape[0] // counts[0], shape[1] // counts[1])
        return from_row(call, call.one(Pool2D(function, window, window, NO_PADDING), x), flat)

    return LayerKind(of_images(build, 1 if flat else 2))


def _global(function: str, axes: int) -> LayerKind:
    def build(call: Call) -> str:
        if len(call.shape) != axes + 1:
            raise call.config.error(f"it needs an input of {axes + 1} axes, not {call.shape}.")
        keep = call.config.flag("keepdims", False)
        if call.mask is not None and function == "mean":
            return _masked_mean(call, call.mask, keep)
        return call.one(Reduce(function, 0, axes, keep), call.input)

    return LayerKind(of_images(build, axes), sees_mask=axes == 1, takes_mask=axes == 1)


def _masked_mean(call: Call, mask: str, keep: bool) -> str:
    """The mean over valid steps; Keras's maximum uses all steps."""
    counted = call.builder.as_float(call.one(Reshape((call.shape[0], 1)), mask))
    total = call.one(Reduce("sum", 0, 1, keep), call.one(Binary("multiply"), call.input, counted))
    return call.one(Binary("divide"), total, call.one(Reduce("sum", 0, 1, keep), counted))


LAYERS = {
    "MaxPooling1D": _pool("max", flat=True),
    "MaxPooling2D": _pool("max", flat=False),
    "AveragePooling1D": _pool("average", flat=True),
    "AveragePooling2D": _pool("average", flat=False),
    "GlobalAveragePooling1D": _global("mean", 1),
    "GlobalAveragePooling2D": _global("mean", 2),
    "GlobalMaxPooling1D": _global("max", 1),
    "GlobalMaxPooling2D": _global("max", 2),
}
LAYERS |= {name.replace("Pooling", "Pool"): kind for name, kind in LAYERS.items()}
LAYERS |= {
    "AdaptiveMaxPooling1D": _adaptive("max", flat=True),
    "AdaptiveMaxPooling2D": _adaptive("max", flat=False),
    "AdaptiveAveragePooling1D": _adaptive("average", flat=True),
    "AdaptiveAveragePooling2D": _adaptive("average", flat=False),
}

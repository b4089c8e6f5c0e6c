"""Windows as single operations: convolutions with constant kernels, pooling, patches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product as places
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers import convolution, pooling, volumes
from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.channels_first import is_first, of_images
from nnbuild.frontend.keras_layers.normalization import as_array
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, Operation
from nnbuild.frontend.keras_layers.products import ordered, seen
from nnbuild.frontend.keras_weights import Stored, StoredArray
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Pair
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.pad import Pad
from nnbuild.ops.slice import Slice
from nnbuild.ops.windows import same_padding

MOST_PARTS = 1024
"""Places of a window whose patches are put together place by place."""
_POOLED = ("pool_size", "strides", "padding")
_WINDOW = ("strides", "padding", "dilation_rate")
_TENSORFLOW = ("filter", "filters", "strides", "stride", "padding", "dilations", "rate", "ksize", "use_cudnn_on_gpu")
_KERNELS = ("kernel", "depthwise_kernel", "pointwise_kernel")
_LAYERS = {**convolution.LAYERS, **pooling.LAYERS, **volumes.LAYERS}


def _pooled(layer: str, call: Call) -> tuple[str, ...]:
    """The operation's options are those of the layer."""
    name = f"{layer}{len(call.shape) - 1}D"
    if name not in _LAYERS:
        raise call.config.error(f"it pools {call.shape}, not [time, channels] or [height, width, channels].", OTHERWISE)
    return _LAYERS[name].build(replace(call, config=options(call)))


def _convolved(call: Call, kind: str) -> tuple[str, ...]:
    """What the layer does that has these kernels."""
    roles = {"Depthwise": _KERNELS[1:2], "Separable": _KERNELS[1:]}.get(kind, _KERNELS[:1])
    given = [*call.arguments, *(call.named[key] for key in ("inputs", *_KERNELS) if key in call.named)]
    x, *held = given or (None,)
    if len(held) != len(roles) or not isinstance(x, Wire) or any(isinstance(part, Wire) for part in held):
        raise call.config.error("its kernel is computed.", "Give it a constant kernel.")
    kernels = [as_array(call.config, part, role).astype(np.float32) for part, role in zip(held, roles, strict=True)]
    shape, axes = call.builder.shape(x.name), len(call.builder.shape(x.name)) - 1
    name = f"Conv{axes}DTranspose" if kind == "Transpose" else f"{kind}Conv{axes}D"
    if name not in _LAYERS or any(each.ndim != axes + 2 for each in kernels):
        raise call.config.error(f"it filters {shape} by a kernel {kernels[0].shape}.", OTHERWISE)
    config = {
        "kernel_size": kernels[0].shape[:axes],
        "use_bias": False,
        **_settings(call, kind, kernels, shape[0] if is_first(options(call)) else shape[-1]),
    }
    stored = Stored(
        {
            role: StoredArray(values.shape, partial(np.array, values))
            for role, values in zip(roles, kernels, strict=True)
        }
    )
    inner = replace(
        call,
        config=Config(call.config.where, config),
        stored=stored,
        inputs=(x.name,),
        path=(call.builder.layer,),
    )
    return _LAYERS[name].build(inner)


def _of_tensorflow(call: Call, build: Callable[[Call], tuple[str, ...]]) -> tuple[str, ...]:
    """Names and forms of TensorFlow's options become Keras' own."""
    found, axes = options(call), len(call.shape) - 1
    given = {
        "data_format": "channels_first" if is_first(found) else None,
        "strides": _inner(found, axes, "strides", "stride"),
        "padding": str(found.get("padding")).lower(),
        "dilation_rate": _inner(found, axes, "dilations", "rate"),
        "pool_size": _inner(found, axes, "ksize"),
    }
    kernels = {key: found.get(key) for key in ("filter", "filters") if found.get(key) is not None}
    named = {key: value for key, value in given.items() if value is not None}
    return build(replace(call, named=named, arguments=(Wire(call.input), *kernels.values())))


def _inner(found: Config, axes: int, *keys: str) -> tuple[int, ...] | None:
    """One number for all axes, one for each, or those of the batch and the channels, too."""
    for key in (key for key in keys if found.get(key) is not None):
        value = found.integers(key, minimum=1)
        value = value * axes if len(value) == 1 else value
        channels = 1 if is_first(found) else -1
        if len(value) == axes + 2 and value[0] == value[channels] == 1:
            value = value[2:] if is_first(found) else value[1:-1]
        if len(value) != axes:
            raise found.wrong(key, f"{axes} whole numbers")
        return value
    return None


def _settings(call: Call, kind: str, kernels: list[Array], channels: int) -> Mapping[str, Any]:
    found = options(call)
    given = {key: found.get(key) for key in (*_WINDOW, "data_format") if found.get(key) is not None}
    given = {
        key: value.lower() if isinstance(value, str) and key == "padding" else value for key, value in given.items()
    }
    if kind == "Transpose":
        return {**given, "output_padding": found.get("output_padding"), "filters": kernels[0].shape[-2]}
    if kind == "Depthwise":
        return {**given, "depth_multiplier": kernels[0].shape[-1]}
    if kind == "Separable":
        return {**given, "depth_multiplier": kernels[0].shape[-1], "filters": kernels[1].shape[-1]}
    share = kernels[0].shape[-2]
    if channels % share:
        raise call.config.error(f"its kernel {kernels[0].shape} does not divide {channels} channels.", OTHERWISE)
    return {**given, "filters": kernels[0].shape[-1], "groups": channels // share}


def _patches(call: Call) -> str:
    """The windows of an image, each as channels: row by row, then column by column."""
    found, shape = options(call), call.shape
    if len(shape) != 3:
        raise call.config.error("its images are not [height, width, channels].", OTHERWISE)
    taps = found.pair("size")
    strides = found.pair("strides") if found.values.get("strides") is not None else taps
    dilation = found.pair("dilation_rate")
    x = call.input
    if found.choice("padding", "valid", ("valid", "same")) == "same":
        sides = tuple(same_padding(*each) for each in zip(shape[:2], taps, strides, dilation, strict=True))
        x = call.one(Pad((*sides, (0, 0))), x) if any(map(any, sides)) else x
    return patches(call, x, taps, strides, dilation)


def patches(call: Call, x: str, taps: Pair, strides: Pair, dilation: Pair) -> str:
    """[rows, columns, taps * channels] of an image [height, width, channels]."""
    spans = tuple((n - 1) * d + 1 for n, d in zip(taps, dilation, strict=True))
    rows, columns, channels = call.builder.shape(x)
    counts = tuple((n - span) // s + 1 for n, span, s in zip((rows, columns), spans, strides, strict=True))
    if min(counts) < 1 or prod(taps) > MOST_PARTS:
        raise call.config.error(f"it takes patches of {taps} from images of {(rows, columns)}.", OTHERWISE)
    if taps == strides and dilation == (1, 1):
        return _tiles(call, x, taps, (*counts, channels))
    parts = [
        call.one(Slice((i * dilation[0], j * dilation[1], 0), (*strides, 1), (*counts, channels)), x)
        for i, j in places(*map(range, taps))
    ]
    return call.one(Concatenate(2), *parts) if len(parts) > 1 else parts[0]


def _tiles(call: Call, x: str, taps: tuple[int, int], counts: Shape) -> str:
    """Patches side by side only move."""
    (rows, columns, channels), shape = counts, call.builder.shape(x)
    whole = (rows * taps[0], columns * taps[1], channels)
    x = x if shape == whole else call.one(Slice((0, 0, 0), (1, 1, 1), whole), x)
    x = ordered(call, seen(call, x, (rows, taps[0], columns, taps[1] * channels)), (0, 2, 1, 3))
    return seen(call, x, (rows, columns, prod(taps) * channels))


def _named(build: Callable[..., tuple[str, ...]], *of: str, **options: str) -> Operation:
    """An operation of TensorFlow."""
    inner = partial(build, *of, **options)
    return Operation(lambda call: _of_tensorflow(call, inner), _TENSORFLOW, numbers=True)


OPERATIONS: dict[str, Operation] = {
    "avg_pool1d": _named(_pooled, "AveragePooling"),
    "avg_pool2d": _named(_pooled, "AveragePooling"),
    "conv1d": _named(_convolved, kind=""),
    "conv2d": _named(_convolved, kind=""),
    "depthwise_conv2d": _named(_convolved, kind="Depthwise"),
    "max_pool1d": _named(_pooled, "MaxPooling"),
    "max_pool2d": _named(_pooled, "MaxPooling"),
    "adaptive_average_pool": Operation(partial(_pooled, "AdaptiveAveragePooling"), ("output_size",)),
    "adaptive_max_pool": Operation(partial(_pooled, "AdaptiveMaxPooling"), ("output_size",)),
    "average_pool": Operation(partial(_pooled, "AveragePooling"), _POOLED),
    "conv": Operation(partial(_convolved, kind=""), (*_WINDOW, *_KERNELS), numbers=True),
    "conv_transpose": Operation(
        partial(_convolved, kind="Transpose"), (*_WINDOW, "kernel", "output_padding"), numbers=True
    ),
    "depthwise_conv": Operation(partial(_convolved, kind="Depthwise"), (*_WINDOW, *_KERNELS), numbers=True),
    "extract_patches": Operation(of_images(_patches, 2), ("size", "strides", "dilation_rate", "padding")),
    "max_pool": Operation(partial(_pooled, "MaxPooling"), _POOLED),
    "separable_conv": Operation(partial(_convolved, kind="Separable"), (*_WINDOW, *_KERNELS), numbers=True),
}

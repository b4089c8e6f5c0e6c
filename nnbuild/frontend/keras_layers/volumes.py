"""Layers over three axes, composed of two-axis layers: the slices of a window become channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Call, LayerKind, trained_by
from nnbuild.frontend.keras_layers.channels_first import of_images
from nnbuild.frontend.keras_layers.convolution import PADDINGS, bias, transposed_places
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Pair
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.windows import same_padding, spread

Triple = tuple[int, int, int]
MOST_PHASES = 64


def triple(config: Config, key: str, default: int = 1) -> Triple:
    found = config.integers(key, (default,), 1) if key in config else (default,)
    if len(found) not in (1, 3):
        raise config.wrong(key, "one or three whole numbers")
    return found[0], found[len(found) // 2], found[-1]


@dataclass(frozen=True)
class Window:
    size: Triple
    strides: Triple
    dilation: Triple
    padding: tuple[Pair, Pair, Pair]


def _window(call: Call, size: Triple, strides: Triple, dilation: Triple = (1, 1, 1)) -> Window:
    if len(call.shape) != 4:
        raise call.config.error(f"it needs an input [depth, height, width, channels], not {call.shape}.")
    around: list[Pair] = [(0, 0)] * 3
    if call.config.choice("padding", "valid", PADDINGS) == "same":
        around = [same_padding(call.shape[i], size[i], strides[i], dilation[i]) for i in range(3)]
    return Window(size, strides, dilation, (around[0], around[1], around[2]))


def _conv(call: Call) -> str:
    """The depth slices of each output become its channels, for a two-axis convolution."""
    size, strides, dilation = (triple(call.config, key) for key in ("kernel_size", "strides", "dilation_rate"))
    window, channels, out = _window(call, size, strides, dilation), call.shape[3], call.config.integer("filters")
    groups = call.config.integer("groups", 1)
    if channels % groups or out % groups:
        raise call.config.error(f"its {channels} channels and {out} filters do not divide into {groups} groups.")
    x = call.one(Pad((window.padding[0], (0, 0), (0, 0), (0, 0))), call.input)
    depth, height, width, _ = call.builder.shape(x)
    places = (depth - spread(size[0], dilation[0])) // strides[0] + 1
    if places < 1:
        raise call.config.error(f"its window of {size[0]} is deeper than its input.")
    slices = [
        call.one(Slice((i * dilation[0], 0, 0, 0), (strides[0], 1, 1, 1), (places, height, width, channels)), x)
        for i in range(size[0])
    ]
    joined, share = _side_by_side(call, slices, groups), channels // groups
    stored = (*size, share, out)

    def kernel() -> Array:
        """[depth, rows, columns, in, out] with the depth among the inputs."""
        moved = call.values("kernel", stored).transpose(1, 2, 0, 3, 4)
        return np.ascontiguousarray(moved.reshape(size[1], size[2], size[0] * share, out))

    op = Conv2D(strides[1:], dilation[1:], window.padding[1:], groups)
    constants = {"kernel": call.constant("flat kernel", kernel), **bias(call, out)}
    with call.builder.along((places,)):
        y = call.builder.one(op, (joined,), constants)
    return activate(call, y)


def _side_by_side(call: Call, slices: list[str], groups: int) -> str:
    """Slices as channels, those of each group together."""
    if len(slices) == 1:
        return slices[0]
    *places, channels = call.builder.shape(slices[0])
    if groups > 1:
        slices = [call.one(Reshape((*places, groups, channels // groups)), x) for x in slices]
    joined = call.one(Concatenate(len(places) + (groups > 1)), *slices)
    return call.one(Reshape((*places, channels * len(slices))), joined) if groups > 1 else joined


@dataclass(frozen=True)
class _Phase:
    """Every stride-th depth of a transposed convolution: the taps that reach it, and each one's input for its first."""

    taps: tuple[int, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, first: int, size: int, stride: int, dilation: int) -> _Phase:
        taps = tuple(k for k in range(size) if (first - k * dilation) % stride == 0)
        return cls(taps, tuple((first - k * dilation) // stride for k in taps))


def _transposed(call: Call) -> str:
    """Plain slices of the input reach each depth of the output, as the channels of a two-axis convolution."""
    size, strides, dilation = (triple(call.config, key) for key in ("kernel_size", "strides", "dilation_rate"))
    (depth, height, width, channels), out = _of_three(call), call.config.integer("filters")
    same = call.config.choice("padding", "valid", PADDINGS) == "same"
    extra = _output_padding(call.config)
    deep, *flat = (
        transposed_places(call.config, n, spread(size[i], dilation[i]), strides[i], same, extra[i])
        for i, n in enumerate((depth, height, width))
    )
    if strides[0] > MOST_PHASES:
        raise call.config.error(f"its stride is {strides[0]}.", f"Use {MOST_PHASES} at most.")
    count = -(-deep[0] // strides[0])
    phases = [_Phase.of(deep[1] + i, size[0], strides[0], dilation[0]) for i in range(strides[0])]
    reached = [place for phase in phases for place in phase.places]
    before, after = max(0, -min(reached)), max(0, max(reached) + count - depth)
    x = call.one(Pad(((before, after), (0, 0), (0, 0), (0, 0))), call.input)
    op = Conv2DTranspose((flat[0][0], flat[1][0]), strides[1:], dilation[1:], (flat[0][1], flat[1][1]))

    def kernel(phase: _Phase) -> Array:
        """[depth, rows, columns, out, in] with the depths among the inputs; no tap reaches some phases."""
        values = call.values("kernel", (*size, out, channels))
        chosen = values[list(phase.taps)] if phase.taps else np.zeros_like(values[:1])
        return np.ascontiguousarray(chosen.transpose(1, 2, 3, 0, 4).reshape(*size[1:], out, -1))

    made = []
    for index, phase in enumerate(phases):
        places = phase.places or (0,)
        shape = (count, height, width, channels)
        joined = _side_by_side(call, [call.one(Slice((before + at, 0, 0, 0), (1,) * 4, shape), x) for at in places], 1)
        constants = {"kernel": call.constant(f"kernel of phase {index}", partial(kernel, phase)), **bias(call, out)}
        with call.builder.along((count,)):
            y = call.builder.one(op, (joined,), constants)
        made.append(call.one(Reshape((count, 1, op.size[0], op.size[1], out)), y))
    y = made[0] if len(made) == 1 else call.one(Concatenate(1), *made)
    y = call.one(Reshape((count * strides[0], op.size[0], op.size[1], out)), y)
    whole = (deep[0], op.size[0], op.size[1], out)
    return activate(call, y if call.builder.shape(y) == whole else call.one(Slice((0,) * 4, (1,) * 4, whole), y))


def _output_padding(config: Config) -> tuple[int | None, ...]:
    if "output_padding" not in config:
        return None, None, None
    found = config.integers("output_padding", minimum=0)
    if len(found) not in (1, 3):
        raise config.wrong("output_padding", "one or three whole numbers")
    return found[0], found[len(found) // 2], found[-1]


def _pool(function: str) -> LayerKind:
    """Pools rows and columns first, then the depth: both functions allow this split."""

    def build(call: Call) -> str:
        size = triple(call.config, "pool_size", 2)
        strides = triple(call.config, "strides") if "strides" in call.config else size
        window = _window(call, size, strides)
        with call.builder.along(call.shape[:1]):
            x = call.one(Pool2D(function, size[1:], strides[1:], window.padding[1:]), call.input)
        depth, height, width, channels = call.builder.shape(x)
        x = call.one(Reshape((depth, height * width, channels)), x)
        x = call.one(Pool2D(function, (size[0], 1), (strides[0], 1), (window.padding[0], (0, 0))), x)
        return call.one(Reshape((call.builder.shape(x)[0], height, width, channels)), x)

    return LayerKind(of_images(build, 3))


def _adaptive(function: str) -> LayerKind:
    """Equal windows side by side, as many as its output has elements."""

    def build(call: Call) -> str:
        shape, counts = _of_three(call), triple(call.config, "output_size")
        if any(size % count for size, count in zip(shape, counts, strict=False)):
            cause = f"its input of {shape} does not divide into equal windows for an output of {counts}."
            raise call.config.error(cause, "Choose an output_size that divides it, or pool with overlapping windows.")
        size = [n // count for n, count in zip(shape, counts, strict=False)]
        config = Config(call.config.where, {"pool_size": size, "data_format": call.config.get("data_format")})
        return _pool(function).build(replace(call, config=config))[0]

    return LayerKind(of_images(build, 3))


def _global(function: str) -> LayerKind:
    def build(call: Call) -> str:
        _of_three(call)
        return call.one(Reduce(function, 0, 3, call.config.flag("keepdims", False)), call.input)

    return LayerKind(of_images(build, 3))


def _of_three(call: Call) -> Shape:
    if len(call.shape) != 4:
        raise call.config.error(f"it needs an input [depth, height, width, channels], not {call.shape}.")
    return call.shape


def _sides(config: Config, key: str) -> tuple[Pair, Pair, Pair]:
    """One number, one for each axis, or (before, after) for each axis."""
    value = config.values.get(key, 1)
    items = list(value) if isinstance(value, (list, tuple)) else [value] * 3
    if len(items) != 3:
        raise config.wrong(key, "one number or three")
    each = Config(config.where, {f"{key}[{i}]": item for i, item in enumerate(items)})
    first, second, third = (each.pair(f"{key}[{i}]", 0, 0) for i in range(3))
    return first, second, third


def _padding(call: Call) -> str:
    _of_three(call)
    return call.one(Pad((*_sides(call.config, "padding"), (0, 0))), call.input)


def _cropping(call: Call) -> str:
    shape = _of_three(call)
    cut = (*_sides(call.config, "cropping"), (0, 0))
    counts = tuple(n - sum(pair) for n, pair in zip(shape, cut, strict=True))
    return call.one(Slice(tuple(pair[0] for pair in cut), (1,) * 4, counts), call.input)


def _upsampling(call: Call) -> str:
    _of_three(call)
    return call.one(Repeat((*triple(call.config, "size", 2), 1)), call.input)


LAYERS = {
    "AdaptiveAveragePooling3D": _adaptive("average"),
    "AdaptiveMaxPooling3D": _adaptive("max"),
    "Conv3DTranspose": LayerKind(of_images(_transposed, 3), trained_by("kernel")),
    "Conv3D": LayerKind(of_images(_conv, 3), trained_by("kernel")),
    "Convolution3D": LayerKind(of_images(_conv, 3), trained_by("kernel")),
    "MaxPooling3D": _pool("max"),
    "AveragePooling3D": _pool("average"),
    "MaxPool3D": _pool("max"),
    "AveragePool3D": _pool("average"),
    "GlobalAveragePooling3D": _global("mean"),
    "GlobalMaxPooling3D": _global("max"),
    "ZeroPadding3D": LayerKind(of_images(_padding, 3)),
    "Cropping3D": LayerKind(of_images(_cropping, 3)),
    "UpSampling3D": LayerKind(of_images(_upsampling, 3)),
}

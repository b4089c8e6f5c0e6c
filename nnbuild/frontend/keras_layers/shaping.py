"""Layers that move, crop or repeat values, and those without effect at inference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.channels_first import is_first, of_images, turned
from nnbuild.frontend.keras_layers.resizing import INTERPOLATIONS, resized
from nnbuild.model.graph import Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Pair
from nnbuild.ops.pad import Pad
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose


def _flatten(call: Call) -> str:
    x = turned(call, call.input, len(call.shape) - 1, last=True) if is_first(call.config) else call.input
    return call.one(Reshape((prod(call.shape),)), x)


def filled_in(config: Config, wanted: Sequence[int], shape: Shape) -> Shape:
    """A target shape with its single -1 replaced."""
    open_axes = [i for i, n in enumerate(wanted) if n == -1]
    known = prod(n for n in wanted if n != -1)
    fits = len(open_axes) <= 1 and all(n > 0 or n == -1 for n in wanted) and known <= prod(shape)
    if not fits or (open_axes and prod(shape) % known):
        raise config.error(f"{shape} cannot be reshaped to {tuple(wanted)}.")
    return tuple(prod(shape) // known if n == -1 else n for n in wanted)


def _reshape(call: Call) -> str:
    wanted = call.config.integers("target_shape")
    return call.one(Reshape(filled_in(call.config, wanted, call.shape)), call.input)


def _permute(call: Call) -> str:
    dims = call.config.integers("dims")
    if sorted(dims) != list(range(1, len(call.shape) + 1)):
        raise call.config.error(f"its option 'dims' {dims} is not an order of the axes of {call.shape}.")
    return call.one(Transpose(tuple(axis - 1 for axis in dims)), call.input)


def _repeat_vector(call: Call) -> str:
    if len(call.shape) != 1:
        raise call.config.error(f"it needs an input of one axis, not {call.shape}.")
    row = call.one(Reshape((1, *call.shape)), call.input)
    return call.one(Repeat((call.config.integer("n"), 1)), row)


def around(config: Config, key: str, axes: int) -> tuple[Pair, ...]:
    """A padding or cropping: one number, one for each axis, or (before, after) for each axis."""
    value = config.values.get(key, 1)
    if axes == 1:
        both = config.pair(key, 1, 0)
        return (both,)
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, (list, tuple)) for v in value):
        sides = Config(config.where, {f"{key}[{i}]": v for i, v in enumerate(value)})
        return tuple(sides.pair(f"{key}[{i}]", 0, 0) for i in (0, 1))
    rows, columns = config.pair(key, 1, 0)
    return (rows, rows), (columns, columns)


def _of_rank(call: Call, axes: int) -> Shape:
    if len(call.shape) != axes + 1:
        raise call.config.error(f"it needs an input of {axes + 1} axes, not {call.shape}.")
    return call.shape


def _zero_padding(axes: int) -> LayerKind:
    def build(call: Call) -> str:
        _of_rank(call, axes)
        return call.one(Pad((*around(call.config, "padding", axes), (0, 0))), call.input)

    return LayerKind(of_images(build, axes))


def _cropping(axes: int) -> LayerKind:
    def build(call: Call) -> str:
        shape = _of_rank(call, axes)
        cut = (*around(call.config, "cropping", axes), (0, 0))
        counts = tuple(n - sum(pair) for n, pair in zip(shape, cut, strict=True))
        return call.one(Slice(tuple(pair[0] for pair in cut), (1,) * len(shape), counts), call.input)

    return LayerKind(of_images(build, axes))


def _upsampling_1d(call: Call) -> str:
    _of_rank(call, 1)
    return call.one(Repeat((call.config.single("size", 2), 1)), call.input)


def _upsampling_2d(call: Call) -> str:
    _of_rank(call, 2)
    factors = call.config.pair("size", 2)
    interpolation = call.config.choice("interpolation", "nearest", INTERPOLATIONS)
    if interpolation == "nearest":
        return call.one(Repeat((*factors, 1)), call.input)
    return resized(call, call.input, (call.shape[0] * factors[0], call.shape[1] * factors[1]), interpolation)


NOTHING_TO_DO = LayerKind(single(lambda call: call.input), passes_mask=True, takes_whole=True)


def unmasked_in(generation: int) -> LayerKind:
    """Nothing happens, but in this generation of Keras the mask is lost."""

    def build(call: Call) -> str:
        lost = call.dialect.version[0] == generation and call.input in call.builder.masks
        return call.one(Activation("linear"), call.input) if lost else call.input

    return LayerKind(single(build), takes_whole=True)


LAYERS = {
    "Flatten": LayerKind(single(_flatten)),
    "Reshape": LayerKind(single(_reshape)),
    "Permute": LayerKind(single(_permute)),
    "RepeatVector": LayerKind(single(_repeat_vector)),
    "ZeroPadding1D": _zero_padding(1),
    "ZeroPadding2D": _zero_padding(2),
    "Cropping1D": _cropping(1),
    "Cropping2D": _cropping(2),
    "UpSampling1D": LayerKind(of_images(_upsampling_1d, 1)),
    "UpSampling2D": LayerKind(of_images(_upsampling_2d, 2)),
    "Dropout": NOTHING_TO_DO,
    "SpatialDropout1D": NOTHING_TO_DO,
    "SpatialDropout2D": NOTHING_TO_DO,
    "AlphaDropout": NOTHING_TO_DO,
    "GaussianDropout": NOTHING_TO_DO,
    "GaussianNoise": NOTHING_TO_DO,
    "ActivityRegularization": NOTHING_TO_DO,
    "SpatialDropout3D": NOTHING_TO_DO,
    "Identity": unmasked_in(2),
}

"""Normalization layers, and the rescaling layers at the start of many models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.activation import inverse, sample_axes
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_layers.products import normalized, ordered, unit_length
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape

_RENORM = ("moving_stddev", "renorm_mean", "renorm_stddev")
"""What Keras 2's `renorm` keeps for training alone: at inference it is the usual normalization."""


def _batch_weights(config: Config, layers: Layers) -> WeightTree:
    trained = [role for role, key in (("gamma", "scale"), ("beta", "center")) if config.flag(key, True)]
    of_training = _RENORM if config.flag("renorm", False) else ()
    return WeightTree(tuple(trained), ("moving_mean", "moving_variance", *of_training))


def _batch(call: Call) -> str:
    axes = sample_axes(call.config, call.config.integers("axis", (-1,)), call.shape)
    along = tuple(n if axis in axes else 1 for axis, n in enumerate(call.shape))
    # With several axes, which Keras 2 allows, the weights keep every axis, including the batch.
    size = (call.shape[axes[0]],) if len(axes) == 1 else (1, *along)
    epsilon = call.config.number("epsilon", 1e-3)

    def exact(role: str, wanted: bool, otherwise: float) -> Array:
        return call.values(role, size).astype(np.float64) if wanted else np.full(size, otherwise)

    def factors() -> tuple[Array, ...]:
        variance = exact("moving_variance", True, 1.0) + epsilon
        if (variance <= 0).any():
            raise call.config.error("its moving_variance is negative, so it has no square root.")
        scale = exact("gamma", call.config.flag("scale", True), 1.0) / np.sqrt(variance)
        return scale, exact("beta", call.config.flag("center", True), 0.0) - exact("moving_mean", True, 0.0) * scale

    if len(axes) == 1:
        return call.builder.one(Affine(axes[0]), (call.input,), float32_pair(call, factors))
    constants = float32_pair(call, lambda: tuple(values.reshape(along) for values in factors()))
    scaled_up = call.one(Binary("multiply"), call.input, right=constants["scale"])
    return call.one(Binary("add"), scaled_up, right=constants["shift"])


def float32_pair(call: Call, factors: Callable[[], tuple[Array, ...]], named: str = "") -> dict[str, str]:
    """A scale and an offset, computed in float64 and stored in float32."""

    def part(index: int) -> Array:
        with np.errstate(all="ignore"):
            values = factors()[index].astype(np.float32)
        if not np.isfinite(values).all():
            raise call.config.error(
                "its numbers are outside the range of single precision.", "Check how the model was trained."
            )
        return values

    return {
        role: call.constant(f"{role} {named}".rstrip(), partial(part, index))
        for index, role in enumerate(("scale", "shift"))
    }


def _layer_weights(config: Config, layers: Layers) -> WeightTree:
    by_variance = config.flag("rms_scaling", False)
    scale, shift = (config.flag(key, True) for key in ("scale", "center"))
    trained = (*(("gamma",) if scale or by_variance else ()), *(("beta",) if shift and not by_variance else ()))
    return WeightTree(trained)


def _layer_norm(call: Call) -> str:
    axes = sample_axes(call.config, call.config.integers("axis", (-1,)), call.shape)
    size = tuple(call.shape[axis] for axis in axes)
    trained = _layer_weights(call.config, call.layers).trained
    roles = {"scale": "gamma", "shift": "beta"}
    constants = {ours: call.weight(theirs, size) for ours, theirs in roles.items() if theirs in trained}
    epsilon, by_variance = call.config.number("epsilon", 1e-3), call.config.flag("rms_scaling", False)
    return layer_norm(call, call.input, axes, epsilon, constants, by_variance)


def layer_norm(
    call: Call, x: str, axes: tuple[int, ...], epsilon: float, constants: dict[str, str], by_variance: bool
) -> str:
    """`by_variance`: Keras' rms_scaling, which divides by the deviation from the mean, but does not subtract it."""
    if not by_variance:
        return normalized(call, x, LayerNorm(len(axes), epsilon), axes, constants)
    shape = call.builder.shape(x)
    order = (*(axis for axis in range(len(shape)) if axis not in axes), *axes)
    x, first = ordered(call, x, order), len(shape) - len(axes)
    mean = call.one(Reduce("mean", first, len(axes), True), x)
    squares = call.one(Activation("square"), call.one(Binary("subtract"), x, mean))
    variance = call.one(Reduce("mean", first, len(axes), True), squares)
    added = call.constant("epsilon", lambda: np.full((1,), epsilon, np.float32))
    inverse_root = call.one(Activation("rsqrt"), call.one(Binary("add"), variance, right=added))
    y = call.one(Binary("multiply"), x, inverse_root)
    y = call.one(Binary("multiply"), y, right=constants["scale"]) if "scale" in constants else y
    y = call.one(Binary("add"), y, right=constants["shift"]) if "shift" in constants else y
    return ordered(call, y, inverse(order))


def _root_mean_square(call: Call) -> str:
    axes = sample_axes(call.config, call.config.integers("axis", (-1,)), call.shape)
    size = tuple(call.shape[axis] for axis in axes)
    scale = call.weight("scale", size)
    return root_mean_square(call, call.input, axes, call.config.number("epsilon", 1e-6), (scale, size))


def root_mean_square(call: Call, x: str, axes: tuple[int, ...], epsilon: float, scale: tuple[str, Shape] | None) -> str:
    """Keras multiplies by the scale along the last axes, whichever were normalized."""
    shape, op = call.builder.shape(x), LayerNorm(len(axes), epsilon, centred=False)
    along = scale is not None and axes == tuple(range(len(shape) - len(axes), len(shape)))
    if scale is None or (along and scale[1] == shape[-len(axes) :]):
        return normalized(call, x, op, axes, {} if scale is None else {"scale": scale[0]})
    return call.one(Binary("multiply"), normalized(call, x, op, axes, {}), right=scale[0])


def _unit(call: Call) -> str:
    axes = call.config.integers("axis", (-1,)) if "axis" in call.config else tuple(range(1, len(call.shape) + 1))
    return unit_length(call, call.input, sample_axes(call.config, axes, call.shape))


def _group_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(tuple(role for role, key in (("gamma", "scale"), ("beta", "center")) if config.flag(key, True)))


def _group(call: Call) -> str:
    """Normalizes over all positions and the channels of a group, then applies a scale and an offset per channel."""
    (axis,) = sample_axes(call.config, (call.config.one("axis", -1),), call.shape)
    channels, groups = call.shape[axis], call.config.integer("groups", 32, -1)
    groups = channels if groups == -1 else groups
    if groups < 1 or channels % groups:
        raise call.config.error(f"it takes {channels} channels in {groups} groups.", "Let the groups divide them.")
    order = (axis, *(i for i in range(len(call.shape)) if i != axis))
    first = ordered(call, call.input, order)
    x = call.one(Reshape((groups, prod(call.shape) // groups)), first)
    x = call.one(LayerNorm(1, call.config.number("epsilon", 1e-3)), x)
    x = ordered(call, call.one(Reshape(call.builder.shape(first)), x), inverse(order))
    roles = (("scale", "gamma", "scale", np.ones), ("shift", "beta", "center", np.zeros))
    constants = {
        ours: call.weight(theirs, (channels,))
        if call.config.flag(key, True)
        else call.constant(theirs, partial(make, channels, np.float32))
        for ours, theirs, key, make in roles
    }
    return call.builder.one(Affine(axis), (x,), constants)


def _layer_scale(call: Call) -> str:
    return call.one(Binary("multiply"), call.input, right=call.weight("gamma", call.shape[-1:]))


def _numbers(config: Config, key: str) -> Array:
    """A number or nested lists of numbers, as a numpy array."""
    value = config.get(key)
    if isinstance(value, dict) and isinstance(value.get("config"), dict):
        value = value["config"].get("value")
    return as_array(config, value, key)


def as_array(config: Config, value: Any, what: str, bounds: bool = False) -> Array:
    """Numbers of the file; with `bounds`, infinity stands for the largest number."""
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise config.error(f"its {what} is {shown(value)}, not numbers.") from None
    if bounds:
        limit = float(np.finfo(np.float32).max)
        found = np.where(np.isinf(found), np.clip(found, -limit, limit), found)
    with np.errstate(all="ignore"):
        narrow = found.astype(np.float32)
    if not np.isfinite(narrow).all() or found.size == 0:
        raise config.error(f"its {what} is {shown(value)}, not finite numbers.")
    return found


def _normalization_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree() if "mean" in config else WeightTree((), ("mean", "variance", "count"))


def _normalization(call: Call) -> str:
    config = call.config
    invert = config.flag("invert")
    given = config.values.get("axis", (-1,))
    axes = sample_axes(config, config.integers("axis"), call.shape) if given is not None and given != [] else ()
    size = tuple(call.shape[axis] for axis in axes)

    def read(role: str) -> Array:
        value = _numbers(config, role) if "mean" in config else call.values(role, size).astype(np.float64)
        along = tuple(n if axis in axes else 1 for axis, n in enumerate(call.shape))
        if value.size not in (1, prod(size)):
            raise config.error(f"its {role} holds {value.size} numbers, but needs {prod(size)}.")
        return np.broadcast_to(value.reshape(-1), (prod(size),)).reshape(along)

    def scale() -> Array:
        deviation = np.maximum(np.sqrt(np.maximum(read("variance"), 0)), 1e-7)
        return deviation if invert else 1 / deviation

    def shift() -> Array:
        return read("mean") if invert else -read("mean") * scale()

    if len(axes) == 1:
        flat = float32_pair(call, lambda: (scale().reshape(-1), shift().reshape(-1)))
        return call.builder.one(Affine(axes[0]), (call.input,), flat)
    y = call.one(Binary("multiply"), call.input, right=call.constant("scale", lambda: single_precision(scale())))
    return call.one(Binary("add"), y, right=call.constant("shift", lambda: single_precision(shift())))


def single_precision(values: Array) -> Array:
    return np.asarray(values, np.float32)


def _rescaling(call: Call) -> str:
    scale = _numbers(call.config, "scale")
    offset = _numbers(call.config, "offset") if "offset" in call.config else np.zeros(())
    y = scaled(call, call.input, "multiply", "scale", scale)
    return scaled(call, y, "add", "offset", offset) if offset.any() else y


def scaled(call: Call, x: str, function: str, role: str, value: Array) -> str:
    """x (function) constant, where the constant broadcasts over trailing axes."""
    fitted = value.reshape((1,) * (len(call.builder.shape(x)) - value.ndim) + value.shape)
    return call.one(Binary(function), x, right=call.constant(role, lambda: single_precision(fitted)))


def lrn(call: Call, x: str, config: Config) -> str:
    op = LRN(
        config.integer("depth_radius", 5, 0),
        config.number("bias", 1),
        config.number("alpha", 1),
        config.number("beta", 0.5),
    )
    if len(call.builder.shape(x)) != 3:
        raise config.error(f"it needs an input [height, width, channels], not {call.builder.shape(x)}.")
    if op.bias <= 0 or op.alpha < 0:
        raise config.error("its bias or alpha would make it divide by zero or less.")
    return call.one(op, x)


def _lrn_layer(call: Call) -> str:
    return lrn(call, call.input, call.config)


LAYERS = {
    "BatchNormalization": LayerKind(single(_batch), _batch_weights, takes_mask=True, passes_mask=True),
    "BatchNormalizationV1": LayerKind(single(_batch), _batch_weights),  # its name in TensorFlow 1
    "LayerNormalization": LayerKind(single(_layer_norm), _layer_weights, passes_mask=True),
    "GroupNormalization": LayerKind(single(_group), _group_weights, passes_mask=True),
    "RMSNormalization": LayerKind(single(_root_mean_square), lambda config, layers: WeightTree(("scale",))),
    "UnitNormalization": LayerKind(single(_unit), passes_mask=True),
    "LayerScale": LayerKind(single(_layer_scale), lambda config, layers: WeightTree(("gamma",))),
    "Normalization": LayerKind(single(_normalization), _normalization_weights),
    "Rescaling": LayerKind(single(_rescaling)),
    "LRN": LayerKind(single(_lrn_layer)),
}

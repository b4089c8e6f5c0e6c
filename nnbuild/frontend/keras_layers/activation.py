"""Activation functions, by name and as separate layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_version import NO_BOUND, Dialect
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import normal_axis
from nnbuild.ops.compare import Compare
from nnbuild.ops.functions import Function
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.select import Select
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose

LINEAR: Function = ("linear", ())
SOFTMAX: Function = ("softmax", ())
"""Stands for the softmax over the last axis, which is a separate operation."""

NOTHING = -1e9
"""The score of masked positions, as in Keras: so low that a softmax gives them no weight."""

BY_NAME: dict[str, Function] = {
    "linear": LINEAR,
    "relu": ("clamp", (0.0, NO_BOUND)),
    "relu6": ("clamp", (0.0, 6.0)),
    "hard_tanh": ("clamp", (-1.0, 1.0)),
    "leaky_relu": ("leaky_relu", (0.2,)),
    "elu": ("elu", (1.0,)),
    "selu": ("selu", ()),
    "softmax": SOFTMAX,
    "softplus": ("softplus", ()),
    "softsign": ("softsign", ()),
    "tanh": ("tanh", ()),
    "sigmoid": ("sigmoid", ()),
    "hard_silu": ("hard_swish", ()),
    "hard_swish": ("hard_swish", ()),
    "silu": ("swish", ()),
    "swish": ("swish", ()),
    "gelu": ("gelu", ()),
    "exponential": ("exponential", ()),
    "mish": ("mish", ()),
}


COMPOSED = (
    *("celu", "glu", "hard_shrink", "log_sigmoid", "log_softmax", "soft_shrink", "sparse_plus", "sparse_sigmoid"),
    *("sparsemax", "squareplus", "tanh_shrink", "threshold"),
)
"""Functions composed of several operations, as by `keras.ops`; recurrent cells do not support them."""


def named(name: str, dialect: Dialect, config: Config) -> Function:
    if name == "hard_sigmoid":
        return dialect.hard_sigmoid
    if name not in BY_NAME:
        raise config.error(
            f"its activation {shown(name)} is not supported.",
            f"Use one of {', '.join(sorted({*BY_NAME, 'hard_sigmoid'}))}; outside of recurrent cells also "
            f"{', '.join(COMPOSED)}, and any function made of keras.ops in a call of its own: y = f(layer(x)).",
        )
    return BY_NAME[name]


def function_of(value: Any, dialect: Dialect, config: Config) -> Function:
    """The function that an `activation` option names, by a string, a function object or a layer object."""
    if value is None:
        return LINEAR
    if isinstance(value, str):
        return named(value, dialect, config)
    if not isinstance(value, Mapping):
        raise config.error(f"its activation is {shown(value)}, not a name.")
    kind, inner = value.get("class_name"), value.get("config")
    if kind == "function" and isinstance(inner, str):
        return named(inner, dialect, config)
    if isinstance(kind, str) and kind in _AS_FUNCTION and isinstance(inner, Mapping):
        return _AS_FUNCTION[kind](Config(config.where, inner), dialect)
    name = inner.get("name") if isinstance(inner, Mapping) else inner
    raise config.error(
        f"its activation is an object of the class {shown(kind)} ({shown(name)}), which nnbuild cannot follow.",
        "Give the activation's name as a string, or add it to the model as a separate layer.",
    )


def apply(call: Call, x: str, function: Function) -> str:
    if function == LINEAR:
        return x
    if function == SOFTMAX:
        return softmax_over(call, x, (len(call.builder.shape(x)) - 1,))
    return call.one(Activation(*function), x)


def activate(call: Call, x: str, key: str = "activation", default: str | None = None) -> str:
    """Applies a layer's `activation` option."""
    value = call.config.values.get(key, default)
    name = value.get("config") if isinstance(value, Mapping) and value.get("class_name") == "function" else value
    if name in COMPOSED:
        operation = {"class_name": name.title().replace("_", ""), "config": {"name": name}}
        return call.layers.run(operation, (*call.path, name), (x,), call.stored)[0]
    return apply(call, x, function_of(value, call.dialect, call.config))


def softmax_over(call: Call, x: str, axes: tuple[int, ...]) -> str:
    """Moves axes that are not adjacent next to each other, and back afterwards."""
    rank, first = len(call.builder.shape(x)), axes[0]
    if axes == tuple(range(first, first + len(axes))):
        return call.one(Softmax(first, len(axes)), x)
    order = (*(axis for axis in range(rank) if axis not in axes), *axes)
    turned = call.one(Softmax(rank - len(axes), len(axes)), call.one(Transpose(order), x))
    return call.one(Transpose(inverse(order)), turned)


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def sample_axes(config: Config, axes: tuple[int, ...], shape: Shape) -> tuple[int, ...]:
    """Converts Keras's axes, which include the batch, to axes without it."""
    try:
        found = sorted({normal_axis(axis, len(shape) + 1) - 1 for axis in axes})
    except ValueError as error:
        raise config.error(str(error)) from None
    if not found or found[0] < 0:
        raise config.error(
            "it works along the batch axis, but a compiled model computes one sample at a time.",
            "Rebuild the layer so that it does not use the first axis.",
        )
    return tuple(found)


def _relu(config: Config, dialect: Dialect) -> Function:
    highest = config.number("max_value") if "max_value" in config else NO_BOUND
    slope = config.number("negative_slope", 0.0) if "negative_slope" in config else 0.0
    threshold = config.number("threshold", 0.0) if "threshold" in config else 0.0
    if highest < 0 or threshold < 0:
        raise config.error("its max_value or its threshold is negative.")
    if slope == 0 and threshold == 0:
        return "clamp", (0.0, highest)
    if threshold == 0 and highest == NO_BOUND:
        return "leaky_relu", (slope,)
    return "relu", (highest, slope, threshold)


def _leaky(config: Config, dialect: Dialect) -> Function:
    keys = [key for key in dialect.leaky_slope if key in config]
    return "leaky_relu", (config.number(keys[0]) if keys else 0.3,)


def _elu(config: Config, dialect: Dialect) -> Function:
    return "elu", (config.number("alpha", 1.0),)


def _nested(config: Config, dialect: Dialect) -> Function:
    value = config.get("activation")
    return named(value, dialect, config) if isinstance(value, str) else LINEAR


_AS_FUNCTION = {"ReLU": _relu, "LeakyReLU": _leaky, "ELU": _elu, "Activation": _nested}


def _as_layer(function: Callable[[Config, Dialect], Function]) -> LayerKind:
    return LayerKind(
        single(lambda call: apply(call, call.input, function(call.config, call.dialect))), passes_mask=True
    )


def _activation(call: Call) -> str:
    return activate(call, call.input)


def _softmax(call: Call) -> str:
    axes = sample_axes(call.config, call.config.integers("axis", (-1,)), call.shape)
    if call.mask is None:
        return softmax_over(call, call.input, axes)
    made = softmax_over(call, chosen(call, call.mask, call.input), axes)
    return without_masked(call, call.mask, made) if call.dialect.zeros_where_all_is_masked else made


def chosen(call: Call, allowed: str, scores: str) -> str:
    """Applies a mask to scores, so that a softmax ignores the masked ones."""
    none = call.constant("nothing", lambda: np.full((1,), NOTHING, np.float32))
    return call.one(Select(), allowed, scores, other=none)


def without_masked(call: Call, allowed: str, shares: str) -> str:
    """Zeros for masked shares: a softmax of masked scores alone would make all of them equal."""
    none = call.constant("no share", lambda: np.zeros((1,), np.float32))
    return call.one(Select(), allowed, shares, other=none)


def _thresholded(call: Call) -> str:
    """Zeros up to a number, which Keras' other layers with a threshold keep itself."""
    least = np.full((1,), call.config.number("theta", 1.0), np.float32)
    above = call.one(Compare("greater"), call.input, right=call.constant("theta", lambda: least))
    none = call.constant("nothing", lambda: np.zeros((1,), np.float32))
    return call.one(Select(), above, call.input, other=none)


def _shared_axes(config: Config) -> tuple[int, ...]:
    return config.integers("shared_axes", ()) if "shared_axes" in config else ()


def _prelu(call: Call) -> str:
    shape, shared = call.shape, _shared_axes(call.config)
    together = sample_axes(call.config, shared, shape) if shared else ()
    slope = tuple(1 if axis in together else n for axis, n in enumerate(shape))
    return call.one(PReLU(), call.input, slope=call.weight("alpha", slope))


def _prelu_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(("alpha",))


LAYERS = {
    "Activation": LayerKind(single(_activation), passes_mask=True),
    "ReLU": _as_layer(_relu),
    "LeakyReLU": _as_layer(_leaky),
    "ELU": _as_layer(_elu),
    "ThresholdedReLU": LayerKind(single(_thresholded), passes_mask=True),
    "Softmax": LayerKind(single(_softmax), sees_mask=True, takes_mask=True, passes_mask=True),
    "PReLU": LayerKind(single(_prelu), _prelu_weights, passes_mask=True),
}

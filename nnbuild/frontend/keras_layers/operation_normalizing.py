"""Normalizations as single operations, with constant factors and summands."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.normalization import (
    as_array,
    float32_pair,
    layer_norm,
    root_mean_square,
    single_precision,
)
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, Operation
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.affine import Affine

EPSILON = 1e-7
"""What Keras adds where no number is given."""


def _held(call: Call, *roles: str) -> tuple[str, dict[str, Array]]:
    """The tensor, and the constants that it is called with."""
    given = dict(zip(("x", *roles), call.arguments, strict=False)) | {k: v for k, v in call.named.items() if k in roles}
    x = given.pop("x", call.named.get("x"))
    given = {role: value for role, value in given.items() if value is not None}
    if not isinstance(x, Wire) or any(isinstance(value, Wire) for value in given.values()):
        raise call.config.error("its factors are computed.", "Multiply its result by them, and add.")
    return x.name, {role: as_array(call.config, value, role) for role, value in given.items()}


def _axes(call: Call, x: str) -> tuple[int, ...]:
    return sample_axes(call.config, options(call).integers("axis", (-1,)), call.builder.shape(x))


def _epsilon(call: Call, default: float) -> float:
    found = options(call)
    return found.number("epsilon") if "epsilon" in found else default


def _fitted(call: Call, role: str, values: Array, shape: Shape) -> str:
    if values.shape not in (shape, (1,) * (values.ndim - len(shape)) + shape):
        raise call.config.error(f"its {role} has the shape {values.shape}, but needs {shape}.", OTHERWISE)
    return call.constant(f"{role} of {call.builder.layer}", lambda: single_precision(values.reshape(shape)))


def _layer_norm(call: Call) -> str:
    x, held = _held(call, "gamma", "beta")
    axes = _axes(call, x)
    size = tuple(call.builder.shape(x)[axis] for axis in axes)
    constants = {
        ours: _fitted(call, theirs, held[theirs], size)
        for ours, theirs in (("scale", "gamma"), ("shift", "beta"))
        if theirs in held
    }
    by_variance = options(call).flag("rms_scaling", False)
    return layer_norm(call, x, axes, _epsilon(call, EPSILON), constants, by_variance)


def _root_mean_square(call: Call) -> str:
    x, held = _held(call, "scale")
    scale = None
    if "scale" in held:
        rank, values = len(call.builder.shape(x)), single_precision(held["scale"])
        values = values[0] if values.ndim > rank and len(values) == 1 else values
        scale = (
            call.constant(f"scale of {call.builder.layer}", lambda: values.reshape(values.shape or (1,))),
            values.shape,
        )
    return root_mean_square(call, x, _axes(call, x), _epsilon(call, EPSILON), scale)


def _batch_norm(call: Call) -> str:
    x, held = _held(call, "mean", "variance", "offset", "scale")
    axes = _axes(call, x)
    size = (call.builder.shape(x)[axes[0]],)
    if len(axes) != 1 or not {"mean", "variance"} <= held.keys() or any(v.shape != size for v in held.values()):
        shapes = {role: values.shape for role, values in held.items()}
        raise call.config.error(f"it normalizes {call.builder.shape(x)} by {shapes}.", OTHERWISE)
    spread = held["variance"] + _epsilon(call, 1e-3)
    if (spread <= 0).any():
        raise call.config.error("its variance is negative, so it has no square root.")
    scale = held.get("scale", np.ones(size)) / np.sqrt(spread)
    shift = held.get("offset", np.zeros(size)) - held["mean"] * scale
    named = f"of {call.builder.layer}"
    return call.builder.one(Affine(axes[0]), (x,), float32_pair(call, lambda: (scale, shift), named))


_OPTIONS = ("axis", "epsilon")
OPERATIONS: dict[str, Operation] = {
    "batch_norm": Operation(_batch_norm, (*_OPTIONS, "mean", "variance", "offset", "scale"), numbers=True),
    "layer_norm": Operation(_layer_norm, (*_OPTIONS, "rms_scaling", "gamma", "beta"), numbers=True),
    "rmsnorm": Operation(_root_mean_square, (*_OPTIONS, "scale"), numbers=True),
}

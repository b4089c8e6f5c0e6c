"""Layers of QKeras: their weights are rounded by the quantizers in the file, and their activations to a grid."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers import convolution, dense, normalization
from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_layers.operation_formulas import by, signs
from nnbuild.frontend.keras_weights import DAMAGED, StoredArray, WeightTree, parts
from nnbuild.model.graph import Array
from nnbuild.ops.activation import Activation
from nnbuild.ops.functions import apply

ADVICE = (
    "Let qkeras.utils.model_save_quantized_weights(model) round its weights, copy them into the same model of Keras' "
    "own layers, and save that."
)
FIELDS = {
    "quantized_bits": ("bits", "integer", "symmetric", "keep_negative", "alpha", "use_stochastic_rounding"),
    "quantized_relu": ("bits", "integer", "use_sigmoid", "negative_slope", "use_stochastic_rounding"),
    "quantized_tanh": ("bits", "use_stochastic_rounding", "symmetric", "use_real_tanh"),
    "quantized_sigmoid": ("bits", "symmetric", "use_real_sigmoid", "use_stochastic_rounding"),
    "binary": ("use_01", "alpha", "use_stochastic_rounding"),
    "stochastic_binary": ("alpha", "temperature", "use_real_sigmoid"),
    "ternary": ("alpha", "threshold", "use_stochastic_rounding", "number_of_unrolls"),
    "stochastic_ternary": ("alpha", "threshold", "temperature", "use_real_sigmoid", "number_of_unrolls"),
}
"""The quantizers that are read, and their options in the order of their arguments. Rounding is stochastic in training
only."""
BINARY, TERNARY = ("binary", "stochastic_binary"), ("ternary", "stochastic_ternary")
OF_WEIGHTS = ("quantized_bits", *BINARY, *TERNARY)
THRESHOLD = 0.33
"""From which a ternary value is not zero, where no scale is fitted."""
REFITS = 5
"""How often QKeras fits a scale that is a power of two, or that of ternary weights."""
MOST_REFITS = 1000
EPSILON = np.float32(1e-7)


@dataclass(frozen=True)
class Quantizer:
    """A name and options."""

    name: str
    config: Config

    def refused(self, cause: str) -> Exception:
        return self.config.error(f"its quantizer {self.name} {cause}.", ADVICE)

    @property
    def bits(self) -> int:
        signed = self.slope > 0 or self.name == "quantized_tanh"
        signed = self.config.flag("keep_negative", True) if self.name == "quantized_bits" else signed
        bits = self.config.integer("bits", 8) - signed
        if not 1 <= bits <= 24:
            raise self.refused(f"has {bits + signed} bits")
        return bits

    @property
    def slope(self) -> float:
        return self.config.number("negative_slope", 0.0)

    @property
    def step(self) -> float:
        """A power of two: the distance between two values."""
        integer = self.config.integer("integer", 0, minimum=-64)
        return 2.0 ** (min(integer, 64) - self.bits)

    @property
    def threshold(self) -> float:
        given = self.config.values.get("threshold")
        return THRESHOLD if given is None else self.config.number("threshold", THRESHOLD)

    def ends(self) -> tuple[float, float]:
        """The smallest and largest value."""
        whole = 2.0**self.bits
        if self.name == "quantized_relu":
            return -self.slope * whole * self.step, (whole - 1) * self.step
        lowest = -whole + bool(self.config.values.get("symmetric", 0)) if self.config.flag("keep_negative", True) else 0
        return lowest * self.step, (whole - 1) * self.step


def quantizer_of(value: Any, config: Config) -> Quantizer:
    """From an object in the file, or from a call written as text, which is parsed and not evaluated."""
    name, options = _parsed(value) if isinstance(value, str) else _held(value)
    if name not in FIELDS or options is None:
        raise config.error(f"its quantizer {shown(name or value)} is not read.", ADVICE)
    found = Quantizer(name, Config(config.where, options))
    if found.config.number("qnoise_factor", 1.0) != 1:
        raise found.refused("rounds only a part of each value (qnoise_factor)")
    if options.get("use_sigmoid"):
        raise found.refused("has use_sigmoid")
    return found


def _held(value: Any) -> tuple[str, Mapping[str, Any] | None]:
    options = value.get("config") if isinstance(value, Mapping) else None
    name = value.get("class_name") if isinstance(value, Mapping) else None
    return str(name or ""), options if isinstance(options, Mapping) else None


def _parsed(text: str) -> tuple[str, Mapping[str, Any] | None]:
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, {}
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return text, None
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text, None
    return call.func.id, {**dict(zip(FIELDS.get(call.func.id, ()), given, strict=False)), **named}


def rounded(values: Array, found: Quantizer, *, fitted: bool) -> Array:
    """Weights as the quantizer makes them. A kernel's scale is `fitted` where none is given."""
    if found.name not in OF_WEIGHTS:
        raise found.refused("is one for activations, but it rounds weights")
    alpha = found.config.values.get("alpha")
    alpha = "auto_po2" if alpha is None and fitted else alpha
    if found.config.values.get("scale_axis") is not None:
        raise found.refused("has a scale_axis")
    if alpha not in (None, "auto", "auto_po2") and (isinstance(alpha, bool) or not isinstance(alpha, int | float)):
        raise found.refused(f"has alpha = {shown(alpha)}")
    if found.name in BINARY:
        return _binary(values, found, alpha)
    if found.name in TERNARY:
        return _ternary(values, found, alpha)
    if isinstance(alpha, str):
        return _fitted(values, found, alpha)
    grid: Array = apply("even_steps", (*found.ends(), found.step), values)
    return grid * np.float32(1 if alpha is None else alpha)


def _binary(values: Array, found: Quantizer, alpha: Any) -> Array:
    """Zero counts as positive."""
    codes = np.where(values < 0, np.float32(0 if found.config.flag("use_01", False) else -1), np.float32(1))
    return _scaled(values, codes, alpha)


def _ternary(values: Array, found: Quantizer, alpha: Any) -> Array:
    """With a fitted scale, the threshold is half of it; both are fitted in turns."""
    if not isinstance(alpha, str):
        least = np.float32(found.threshold)
        return _scaled(values, np.sign(values) * (np.abs(values) >= least), alpha)
    if found.config.values.get("threshold") is not None:
        raise found.refused("has a threshold and a fitted scale")
    refits = found.config.integer("number_of_unrolls", REFITS)
    if refits > MOST_REFITS:
        raise found.refused(f"has number_of_unrolls = {refits}")
    scale = np.abs(values).max(axis=_within_channel(values) or None, keepdims=True) * np.float32(2 / 3)
    scale = _power(scale) if alpha == "auto_po2" else scale
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(refits):
            grid = np.abs(scale * np.rint(values / scale))
            codes = np.sign(values) * (grid >= scale / 2)  # none where the scale is 0
            scale = _least_squares(values, codes, alpha)
    return np.asarray(scale * codes, np.float32)


def _scaled(values: Array, codes: Array, alpha: Any) -> Array:
    known = np.float32(1 if alpha is None or isinstance(alpha, str) else alpha)
    scale = _least_squares(values, codes, alpha) if isinstance(alpha, str) else known
    return np.asarray(scale * codes, np.float32)


def _within_channel(values: Array) -> tuple[int, ...]:
    """All axes but the channels'; a bias has a scale for each value."""
    return tuple(range(values.ndim - 1))


def _least_squares(values: Array, codes: Array, alpha: str) -> Array:
    """The scale of each channel with the least error."""
    sums = (values * codes, codes * codes)
    axes = _within_channel(values)
    xq, qq = (each.mean(axis=axes, keepdims=True, dtype=np.float32) if axes else each for each in sums)
    scale: Array = xq / (qq + EPSILON)
    return _power(scale) if alpha == "auto_po2" else scale


def _fitted(values: Array, found: Quantizer, alpha: str) -> Array:
    """Each channel has a scale that is fitted to its weights."""
    whole = np.float32(2.0**found.bits * found.step)
    x, axes = values / whole, tuple(range(max(values.ndim - 1, 1)))
    most = np.float32(2 ** (found.config.integer("bits", 8) - 1) - 1)
    if most < 1:
        raise found.refused("has too few bits for a fitted scale")
    scale = np.abs(x).max(axis=axes, keepdims=True) / most
    with np.errstate(divide="ignore", invalid="ignore"):
        if alpha == "auto":
            return np.asarray(np.nan_to_num(_codes(x, scale, most)) * scale * whole)
        scale = _power(scale)
        for _ in range(REFITS):
            codes = _codes(x, scale, most)
            scale = _least_squares(x, codes, alpha)
    return codes * scale * whole


def _codes(x: Array, scale: Array, most: np.float32) -> Array:
    found: Array = np.sign(x) * np.minimum(np.floor(np.abs(x) / scale + np.float32(0.5)), most)
    return found


def _power(scale: Array) -> Array:
    found: Array = np.exp2(np.rint(np.log(scale + EPSILON) / np.float32(np.log(2.0)))).astype(np.float32)
    return found


def in_grid(call: Call, x: str, found: Quantizer) -> str:
    """The values of an activation, rounded; a slope below zero comes before."""
    if found.config.values.get("alpha") not in (None, 1):
        raise found.refused(f"of an activation has alpha = {shown(found.config.values['alpha'])}")
    if found.name in BINARY:
        bounds = (("greater_equal", 0.0), *([] if found.config.flag("use_01", False) else [("less", 0.0)]))
        return signs(call, x, *bounds)
    if found.name in TERNARY:
        return signs(call, x, ("greater_equal", found.threshold), ("less_equal", -found.threshold))
    if found.name in ("quantized_tanh", "quantized_sigmoid"):
        return _curve(call, x, found)
    if found.name == "quantized_relu" and found.slope:
        x = call.one(Activation("leaky_relu", (found.slope,)), x)
    return call.one(Activation("even_steps", (*found.ends(), found.step)), x)


def _curve(call: Call, x: str, found: Quantizer) -> str:
    """tanh or sigmoid, or the line with two bounds that stands for it, rounded."""
    function = found.name.removeprefix("quantized_")
    step = 2.0**-found.bits
    lowest = step * found.config.flag("symmetric", False) - (function == "tanh")
    if found.config.flag(f"use_real_{function}", False):
        x = call.one(Activation(function), x)
    elif function == "sigmoid":
        x = by(call, "add", by(call, "multiply", x, 0.5), 0.5)
    return call.one(Activation("even_steps", (lowest, 1 - step, step)), x)


def _activated(call: Call, x: str) -> str:
    value = call.config.values.get("activation")
    name = value.partition("(")[0] if isinstance(value, str) else ""
    plain = value is None or (isinstance(value, str) and not (name in FIELDS or name.startswith("quantized_")))
    return activate(call, x) if plain else in_grid(call, x, quantizer_of(value, call.config))


def _weighted(kind: LayerKind, *roles: str) -> LayerKind:
    """A layer of Keras with rounded weights."""
    return replace(kind, build=single(lambda call: _with_rounded(call, kind, roles)))


def _with_rounded(call: Call, kind: LayerKind, roles: tuple[str, ...]) -> str:
    made = {}
    for name in (*roles, "bias"):
        held, value = call.stored.get(name), call.config.values.get(f"{name.removesuffix('_kernel')}_quantizer")
        if held is not None and value is not None:
            made[name] = _rounded(call, held, quantizer_of(value, call.config), fitted=name != "bias")
    plain = Config(call.config.where, {**call.config.values, "activation": "linear"})
    (y,) = kind.build(replace(call, config=plain, stored=call.stored.replaced(made)))
    return _activated(call, y)


def _normalized(kind: LayerKind, role: str) -> LayerKind:
    """A convolution whose normalization is folded into its weights before they are rounded."""

    def weights(config: Config, layers: Layers) -> WeightTree:
        own = (role, "bias") if config.flag("use_bias", True) else (role,)
        norm = normalization.LAYERS["BatchNormalization"].weights(config, layers)
        return WeightTree(own, ("iteration",), parts(batchnorm=norm))

    def build(call: Call) -> str:
        config = Config(call.config.where, {**call.config.values, "use_bias": True})
        return _with_rounded(
            replace(call, config=config, stored=call.stored.replaced(_folded(call, role))), kind, (role,)
        )

    return replace(kind, build=single(build), weights=weights)


def _folded(call: Call, role: str) -> dict[str, StoredArray]:
    held = call.stored.get(role)
    if held is None or len(held.shape) < 2:
        raise call.config.error("the file holds no kernel for it.", DAMAGED)
    across = held.shape[-2:] if role == "depthwise_kernel" else held.shape[-1:]
    norm = replace(call, stored=call.stored.inside("batchnorm"))

    def values(of: Call, name: str, key: str, default: float) -> Array:
        size = prod(across)
        return of.values(name, (size,)) if call.config.flag(key, True) else np.full(size, default, np.float32)

    def scale() -> Array:
        variance = norm.values("moving_variance", (prod(across),)) + np.float32(call.config.number("epsilon", 1e-3))
        return np.asarray(values(norm, "gamma", "scale", 1.0) / np.sqrt(variance), np.float32)

    def bias() -> Array:
        shifted = values(call, "bias", "use_bias", 0.0) - norm.values("moving_mean", (prod(across),))
        return np.asarray(scale() * shifted + values(norm, "beta", "center", 0.0), np.float32)

    kernel = StoredArray(held.shape, lambda: np.asarray(held.read(), np.float32) * scale().reshape(across))
    return {role: kernel, "bias": StoredArray((prod(across),), bias)}


def _rounded(call: Call, held: StoredArray, found: Quantizer, *, fitted: bool) -> StoredArray:
    return StoredArray(held.shape, lambda: rounded(np.asarray(held.read(), np.float32), found, fitted=fitted))


LAYERS = {
    "QActivation": LayerKind(single(lambda call: _activated(call, call.input)), passes_mask=True),
    "QDense": _weighted(dense.LAYERS["Dense"], "kernel"),
    "QConv1D": _weighted(convolution.LAYERS["Conv1D"], "kernel"),
    "QConv2D": _weighted(convolution.LAYERS["Conv2D"], "kernel"),
    "QDepthwiseConv2D": _weighted(convolution.LAYERS["DepthwiseConv2D"], "depthwise_kernel"),
    "QSeparableConv1D": _weighted(convolution.LAYERS["SeparableConv1D"], "depthwise_kernel", "pointwise_kernel"),
    "QSeparableConv2D": _weighted(convolution.LAYERS["SeparableConv2D"], "depthwise_kernel", "pointwise_kernel"),
    "QConv2DBatchnorm": _normalized(convolution.LAYERS["Conv2D"], "kernel"),
    "QDepthwiseConv2DBatchnorm": _normalized(convolution.LAYERS["DepthwiseConv2D"], "depthwise_kernel"),
}

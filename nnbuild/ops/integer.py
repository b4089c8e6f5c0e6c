"""The common part of integer references: bounds, scales and requantization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.model.graph import Array, Constant, Quant, Tensor
from nnbuild.numeric.multiplier import convolution_scales, quantize_multipliers, quantized_bound
from nnbuild.numeric.real_scale import IntegerScale, apply_integer_scale, integer_scale
from nnbuild.numeric.rounding import Ints, ints, limits, requantize, requantize64, saturate
from nnbuild.ops.base import Clamp
from nnbuild.ops.site import Site


def quant_of(value: Tensor | Constant) -> Quant:
    if value.quant is None:
        raise ValueError(f"{value.name!r} is not quantized")
    return value.quant


def gives_floats(site: Site) -> bool:
    """Whether a layer with weights multiplies integers, and its sums become floats."""
    return "kernel" in site.constants and site.inputs[0].dtype == "int8" and site.outputs[0].dtype == "float32"


def float_line(site: Site, channels: int) -> tuple[Array, Array]:
    """The factor and the summand that make such floats of each channel's sums; the bias is in floats."""
    factor = np.float64(quant_of(site.inputs[0]).scale) * np.asarray(quant_of(site.constants["kernel"]).scales)
    bias = site.constants["bias"].data if "bias" in site.constants else np.zeros(channels, np.float32)
    return np.broadcast_to(factor.astype(np.float32), (channels,)), bias


def in_floats(site: Site, sums: Ints, clamp: Clamp) -> Array:
    """Sums [..., channel] in single precision: converted, multiplied and added to, each rounded once."""
    factor, summand = float_line(site, sums.shape[-1])
    return clamp.apply(sums.astype(np.float32) * factor + summand)


def bounds(clamp: Clamp, tensor: Tensor) -> tuple[int, int]:
    """A fused activation's bounds in a tensor's integers, within those of its type."""
    low, high = limits(tensor.dtype)
    quant = quant_of(tensor)
    if clamp.low is not None:
        low = max(low, min(quantized_bound(clamp.low, quant.scale, quant.zero_point), high))
    if clamp.high is not None:
        high = min(high, max(quantized_bound(clamp.high, quant.scale, quant.zero_point), low))
    return low, high


def as_type(values: Ints, tensor: Tensor) -> Array:
    return np.asarray(values, tensor.dtype)


def clamped(values: Ints, clamp: Clamp, tensor: Tensor) -> Array:
    return as_type(saturate(values, *bounds(clamp, tensor)), tensor)


@dataclass(frozen=True, eq=False)
class Requantization:
    """The scale of each output channel's accumulator. 16-bit outputs use 16-bit multipliers."""

    multiplier: Ints
    shift: Ints
    wide: bool

    def apply(self, acc: Array) -> Ints:
        """`acc` has the channels last."""
        return (requantize64 if self.wide else requantize)(acc, self.multiplier, self.shift)


def real_scales(site: Site, role: str = "kernel") -> Array:
    """The scale from input times weights to output, one or one for every output channel."""
    kernel, out = quant_of(site.constants[role]), site.outputs[0]
    return convolution_scales(quant_of(site.inputs[0]).scale, kernel.scales, quant_of(out).scale)


def requantization(site: Site, channels: int, role: str = "kernel") -> Requantization:
    """The requantization from input times weights to output, for every output channel."""
    out = site.outputs[0]
    multiplier, shift = quantize_multipliers(np.broadcast_to(real_scales(site, role), (channels,)))
    return Requantization(multiplier, shift, out.dtype == "int16")


def once_scale(real: float, sums: tuple[int, int], out: Tensor) -> IntegerScale:
    """The scale from integers in the range `sums` to an output's steps, rounded once."""
    low, high = (limit - quant_of(out).zero_point for limit in limits(out.dtype))
    return integer_scale(real, sums, (low - 1, high + 1))


def ratio_once(x: Tensor, out: Tensor) -> IntegerScale:
    """The scale from one tensor to another, for numbers less their zero point."""
    low, high = (limit - quant_of(x).zero_point for limit in limits(x.dtype))
    return once_scale(quant_of(x).scale / quant_of(out).scale, (low, high), out)


def rescaled_once(values: Array, x: Tensor, out: Tensor) -> Ints:
    centre = ints(values) - quant_of(x).zero_point
    return np.asarray(apply_integer_scale(centre, ratio_once(x, out)) + quant_of(out).zero_point)


def exact_sums(values: Array) -> Array:
    """Integers as float64, in which numpy multiplies matrices fast, and exactly below 2**53."""
    return values.astype(np.float64)


def centred(site: Site, inputs: Array, index: int = 0) -> Array:
    """An input less its zero point, in the form for exact sums."""
    return exact_sums(inputs) - quant_of(site.inputs[index]).zero_point


def scale_and_limits(tensor: Tensor) -> tuple[float, int, int, int]:
    """The parameters of `numeric.edge.quantize` for a tensor."""
    quant = quant_of(tensor)
    return quant.scale, quant.zero_point, *limits(tensor.dtype)

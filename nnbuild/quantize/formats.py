"""Number formats: scale and zero point for a range, and fixed formats of some results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from nnbuild.model.graph import Array, Constant, Quant
from nnbuild.numeric.arithmetic import Arithmetic
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.numeric.rounding import limits
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import Range

Rules = Mapping[str, Arithmetic]
"""Operator of a device -> its arithmetic."""
NO_RULES: Rules = MappingProxyType({})
FORMATS = ("int8", "int16", "float")
MAX_SHARED_VALUES, MIN_MEAN_USES = 16, 16
"""Most distinct values of shared weights, and how often each must occur on average."""
SMALLEST = 2.0**-100
"""A scale below this would leave float32's normal range in products."""

_SYMMETRIC16 = Quant((2.0**-15,))
FIXED: dict[tuple[str, str], Quant] = {
    ("softmax", "int8"): Quant((2.0**-8,), -128),
    ("sigmoid", "int8"): Quant((2.0**-8,), -128),
    ("tanh", "int8"): Quant((2.0**-7,), 0),
    ("softmax", "int16"): _SYMMETRIC16,
    ("sigmoid", "int16"): _SYMMETRIC16,
    ("tanh", "int16"): _SYMMETRIC16,
}
"""Results whose range is known beforehand, with TFLite's formats."""


def fixed_format(attributes: Attributes, dtype: str) -> Quant | None:
    if isinstance(attributes, Softmax):
        return FIXED["softmax", dtype]
    if isinstance(attributes, Activation):
        return FIXED.get((attributes.function, dtype))
    return None


def activation_format(values: Range, dtype: str, device: Rules = NO_RULES) -> Quant:
    """8 bits asymmetric with an exact zero, or as a device requires; 16 bits symmetric."""
    low, high = min(0.0, values.low), max(0.0, values.high)
    if low == high:  # what is always 0 in the samples, such as a dead unit, needs no steps of 1 beside small ones
        high = 1.0
    if dtype == "int16":
        return Quant((_scale(max(-low, high) / 32767),))
    if any(not (spec.zero_in and spec.zero_out) for spec in device.values()):
        scale = _scale(max(-low, high) / 127)
        return Quant((_next_power_of_two(scale) if _needs_powers_of_two(device) else scale,), 0)
    scale = _scale((high - low) / 255)
    scale = _next_power_of_two(scale) if _needs_powers_of_two(device) else scale
    zero = int(np.clip(np.round(-128 - low / scale), -128, 127))
    return Quant((scale,), zero)


def _needs_powers_of_two(device: Rules) -> bool:
    """Whether every scale must be a power of two, so that multipliers are."""
    return any(spec.point == 0 for spec in device.values())


def _next_power_of_two(scale: float) -> float:
    """The next power of two."""
    return float(2.0 ** math.ceil(math.log2(scale)))


def device_scales(scales: Array, by_channel: Array, bias: Array | None, x: Quant, spec: Arithmetic) -> Array:
    """Scales of weights [taps, channels] for a device: sums must fit its accumulator for every input."""
    reach = float(max(-128 - x.zero_point, 127 - x.zero_point, key=abs))
    if spec.acc_bits < 32 or spec.bias_bits < 32:
        room = 2.0 ** (spec.acc_bits - 1) - 1 - len(by_channel) * abs(reach) / 2 - 1
        sums = np.abs(by_channel).sum(axis=0) * abs(reach)
        bias_sums = np.abs(bias) / x.scale if bias is not None else np.zeros(len(scales))
        scales = np.maximum(scales, (sums + bias_sums) / room) if room > 0 else scales
        scales = np.maximum(scales, bias_sums / (2.0 ** (spec.bias_bits - 1) - 1))
    if not spec.per_channel:
        scales = np.full_like(scales, scales.max())
    if spec.point == 0:
        scales = 2.0 ** np.ceil(np.log2(scales))
    return np.asarray(scales.astype(np.float32).astype(np.float64))


def _scale(real: float) -> float:
    """A float32 as TFLite stores it, at least what the integer rules support; constant zero gets 1."""
    return max(float(np.float32(real)), SMALLEST_SCALE) if real > SMALLEST else 1.0


def weight_scales(weights: Array, bias: Array | None, input_scale: float, bits: int = 8, bias_bits: int = 30) -> Array:
    """One scale for each index of the last axis, so that the largest weight becomes the largest integer.

    A channel without weights, or whose bias would not fit, gets a scale that fits the bias; without both, the largest
    of the others. Weights with few values shared by all channels get one scale, so that they remain few.
    """
    most = 2 ** (bits - 1) - 1
    largest = np.abs(weights.reshape(-1, weights.shape[-1])).max(axis=0)
    scales = np.full_like(largest, largest.max(initial=0.0)) / most if _shared(weights, most) else largest / most
    if bias is not None:
        with np.errstate(over="ignore"):  # of inputs so large that no bias needs a larger scale
            scales = np.maximum(scales, np.abs(bias) / (input_scale * 2.0**bias_bits))
    most_used = scales.max(initial=0.0)
    rest = most_used if most_used > SMALLEST else 1.0
    return np.where(scales > SMALLEST, scales, rest).astype(np.float32).astype(np.float64)


def _shared(weights: Array, most: int) -> bool:
    """Whether weights have few distinct values, as after clustering, which integers up to `most` keep distinct."""
    if (
        weights.size < MIN_MEAN_USES * MAX_SHARED_VALUES
        or len(np.unique(weights.reshape(-1)[: MIN_MEAN_USES * MAX_SHARED_VALUES])) > MAX_SHARED_VALUES
    ):
        return False  # the first weights usually decide
    values = np.unique(weights)
    if len(values) > MAX_SHARED_VALUES:
        return False
    steps = np.round(values * most / max(float(np.abs(values).max()), SMALLEST))
    return len(np.unique(steps)) == len(values)


def quantized_weights(name: str, weights: Array, scales: Array, bits: int = 8) -> Constant:
    """Symmetric, without the most negative integer."""
    limit = 2 ** (bits - 1) - 1
    data = np.clip(np.round(weights.astype(np.float64) / scales), -limit, limit)
    return Constant(name, data.astype(f"int{bits}"), Quant(tuple(float(s) for s in scales), 0, -1))


def quantized_values(name: str, values: Array, dtype: str) -> Constant:
    """A constant operand, in the format of its own range."""
    quant = activation_format(Range(float(values.min()), float(values.max())), dtype)
    data = np.round(values.astype(np.float64) / quant.scale) + quant.zero_point
    return Constant(name, np.clip(data, *limits(dtype)).astype(dtype), quant)

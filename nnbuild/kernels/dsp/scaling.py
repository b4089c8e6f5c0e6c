"""How a sum becomes an output in four instructions: a high multiply that adds, a shift, a saturation, a store.

out = saturate((high(sum * multiplier) + offset) >> shift), with the zero point and the half that rounds both in the
offset. The rule that rounds twice takes the doubled sum and the rounded high word; where it keeps negative outputs,
one more instruction rounds their halves away from zero. All of it is proven here, channel by channel, for every sum
that the weights can give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.real_scale import IntegerScale, fitting_scale
from nnbuild.numeric.rounding import Ints, ints, limits
from nnbuild.ops.base import Clamp
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import bounds, quant_of, requantization
from nnbuild.ops.site import Site

LARGEST_SHIFT = 23
"""So that a zero point fits above it."""
DEAD_SHIFT = 16
"""For channels whose output is the zero point whatever the input: their multiplier is 0."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """doubled: it wants twice the sum, and the high word rounded. signed: halves below zero round away from it.

    factor: what else the sums are multiplied by beforehand, by way of larger weights. level: the shift of all channels
    where they have been made equal.
    """

    multiplier: Ints
    offset: Ints
    shift: Ints
    doubled: bool
    signed: bool
    low: int
    high: int
    bits: int
    factor: Ints | None = None
    level: int | None = None

    @property
    def gain(self) -> Ints:
        """What the weights are multiplied by."""
        whole = self.factor if self.factor is not None else np.ones(len(self.shift), np.int64)
        return whole * (2 if self.doubled else 1)

    def marks(self) -> list[str]:
        """What tells the name of a routine with this scaling from others."""
        bounds = []
        if self.low > -(1 << (self.bits - 1)):
            bounds.append(f"from_{self.low}".replace("-", "m"))
        if self.high < (1 << (self.bits - 1)) - 1:
            bounds.append(f"to_{self.high}".replace("-", "m"))
        rule = [f"level{self.level}"] if self.level is not None else ["twice" if self.doubled else "once"]
        return [f"int{self.bits}", *rule, *(["signed"] if self.signed else []), *bounds]


@dataclass(frozen=True, eq=False)
class Sums:
    """The integer weights [taps, channels] of an operation, where its sums start, and how far they reach."""

    weights: Ints
    start: Ints
    low: Ints
    high: Ints

    @property
    def largest(self) -> Ints:
        return np.maximum(-self.low, self.high)


def sums_of(site: Site) -> Sums:
    """The input's zero point goes into the start, so that inputs are taken as they are."""
    kernel = site.constants["kernel"]
    weights = ints(kernel.data).reshape(-1, kernel.data.shape[-1]) - quant_of(kernel).zero_point
    bias = ints(site.constant("bias")) if "bias" in site.constants else np.zeros(weights.shape[1], np.int64)
    x = site.inputs[0]
    start = bias - quant_of(x).zero_point * weights.sum(axis=0)
    low, high = reach(weights, x.dtype)
    return Sums(weights, start, start + low, start + high)


def reach(weights: Ints, dtype: str) -> tuple[Ints, Ints]:
    """The smallest and largest sum over inputs of this type."""
    smallest, largest = limits(dtype)
    low = np.minimum(weights * smallest, weights * largest).sum(axis=0)
    high = np.maximum(weights * smallest, weights * largest).sum(axis=0)
    return low, high


def scaling_of(site: Site, clamp: Clamp, sums: Sums) -> Scaling | str:
    """The rule of this operation's sums, or why they cannot be scaled so."""
    if sums.largest.max() >= 1 << 30:
        return "its sums need more than 31 bits"
    if isinstance(site.attributes, Dense):
        return _once(site, clamp, site.attributes, sums)
    return _wide(site, clamp, sums) if site.outputs[0].dtype == "int16" else _twice(site, clamp, sums)


def offset_of(zero: int, shift: Array) -> Ints:
    """The zero point and a half, above and below the point; nothing but the zero point where there is no shift."""
    return (np.int64(2 * zero + 1) << ints(shift)) >> 1


def _twice(site: Site, clamp: Clamp, sums: Sums) -> Scaling | str:
    """8-bit convolutions: rounded at the high multiply and again at the shift."""
    out = site.outputs[0]
    zero, (low, high) = quant_of(out).zero_point, bounds(clamp, out)
    scale = requantization(site, len(sums.start))
    shift = -scale.shift
    signed = low < zero
    dead = (scale.multiplier == 0) | ((shift > LARGEST_SHIFT) & (sums.largest < ints(1) << (shift - 1).clip(0)))
    if np.any(shift[~dead] > LARGEST_SHIFT):
        return "a scale is too small for 32 bits"
    if np.any(shift[~dead] < int(signed)):
        return "a scale is too large"
    shift = np.where(dead, DEAD_SHIFT, shift)
    multiplier = np.where(dead, 0, scale.multiplier)
    return Scaling(multiplier, offset_of(zero, shift), shift, True, signed, low, high, 8)


def _wide(site: Site, clamp: Clamp, sums: Sums) -> Scaling | str:
    """16-bit convolutions: multipliers of 16 bits, rounded once."""
    scale = requantization(site, len(sums.start))
    return _shifted(site, clamp, scale.stored_multiplier() << 16, 31 - scale.shift, sums)


def _once(site: Site, clamp: Clamp, dense: Dense, sums: Sums) -> Scaling | str:
    """Dense layers, rounded once. 16-bit weights follow the rule of convolutions."""
    if site.constant("kernel").dtype != np.int8:
        return _wide(site, clamp, sums)
    scales = [_in_31_bits(site, dense, channel) for channel in range(len(sums.start))]
    if None in scales:
        return "a scale needs more than 31 bits"
    return _shifted(site, clamp, ints([s.multiplier for s in scales if s]), ints([s.shift for s in scales if s]), sums)


def _in_31_bits(site: Site, dense: Dense, channel: int) -> IntegerScale | None:
    """A channel's scale as `Dense` has proven it, or another that is as exact and narrower."""
    proven = dense.scales(site)[channel]
    if proven.multiplier < 1 << 31 and not proven.away:
        return proven
    real, reach, kept = dense.scale_bounds(site, channel)
    return fitting_scale(real, reach, kept)


def _shifted(site: Site, clamp: Clamp, multiplier: Ints, right: Ints, sums: Sums) -> Scaling | str:
    """sum * multiplier / 2**right, rounded once, halves up: the low word of the product cannot matter."""
    out = site.outputs[0]
    zero, (low, high) = quant_of(out).zero_point, bounds(clamp, out)
    shift = right - 32
    dead = (multiplier == 0) | ((shift > LARGEST_SHIFT) & (sums.largest < ints(1) << (shift - 1).clip(0, 62)))
    if np.any(shift[~dead] < 1):
        return "a scale is too large"
    if np.any(shift[~dead] > LARGEST_SHIFT):
        return "a scale is too small for 32 bits"
    shift = np.where(dead, DEAD_SHIFT, shift)
    multiplier = np.where(dead, 0, multiplier)
    return Scaling(multiplier, offset_of(zero, shift), shift, False, False, low, high, 8 * np.dtype(out.dtype).itemsize)


def levelled(scaling: Scaling, sums: Sums, zero: int) -> Scaling:
    """The same with one shift for all channels, which then is part of the saturation; or as it is where none fits.

    Larger weights make up for it. With a bit more than it needs, a sum that is to be rounded twice has room below the
    point for what its first rounding adds, and a high multiply that cuts off does the rest.
    """
    if scaling.signed:
        return scaling
    live = scaling.multiplier != 0
    level = int(scaling.shift[live].max(initial=1)) + int(scaling.doubled)
    more = np.where(live, level - scaling.shift, 0)
    factor = np.int64(1) << (more + int(scaling.doubled))
    largest = np.abs(sums.weights).max(axis=0)
    if level > LARGEST_SHIFT or (largest * factor).max() >= 1 << 15 or (sums.largest * factor).max() >= 1 << 30:
        return scaling
    half = (np.int64(1) << (scaling.shift + more)) >> 1
    if scaling.doubled:
        half = np.where(scaling.shift > 0, half, 0) + (np.int64(1) << (more - 1).clip(0))
    offset = np.where(live, half, 0) + (zero << level)
    shift = np.full(len(scaling.shift), level, np.int64)
    return replace(scaling, offset=offset, shift=shift, doubled=False, factor=factor, level=level)

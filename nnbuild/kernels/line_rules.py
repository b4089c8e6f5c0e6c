"""How the sums of one operation become its outputs, in the form in which vectors compute it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.line_scale import (
    Line,
    constant_line,
    doubled_left,
    doubled_line,
    fitted_line,
    upward_line,
    wide_line,
)
from nnbuild.numeric.multiplier import Multiplier, convolution_scales
from nnbuild.numeric.rounding import Ints, limits, requantize
from nnbuild.ops.base import Clamp
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import bounds, quant_of, requantization
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Rule:
    """For every output channel: output = (sum * multiplier + addend) >> shift, the zero point included.

    left: how far the sums are shifted left before, and whether negative ones lose one (`away`, -1 or 0) after; none
    where halves may go up.
    """

    multiplier: Array
    addend: Array
    shift: Array
    left: Array | None = None
    away: Array | None = None


def sum_reach(site: Site) -> tuple[Ints, Ints]:
    """The smallest and largest sum of each output channel, from the weights and the input's type.

    What lies outside the input is its zero point, which adds nothing.
    """
    weights = site.constant("kernel").astype(np.int64)
    weights = weights.reshape(-1, site.output_shape()[-1])
    x = site.inputs[0]
    low, high = (limit - quant_of(x).zero_point for limit in limits(x.dtype))
    bias = site.constant("bias").astype(np.int64) if "bias" in site.constants else np.int64(0)
    least, most = np.minimum(weights * low, weights * high), np.maximum(weights * low, weights * high)
    return np.minimum(least, 0).sum(axis=0) + bias, np.maximum(most, 0).sum(axis=0) + bias


def rule_of(site: Site, clamp: Clamp) -> Rule | str:
    """The rule, or why none serves."""
    if site.inputs[0].dtype == "int16" and quant_of(site.inputs[0]).zero_point != 0:
        return "its 16-bit inputs have a zero point"
    least, most = sum_reach(site)
    if least.min() < -(2**31) or most.max() >= 2**31:
        return "a sum may need more than 32 bits"
    reach = [(int(low), int(high)) for low, high in zip(least, most, strict=True)]
    if isinstance(site.op.attributes, Dense):
        return _rounded_once(site, reach)
    return _rounded_twice(site, bounds(clamp, site.outputs[0]), reach)


def zero_of(site: Site) -> int:
    return quant_of(site.outputs[0]).zero_point


def _rounded_once(site: Site, reach: list[tuple[int, int]]) -> Rule | str:
    out = site.outputs[0]
    low, high = limits(out.dtype)
    zero = zero_of(site)
    scales = convolution_scales(
        quant_of(site.inputs[0]).scale, quant_of(site.constants["kernel"]).scales, quant_of(out).scale
    )
    reals = np.broadcast_to(scales, (len(reach),))
    found = [
        fitted_line(float(real), sums, (low - zero - 1, high - zero + 1), zero)
        for real, sums in zip(reals, reach, strict=True)
    ]
    lines = [line for line in found if line is not None]
    if len(lines) < len(found) or not _all_fit(lines, reach):
        return "a channel's scale cannot be one multiplication and one shift"
    return _rule(lines)


def _rounded_twice(site: Site, limit: tuple[int, int], reach: list[tuple[int, int]]) -> Rule | str:
    scale = requantization(site, len(reach))
    if scale.wide:
        lines = [wide_line(int(m), int(s), zero_of(site)) for m, s in zip(scale.multiplier, scale.shift, strict=True)]
        return _rule(lines) if _all_fit(lines, reach) else "a channel's scale is too large for one shift"
    channels = [Multiplier(int(m), int(s)) for m, s in zip(scale.multiplier, scale.shift, strict=True)]
    zero = zero_of(site)
    if limit[0] >= zero:
        lines = [
            _flat(channel, zero, sums) or upward_line(channel, zero)
            for channel, sums in zip(channels, reach, strict=True)
        ]
        if _all_fit(lines, reach):
            return _rule(lines)
    left = [doubled_left(channel) for channel in channels]
    wide = [(low << by, high << by) for (low, high), by in zip(reach, left, strict=True)]
    lines = [
        _flat(channel, zero, sums) or doubled_line(channel, zero) for channel, sums in zip(channels, reach, strict=True)
    ]
    inside = all(low >= -(2**31) and high < 2**31 for low, high in wide)
    if not inside or not _all_fit(lines, wide):
        return "a channel's sums times its scale may need more than 64 bits"
    away = np.array([-(line.shift > 32) for line in lines], np.int32)
    return _rule(lines, np.array(left, np.int32), away)


def _flat(scale: Multiplier, zero: int, reach: tuple[int, int]) -> Line | None:
    """The line of a channel that gives one output whatever its sums are: it has so small a scale, or is dead."""
    low, high = requantize(list(reach), *scale).tolist()
    return constant_line(low + zero) if low == high else None


def _all_fit(lines: list[Line], reach: list[tuple[int, int]]) -> bool:
    return all(line.fits(sums) for line, sums in zip(lines, reach, strict=True))


def _rule(lines: list[Line], left: Array | None = None, away: Array | None = None) -> Rule:
    """The shifts without the 32 that reading the upper half is worth."""
    return Rule(
        np.array([line.multiplier for line in lines], np.int32),
        np.array([line.addend for line in lines], np.int64),
        np.array([line.shift - 32 for line in lines], np.int32),
        left,
        away,
    )

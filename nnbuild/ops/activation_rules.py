"""The integer rules of functions of one number.

A rule is TFLite's own where it has the operator; else a table of the float64 function, or an exact 16-bit form where a
table of 513 entries would blur an edge. `rule_of` chooses; the reference and the kernels follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Protocol

import numpy as np

from nnbuild.model.graph import Array, Tensor
from nnbuild.numeric import elementwise, tables
from nnbuild.numeric.multiplier import Multiplier, product_scale, quantize_multiplier, round_half_away
from nnbuild.numeric.rounding import INT8, Ints, limits, requantize, saturate
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.functions import apply
from nnbuild.ops.integer import bounds, quant_of

GATE_BITS = 15
HALF_GATE = 1 << (GATE_BITS - 1)


class Rule(Protocol):
    """`apply` is the reference: integers of the input's format to integers of the output's."""

    def apply(self, x: Ints) -> Ints: ...


@dataclass(frozen=True)
class Format:
    """Zero points, and the bounds of the result."""

    in_zero: int
    out_zero: int
    bounds: tuple[int, int]


@dataclass(frozen=True)
class Rescale:
    """Lines through zero with bounds: RELU, RELU6 and the like."""

    format: Format
    scale: Multiplier

    def apply(self, x: Ints) -> Ints:
        f = self.format
        return saturate(elementwise.rescale(x, f.in_zero, f.out_zero, self.scale), *f.bounds)


@dataclass(frozen=True)
class Slopes:
    """One slope from `threshold` (in steps of the input above its zero) on, another below it: LEAKY_RELU."""

    format: Format
    scales: elementwise.SlopeScales
    threshold: int

    def apply(self, x: Ints) -> Ints:
        f = self.format
        return saturate(elementwise.leaky_relu(x, f.in_zero, f.out_zero, self.scales, self.threshold), *f.bounds)


@dataclass(frozen=True)
class Line:
    """A line with bounds that does not pass through zero: hard_sigmoid in 16 bits."""

    format: Format
    scale: Multiplier
    offset: int

    def apply(self, x: Ints) -> Ints:
        f = self.format
        return saturate(elementwise.rescale(x, f.in_zero, f.out_zero + self.offset, self.scale), *f.bounds)


@dataclass(frozen=True)
class Whole:
    """floor, ceil or round (halves to even) in 16 bits, selected by `function`: x * steps / 2**right without its
    fraction, in the output's scale."""

    format: Format
    function: str
    steps: int
    right: int
    output: Multiplier

    @property
    def limit(self) -> int:
        """A bound beyond the output's saturation, within which 32 bits do not overflow."""
        return (1 << 30) >> max(self.output.shift, 0)

    def apply(self, x: Ints) -> Ints:
        f = self.format
        value = (x - f.in_zero) * self.steps
        if self.function == "round":
            value = value + (1 << (self.right - 1)) - 1 + (value >> self.right & 1)
        whole = -(-value >> self.right) if self.function == "ceil" else value >> self.right
        return saturate(requantize(saturate(whole, -self.limit, self.limit), *self.output) + f.out_zero, *f.bounds)


@dataclass(frozen=True)
class Gate:
    """x times hard_sigmoid(x) with 15 bits: hard_swish in 16 bits."""

    format: Format
    gate: Multiplier
    output: Multiplier

    def apply(self, x: Ints) -> Ints:
        f = self.format
        value = x - f.in_zero
        gate = saturate(requantize(value, *self.gate) + HALF_GATE, 0, 2 * HALF_GATE)
        return saturate(requantize(value * gate, *self.output) + f.out_zero, *f.bounds)


@dataclass(frozen=True)
class Sigmoid:
    """TFLite's 16-bit LOGISTIC and TANH; the output's scale is 2**-15."""

    function: str
    scale: tables.InputScale

    def apply(self, x: Ints) -> Ints:
        return (tables.logistic16 if self.function == "sigmoid" else tables.tanh16)(x, self.scale)


@dataclass(frozen=True, eq=False)
class Table:
    """513 entries with linear interpolation."""

    entries: Ints

    def apply(self, x: Ints) -> Ints:
        return tables.interpolate16(x, self.entries)


@dataclass(frozen=True, eq=False)
class Entries:
    """One entry for each of 256 inputs."""

    entries: Ints

    def apply(self, x: Ints) -> Ints:
        return tables.lookup8(x, self.entries)


def rule_of(function: str, parameters: tuple[float, ...], x: Tensor, out: Tensor) -> Rule:
    """The rule for input and output of one type, int8 or int16."""
    straight = straight_rule(function, parameters, x, out)
    if straight is not None:
        return straight
    return (_rule8 if x.dtype == "int8" else _rule16)(function, parameters, x, out)


def given_rule(function: str, x: Tensor, out: Tensor) -> Rule:
    """TFLite's rule, where nnbuild has a better one: its 8-bit root and its 16-bit tables."""
    source, target = quant_of(x), quant_of(out)
    if x.dtype == "int8":
        scales = source.scale, source.zero_point, target.scale, target.zero_point
        return Entries(saturate(tables.cut_roots(*scales), *limits(out.dtype)))
    return Table(tables.given_table16(function, source.scale, target.scale))


def entries_of(rule: Rule) -> Ints:
    """The results of a rule for each of 256 inputs, in order: an 8-bit rule equals this table."""
    return rule.apply(np.arange(*_all8()))


def _format(x: Tensor, out: Tensor, clamp: Clamp = NO_CLAMP) -> Format:
    return Format(quant_of(x).zero_point, quant_of(out).zero_point, bounds(clamp, out))


def straight_rule(function: str, parameters: tuple[float, ...], x: Tensor, out: Tensor) -> Rule | None:
    """Functions made of lines through zero."""
    match function, parameters:
        case "linear", ():
            return _rescale(x, out, NO_CLAMP)
        case "clamp", (low, high):
            return _rescale(x, out, _clamp(low, high))
        case "steps" | "even_steps", (low, high, step) if x.dtype == "int16" or high - low >= 254 * step:
            return _rescale(x, out, _clamp(low, high))
        case "relu", (high, 0.0, 0.0):
            return _rescale(x, out, _clamp(0.0, high))
        case "relu", (high, slope, threshold) if _sloped(high, slope, threshold, x):
            return _slopes(x, out, _clamp(-inf, high), slope, threshold)
        case "leaky_relu", (slope,):
            return _slopes(x, out, NO_CLAMP, slope)
        case "absolute", ():
            return _slopes(x, out, NO_CLAMP, -1.0)
    return None


def _sloped(high: float, slope: float, threshold: float, x: Tensor) -> bool:
    """In 8 bits, slopes that TFLite does not have use the table, which is exact."""
    return slope >= 0 and (x.dtype == "int16" or (threshold == 0 and isinf(high)))


def _clamp(low: float, high: float) -> Clamp:
    return Clamp(None if isinf(low) else low, None if isinf(high) else high)


def _rescale(x: Tensor, out: Tensor, clamp: Clamp) -> Rescale:
    return Rescale(_format(x, out, clamp), elementwise.relu_multiplier(quant_of(x).scale, quant_of(out).scale))


def _slopes(x: Tensor, out: Tensor, clamp: Clamp, slope: float, threshold: float = 0.0) -> Slopes:
    """`threshold` becomes the smallest input at or above it."""
    scales = elementwise.leaky_relu_scales(quant_of(x).scale, slope, quant_of(out).scale)
    low, high = limits(x.dtype)
    steps = int(np.clip(np.ceil(threshold / quant_of(x).scale), 2 * low, 2 * high))
    return Slopes(_format(x, out, clamp), scales, steps)


def _rule8(function: str, parameters: tuple[float, ...], x: Tensor, out: Tensor) -> Rule:
    """TFLite's functions by its float32 tables and HARD_SWISH, all others by float64 tables."""
    source, target = quant_of(x), quant_of(out)
    name = {"sigmoid": "logistic", "tanh": "tanh", "exponential": "exp"}.get(function)
    if name is not None:
        return Entries(
            tables.table8(tables.FUNCTIONS8[name], source.scale, source.zero_point, target.scale, target.zero_point)
        )
    if function == "hard_swish":
        scales = elementwise.hard_swish_scales(source.scale, target.scale)
        if scales.output.shift <= 0:
            values = elementwise.hard_swish(np.arange(*_all8()), source.zero_point, target.zero_point, scales)
            return Entries(saturate(values, *limits(out.dtype)))
    if function == "rsqrt":
        scale, high = elementwise.rsqrt_multiplier(source.scale, target.scale), limits(out.dtype)[1]
        values = elementwise.rsqrt(np.arange(*_all8()), source.zero_point, target.zero_point, scale, high)
        return Entries(saturate(values, *limits(out.dtype)))
    scales8 = (source.scale, source.zero_point, target.scale, target.zero_point)
    return Entries(tables.function_table8(_function(function, parameters), *scales8, limits(out.dtype)))


def _all8() -> tuple[int, int]:
    return INT8[0], INT8[1] + 1


def _rule16(function: str, parameters: tuple[float, ...], x: Tensor, out: Tensor) -> Rule:
    source, target = quant_of(x).scale, quant_of(out).scale
    unit = _format(x, out, Clamp(0.0, 1.0))
    if function == "sigmoid" and target == 2.0**-15:
        return Sigmoid(function, tables.logistic_input_scale(source))
    if function == "tanh" and target == 2.0**-15:
        return Sigmoid(function, tables.tanh_input_scale(source))
    if function in ("hard_sigmoid", "hard_sigmoid_fifth"):
        slope = 1 / 6 if function == "hard_sigmoid" else 0.2
        return Line(unit, _held(source * slope / target), int(round_half_away(0.5 / target)))
    if function in ("floor", "ceil", "round"):
        steps, shift = quantize_multiplier(source)
        every = replace(unit, bounds=limits(out.dtype))
        return Whole(every, function, steps, 31 - shift, quantize_multiplier(min(1 / target, 2.0**28)))
    if function == "hard_swish":
        output = quantize_multiplier(product_scale(source, 2.0**-GATE_BITS, target))
        return Gate(replace(unit, bounds=limits(out.dtype)), _held(source / 6 * 2.0**GATE_BITS), output)
    return Table(tables.function_table16(_function(function, parameters), source, target))


def _held(real: float) -> Multiplier:
    """Beyond 2**14 a result saturates at every 16-bit input but zero, and its 32 bits must not overflow."""
    return quantize_multiplier(min(real, 2.0**14))


def _function(function: str, parameters: tuple[float, ...]) -> Callable[[Array], Array]:
    return lambda x: apply(function, parameters, x)

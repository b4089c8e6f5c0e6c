"""The integer rules of LSTM, GRU and SimpleRNN; see docs/quantization-recurrent.md.

State scales are powers of two: 16 bits, an LSTM's cell 32. Weighted sums are scaled to a unit that suits their
function, added and clamped; a function is a `Curve`. Everything here follows from a site's scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp

import numpy as np

from nnbuild.model.graph import Array, Quant, Tensor
from nnbuild.numeric import tables
from nnbuild.numeric.multiplier import wide_scale
from nnbuild.numeric.rounding import INT16, INT32, Ints, half_up_shift, ints, limits, saturate, scale_wide
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.functions import Function, apply
from nnbuild.ops.integer import exact_sums, quant_of
from nnbuild.ops.site import Site

LARGEST = INT16[1]
"""States lie within -LARGEST … LARGEST."""
SMOOTH = ("sigmoid", "tanh")
"""Functions with special rules of more than 16 bits."""
UNIT_POINT, OTHER_GATE = 15, 11
"""The fraction bits of values within 1 of all other functions; and of an unbounded gate, clamped to -8 … 8."""
CELL_POINT = 20
"""The fraction bits of a cell whose values enter through a bounded activation."""
VALUES_BELOW = 10
"""The additional fraction bits of a cell without bounds, relative to the values that enter it."""
SMOOTH_LIMIT = 1 << 25
WIDE_LIMIT = 1 << 20
"""A bound within which any linear rule can scale a sum in 32 bits, far beyond every bend."""
FAR, FARTHEST = 16.0, 4096.0
"""The range of a table for functions with bounds, which they approach slowly; and for functions without."""
SUMMED_BITS = 47
PRODUCT_BITS = 62


@dataclass(frozen=True)
class Smooth:
    """sigmoid or tanh; unlike those of a 16-bit activation their values reach 1, so that an open gate loses nothing."""

    function: str

    def apply(self, x: Ints) -> Ints:
        return (tables.fine_sigmoid if self.function == "sigmoid" else tables.fine_tanh)(x)


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one integer: the argument, in units of `in_scale`, is clamped to -limit … limit, and the result to
    `bounds`, in units of 2**-power."""

    in_scale: float
    limit: int
    rule: rules.Rule
    power: int
    bounds: tuple[int, int]

    @property
    def most(self) -> int:
        """The bound of its values."""
        return max(map(abs, self.bounds))

    def apply(self, x: Ints) -> Ints:
        return saturate(self.rule.apply(saturate(x, -self.limit, self.limit)), *self.bounds)


@dataclass(frozen=True, eq=False)
class Products:
    """A vector times a matrix, with each column scaled to the unit of its destination."""

    weights: Array
    start: Ints
    multiplier: Ints
    right: Ints
    partial_bound: int
    """The bound of every partial sum."""
    largest: int
    """The bound of every complete sum once it is scaled."""

    def part(self, values: Array, columns: slice = slice(None)) -> Ints:
        sums = (exact_sums(values) @ exact_sums(self.weights[:, columns])).astype(np.int64) + self.start[columns]
        return scale_wide(sums, self.multiplier[columns], self.right[columns])

    @property
    def narrow(self) -> bool:
        """Whether every sum fits 32 bits."""
        return self.partial_bound <= INT32[1]


@dataclass(frozen=True, eq=False)
class Rules:
    """`value` is the activation of a weighted sum; `shown` that of the LSTM's cell."""

    of_input: Products
    of_state: Products
    gate: Curve
    value: Curve
    shown: Curve | None
    hidden_power: int
    cell_power: int

    @property
    def one(self) -> int:
        """The value of an open gate."""
        return 1 << self.gate.power

    @property
    def opened(self) -> int:
        """The fraction bits of a value times a gate."""
        return self.gate.power + self.value.power

    @property
    def finer(self) -> int:
        """The fraction bits that a value has beyond those of a hidden state."""
        return self.value.power - self.hidden_power

    @property
    def shown_shift(self) -> int:
        """The shift from the cell's unit to that of its activation's argument."""
        return self.cell_power - point_of(self.shown.in_scale) if self.shown else 0


def held(values: Ints, largest: int = LARGEST) -> Ints:
    """Clamped to a state's integers."""
    return saturate(values, -largest, largest)


def shifted(values: Ints, amount: int) -> Ints:
    """Shifts to a coarser unit, to nearest, halves up."""
    return half_up_shift(values, amount) if amount else values


def power_of(quant: Quant) -> int:
    """n for the scale 2**-n."""
    if frexp(quant.scale)[0] != 0.5 or quant.zero_point != 0:
        raise ValueError(f"a state's scale must be a power of two about zero, not {quant.scale}.")
    return point_of(quant.scale)


def point_of(unit: float) -> int:
    return 1 - frexp(unit)[1]


def extremes(function: Function) -> tuple[float, float]:
    """The smallest and the largest value, sampled over the usual range."""
    values = _values(function, np.linspace(-64.0, 64.0, 4097))
    return float(values.min()), float(values.max())


def bounded(function: Function) -> bool:
    """Whether 15 fraction bits hold every value."""
    low, high = extremes(function)
    return low >= -1.0 and high <= 1.0


def unit_gate(function: Function) -> bool:
    low, high = extremes(function)
    return low >= 0.0 and high <= 1.0


def _values(function: Function, at: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.nan_to_num(apply(*function, at), nan=0.0, posinf=np.finfo(np.float64).max)


def _sixteen(scale: float) -> Tensor:
    return Tensor("", (), "int16", Quant((scale,)))


def gate_curve(function: Function) -> Curve:
    if not unit_gate(function):
        return replace(curve_of(function, OTHER_GATE), bounds=(-(1 << 14), 1 << 14))
    power = unit_point(function)
    curve, bounds = curve_of(function, power), (0, 1 << power)
    if isinstance(curve.rule, rules.Line):
        curve = replace(curve, rule=replace(curve.rule, format=rules.Format(0, 0, bounds)))
    return replace(curve, bounds=bounds)


def unit_point(function: Function) -> int:
    """The fraction bits of values within 1."""
    return tables.FINE_POINT if function[0] in SMOOTH else UNIT_POINT


def curve_of(function: Function, power: int) -> Curve:
    """A function of a weighted sum or of a cell, which are scaled to the unit that suits it."""
    if function[0] in SMOOTH and power == tables.FINE_POINT:
        one = 1 << power
        return Curve(2.0**-power, SMOOTH_LIMIT, Smooth(function[0]), power, (-one, one))
    in_scale = _argument_scale(function, 2.0**-power)
    rule = rules.rule_of(*function, _sixteen(in_scale), _sixteen(2.0**-power))
    wide = isinstance(rule, rules.Rescale | rules.Slopes | rules.Line)
    return Curve(in_scale, WIDE_LIMIT if wide else LARGEST, rule, power, (-LARGEST, LARGEST))


def _argument_scale(function: Function, out_scale: float) -> float:
    """Linear functions keep the result's unit; a curve's table extends to where it is flat or exceeds the result."""
    if function[0] in ("hard_sigmoid", "hard_sigmoid_fifth"):
        return 2.0**-UNIT_POINT
    if isinstance(rules.rule_of(*function, _sixteen(out_scale), _sixteen(out_scale)), rules.Rescale | rules.Slopes):
        return out_scale
    edge, farthest = 8.0, FAR if bounded(function) else FARTHEST
    while edge < farthest and not all(_settled(function, sign * edge, out_scale) for sign in (-1.0, 1.0)):
        edge *= 2
    return edge / 2**15


def _settled(function: Function, at: float, out_scale: float) -> bool:
    here, beyond = _values(function, np.array([at, 2 * at]))
    return bool(abs(here) >= out_scale * LARGEST or abs(beyond - here) <= 2 * out_scale)


def products(site: Site, role: str, vector: Tensor, units: Array) -> Products:
    """The weights of a role, for the vector that they multiply; `units` are those of the result's columns."""
    kernel = site.constants[role]
    weights, x = kernel.data, quant_of(vector)
    start = -x.zero_point * ints(weights).sum(axis=0)
    if "bias" in site.constants:
        start = start + bias_of(site.constant("bias"), role)
    largest = -limits(vector.dtype)[0]
    bound = int((np.abs(ints(weights)).sum(axis=0) * largest + np.abs(start)).max())
    if bound >= 1 << SUMMED_BITS:
        raise ValueError(f"its {role} gives sums of more than {SUMMED_BITS} bits.")
    bits = min(30, PRODUCT_BITS - bound.bit_length())
    reals = x.scale * np.broadcast_to(quant_of(kernel).scales, units.shape) / units
    scales = [wide_scale(float(real), bits) for real in reals]
    multiplier, right = ints([s.multiplier for s in scales]), ints([s.right for s in scales])
    low, high = _range(ints(weights), start, *limits(vector.dtype))
    largest = int((np.maximum(np.abs(low), np.abs(high)) * multiplier >> right).max()) + 1
    return Products(weights, start, multiplier, right, bound, largest)


def _range(weights: Ints, start: Ints, least: int, most: int) -> tuple[Ints, Ints]:
    """The range of each column's sum over numbers from least to most."""
    up, down = np.maximum(weights, 0).sum(axis=0), np.minimum(weights, 0).sum(axis=0)
    return start + up * least + down * most, start + up * most + down * least


def bias_of(bias: Array, role: str) -> Array:
    """The part of a bias that is added to a product; the state's has one only in a GRU that resets after it."""
    if bias.ndim == 1:
        return bias if role == "kernel" else np.zeros_like(bias)
    part: Array = bias[0 if role == "kernel" else 1]
    return part

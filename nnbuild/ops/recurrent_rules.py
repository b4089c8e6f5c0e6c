"""How LSTM, GRU and SimpleRNN are computed in integers; see docs/quantization-recurrent.md.

States have 16 bits and a scale that is a power of two. Weighted sums are brought to a unit that suits the function
they go into, added and held within bounds; a function is a `Curve`. Everything here follows from a site's scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp

import numpy as np

from nnbuild.graph import Array, Quant, Tensor
from nnbuild.numeric import tables
from nnbuild.numeric.multiplier import wide_scale
from nnbuild.numeric.rounding import INT16, INT32, Ints, half_up_shift, ints, limits, saturate, scale_wide
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.functions import apply
from nnbuild.ops.integer import exact_sums, quant_of
from nnbuild.ops.site import Site

Function = tuple[str, tuple[float, ...]]

LARGEST = INT16[1]
"""States lie within -LARGEST … LARGEST."""
UNIT_GATE, OTHER_GATE = 15, 11
"""The point of a gate: 0 … 1 is 0 … 2**15; gates that go beyond are held within -8 … 8."""
CURVED = 2.0**-12
"""The unit of a weighted sum on its way into a sigmoid, tanh or hard sigmoid."""
WIDE_LIMIT = 1 << 20
"""Within this a sum can be scaled by the rule of any straight line in 32 bits, and it is far beyond every bend."""
FARTHEST = 4096.0
SUMMED_BITS = 47


@dataclass(frozen=True)
class Opening:
    """The sigmoid of a gate; unlike a 16-bit activation it reaches 1, so that an open gate loses nothing."""

    def apply(self, x: Ints) -> Ints:
        return tables.gate16(x)


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one integer: the argument in units of `in_scale` is held within -limit … limit, and so is the
    result within `bounds`, in units of 2**-power."""

    in_scale: float
    limit: int
    rule: rules.Rule
    power: int
    bounds: tuple[int, int]

    def apply(self, x: Ints) -> Ints:
        return saturate(self.rule.apply(saturate(x, -self.limit, self.limit)), *self.bounds)


@dataclass(frozen=True, eq=False)
class Products:
    """A vector by a matrix, for each column brought to the unit of what it goes into."""

    weights: Array
    start: Ints
    multiplier: Ints
    right: Ints
    largest: int
    """The largest size of an element of the vector."""

    def part(self, values: Array, columns: slice = slice(None)) -> Ints:
        sums = (exact_sums(values) @ exact_sums(self.weights[:, columns])).astype(np.int64) + self.start[columns]
        return scale_wide(sums, self.multiplier[columns], self.right[columns])

    def reach(self) -> int:
        """What no partial sum exceeds."""
        return int((np.abs(ints(self.weights)).sum(axis=0) * self.largest + np.abs(self.start)).max())

    @property
    def narrow(self) -> bool:
        """Whether 32 bits hold every sum."""
        return self.reach() <= INT32[1]


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
        """An open gate."""
        return 1 << self.gate.power


def held(values: Ints) -> Ints:
    """As the integer of a state."""
    return saturate(values, -LARGEST, LARGEST)


def gated(values: Ints, shift: int) -> Ints:
    """A product with a gate, brought back."""
    return half_up_shift(values, shift)


def power_of(quant: Quant) -> int:
    """n for the scale 2**-n."""
    fraction, exponent = frexp(quant.scale)
    if fraction != 0.5 or quant.zero_point != 0:
        raise ValueError(f"a state's scale must be a power of two about zero, not {quant.scale}.")
    return 1 - exponent


def extremes(function: Function) -> tuple[float, float]:
    """The smallest and the largest value, as far as a look at the usual range can tell."""
    values = _values(function, np.linspace(-64.0, 64.0, 4097))
    return float(values.min()), float(values.max())


def bounded(function: Function) -> bool:
    """Whether 15 bits after the point hold every value."""
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
    power = UNIT_GATE if unit_gate(function) else OTHER_GATE
    bounds = (0, 1 << UNIT_GATE) if power == UNIT_GATE else (-(1 << 14), 1 << 14)
    if function[0] == "sigmoid":
        return Curve(CURVED, WIDE_LIMIT, Opening(), power, bounds)
    curve = value_curve(function, power)
    if isinstance(curve.rule, rules.Line):
        curve = replace(curve, rule=replace(curve.rule, format=rules.Format(0, 0, bounds)))
    return replace(curve, bounds=bounds)


def value_curve(function: Function, power: int) -> Curve:
    """A function of a weighted sum, whose unit is chosen to suit it."""
    return cell_curve(function, _argument_scale(function, 2.0**-power), power)


def cell_curve(function: Function, in_scale: float, power: int) -> Curve:
    """A function of an argument whose unit is given."""
    rule = rules.rule_of(*function, _sixteen(in_scale), _sixteen(2.0**-power))
    wide = isinstance(rule, rules.Rescale | rules.Slopes | rules.Line | rules.Sigmoid)
    return Curve(in_scale, WIDE_LIMIT if wide else LARGEST, rule, power, (-LARGEST, LARGEST))


def _argument_scale(function: Function, out_scale: float) -> float:
    """Straight lines keep the result's unit; a curve's table reaches to where it is flat or beyond the result."""
    if function[0] in ("sigmoid", "tanh", "hard_sigmoid", "hard_sigmoid_fifth"):
        return CURVED
    if isinstance(rules.rule_of(*function, _sixteen(out_scale), _sixteen(out_scale)), rules.Rescale | rules.Slopes):
        return out_scale
    reach = 8.0
    while reach < FARTHEST and not all(_settled(function, sign * reach, out_scale) for sign in (-1.0, 1.0)):
        reach *= 2
    return reach / 2**15


def _settled(function: Function, at: float, out_scale: float) -> bool:
    here, beyond = _values(function, np.array([at, 2 * at]))
    return bool(abs(here) >= out_scale * LARGEST or abs(beyond - here) <= 2 * out_scale)


def products(site: Site, role: str, vector: Tensor, units: Array) -> Products:
    """The weights of a role, for the vector they are applied to; `units` are those of the columns of the result."""
    kernel = site.constants[role]
    weights, x = kernel.data, quant_of(vector)
    start = -x.zero_point * ints(weights).sum(axis=0)
    if "bias" in site.constants:
        start = start + bias_of(site.constant("bias"), role)
    reals = x.scale * np.broadcast_to(quant_of(kernel).scales, units.shape) / units
    scales = [wide_scale(float(real)) for real in reals]
    multiplier, right = ints([s.multiplier for s in scales]), ints([s.right for s in scales])
    made = Products(weights, start, multiplier, right, -limits(vector.dtype)[0])
    if made.reach() >= 1 << SUMMED_BITS:
        raise ValueError(f"its {role} gives sums of more than {SUMMED_BITS} bits.")
    return made


def bias_of(bias: Array, role: str) -> Array:
    """The part of a bias that is added to a product; the state's has one only in a GRU that resets after it."""
    if bias.ndim == 1:
        return bias if role == "kernel" else np.zeros_like(bias)
    part: Array = bias[0 if role == "kernel" else 1]
    return part

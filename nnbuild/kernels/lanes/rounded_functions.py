"""Elementwise functions of integers, as steps of `rounded_arithmetic` on numbers less their zero points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import K, T
from nnbuild.kernels.lanes.rounded_arithmetic import Arithmetic, Once, Pair, Rounded, Rule, rounded, rounded_once
from nnbuild.kernels.parts.integer_steps import UNIT
from nnbuild.model.graph import Constant, Tensor
from nnbuild.numeric.elementwise import rescale_multiplier
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import Ints, ints, limits, requantize, saturate
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary, Formats, formats, operands
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.integer import bounds, quant_of
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site

HALF = 1 << 30
"""The multiplier of all powers of two."""
LARGEST_PRODUCT = 1 << 30
"""Of two 16-bit numbers; its double needs more than 32 bits."""
SUMS = {"add": "add", "subtract": "sub", "squared_difference": "sub"}
CHOICES = {"maximum": "max", "minimum": "min"}


@dataclass(frozen=True)
class Joined:
    """Both operands, shifted to the left and scaled, then joined by an operation, perhaps squared, and scaled; None:
    unchanged.

    largest: a bound of what is joined, whose double would need more than 32 bits.
    """

    left: Rounded | None
    right: Rounded | None
    spares: Pair
    operation: str
    output: Rounded | Once | None
    bounds: Pair
    largest: int | None = None
    squared: bool = False

    def apply(self, w: Writer, n: Arithmetic, *variables: str) -> str:
        left, right = variables
        for name, by, spare in ((left, self.left, self.spares[0]), (right, self.right, self.spares[1])):
            if spare:
                w(f"{name} = {n.shift_left(w, name, spare)};")
            _scale(w, n, name, by)
        w(f"{left} = {n.both(w, self.operation, left, right)};")
        if self.squared:
            w(f"{left} = {n.both(w, 'mul', left, left)};")
        if self.largest is not None:
            w(f"{left} = {n.both(w, 'min', left, self.largest)};")
        _scale(w, n, left, self.output)
        return left


@dataclass(frozen=True)
class Line:
    scale: Rounded | Once | None
    offset: int
    bounds: Pair

    def apply(self, w: Writer, n: Arithmetic, *variables: str) -> str:
        (x,) = variables
        _scale(w, n, x, self.scale)
        return n.both(w, "add", x, self.offset) if self.offset else x


@dataclass(frozen=True)
class Gate:
    gate: Rounded | None
    output: Rounded | None
    bounds: Pair

    def apply(self, w: Writer, n: Arithmetic, *variables: str) -> str:
        (x,) = variables
        n.declare(w, "gate", x)
        _scale(w, n, "gate", self.gate)
        for operation, by in (("add", rules.HALF_GATE), ("max", 0), ("min", 2 * rules.HALF_GATE)):
            w(f"gate = {n.both(w, operation, 'gate', by)};")
        w(f"gate = {n.both(w, 'mul', 'gate', x)};")
        _scale(w, n, "gate", self.output)
        return "gate"


@dataclass(frozen=True)
class Slopes:
    """One scale from `threshold` on, another, perhaps negative, of what is missing to it, or of the product with a
    second operand."""

    above: Rounded | None
    below: Rounded | None
    is_negated: bool
    threshold: int
    bounds: Pair

    def apply(self, w: Writer, n: Arithmetic, *variables: str) -> str:
        x, *factors = variables
        n.declare(w, "below", n.both(w, "sub", x, self.threshold) if self.threshold else x)
        n.declare(w, "is_below", n.sign(w, "below"))
        for factor in factors:
            w(f"below = {n.both(w, 'mul', 'below', factor)};")
        _scale(w, n, "below", self.below)
        _scale(w, n, x, self.above)
        if self.is_negated:  # -a is ~a + 1
            w(f"below = {n.both(w, 'add', n.both(w, 'xor', 'below', -1), 1)};")
        w(f"below = {n.both(w, 'and', n.both(w, 'xor', 'below', x), 'is_below')};")
        return n.both(w, "xor", x, "below")


def _scale(w: Writer, n: Arithmetic, name: str, by: Rounded | Once | None) -> None:
    if by is not None:
        n.scale(w, name, by)


class Unfit(Exception):
    """A scaling of these numbers needs more than 32 bits."""


def _of(scale: Multiplier, numbers: Ints | Pair) -> Rounded | None:
    """The scaling of such numbers; None for a factor of one."""
    if scale == UNIT:
        return None
    found = rounded(scale, (int(np.min(numbers)), int(np.max(numbers))))
    if found is None:
        raise Unfit
    return found


def _once(real: float, numbers: Pair, out: Tensor, within: Pair) -> Once:
    zero = quant_of(out).zero_point
    found = rounded_once(real, numbers, (within[0] - zero, within[1] - zero))
    if found is None:
        raise Unfit
    return found


def _lifted(scale: Multiplier, numbers: Ints | Pair, spare: int) -> tuple[Rounded | None, int]:
    """The scaling of numbers after a shift to the left by `spare`, and that shift: half of them takes one bit less."""
    less = spare + scale.shift - 1
    return (None, less) if scale.multiplier == HALF and less >= 0 else (_of(scale, numbers), spare)


def _range(given: Tensor | Constant) -> Pair:
    """The least and the largest number, less the zero point."""
    kind = given.dtype if isinstance(given, Tensor) else given.data.dtype.name
    zero, ends = quant_of(given).zero_point, limits(kind)
    return ends[0] - zero, ends[1] - zero


def _fitted(rule_of: Callable[[Site[K]], T | str]) -> Callable[[Site[K]], T | str]:
    """With a refusal of numbers whose scaling needs more than 32 bits."""

    def found(site: Site[K]) -> T | str:
        try:
            return rule_of(site)
        except Unfit:
            return "scaled numbers need more than 32 bits"

    return lru_cache(maxsize=256)(found)


@_fitted
def activation_rule(site: Site[Activation]) -> Rule | str:
    return rule_of(site.attributes.rule(site), _range(site.inputs[0])) or "it computes lines, gates and slopes"


def rule_within(rule: rules.Rule, numbers: Pair) -> Rule | None:
    """A function of numbers in this range; None where it is another one, or needs more than 32 bits."""
    try:
        return rule_of(rule, numbers)
    except Unfit:
        return None


def rule_of(rule: rules.Rule, numbers: Pair) -> Rule | None:
    """The same, or Unfit."""
    match rule:
        case rules.Rescale(form, scale):
            return Line(_of(scale, numbers), 0, form.bounds)
        case rules.Line(form, scale, offset):
            return Line(_of(scale, numbers), offset, form.bounds)
        case rules.Gate(form, gate, output):
            x = ints(np.arange(numbers[0], numbers[1] + 1))
            gates = saturate(requantize(x, *gate) + rules.HALF_GATE, 0, 2 * rules.HALF_GATE)
            return Gate(_of(gate, x), _of(output, x * gates), form.bounds)
        case rules.Slopes(form, (above, (slope, shift)), threshold):
            below = _of(Multiplier(abs(slope), shift), (numbers[0] - threshold, numbers[1] - threshold))
            return Slopes(_of(above, numbers), below, slope < 0, threshold, form.bounds)
    return None


@_fitted
def convert_rule(site: Site[Convert]) -> Rule | str:
    out = site.outputs[0]
    return _rescale(site.inputs[0], out, site.attributes.once, limits(out.dtype))


@_fitted
def join_rules(site: Site[Concatenate]) -> tuple[Line, ...] | str:
    """For each input of a concatenation."""
    out, within = site.outputs[0], bounds(site.attributes.clamp, site.outputs[0])
    return tuple(_rescale(own, out, site.attributes.once, within) for own in site.inputs)


def _rescale(own: Tensor, out: Tensor, once: bool, within: Pair) -> Line:
    """From one scale to another."""
    if quant_of(own).scale == quant_of(out).scale:
        return Line(None, 0, within)
    if once:
        return Line(_once(quant_of(own).scale / quant_of(out).scale, _range(own), out, within), 0, within)
    return Line(_of(rescale_multiplier(quant_of(own).scale, quant_of(out).scale), _range(own)), 0, within)


@_fitted
def prelu_rule(site: Site[PReLU]) -> Rule | str:
    scales, x = site.attributes.scales(site), _range(site.inputs[0])
    slopes = ints(site.constant("slope")) - quant_of(site.constants["slope"]).zero_point
    products = np.outer(x, (slopes.min(), slopes.max()))
    return Slopes(_of(scales.positive, x), _of(scales.negative, products), False, 0, limits(site.outputs[0].dtype))


@_fitted
def binary_rule(site: Site[Binary]) -> Rule | str:
    function, form, within = site.attributes.function, formats(site), bounds(site.attributes.clamp, site.outputs[0])
    ranges = operands([*map(_range, site.inputs)], {at: _range(c) for at, c in site.constants.items()})
    if function in CHOICES:
        left, right = (_of(scale, given) for scale, given in zip(form.choice_scales(), ranges, strict=True))
        return Joined(left, right, (0, 0), CHOICES[function], None, within)
    if function == "multiply":
        return _product(form, ranges, within, site.outputs[0])
    squared = function == "squared_difference"
    if function not in SUMS or (squared and form.bits == 16):
        return "of words it does not divide or square" if form.bits == 16 else "it does not divide"
    scales = form.square_scales() if squared else form.sum_scales()
    given = [ints(ends) << scales.left_shift for ends in ranges]
    first, second = requantize(given[0], *scales.first), requantize(given[1], *scales.second)
    sums = first + (second if function == "add" else -second[::-1])
    (left, first_spare), (right, second_spare) = (
        _lifted(scale, numbers, scales.left_shift) for scale, numbers in zip(scales[1:3], given, strict=True)
    )
    return Joined(
        left,
        right,
        (first_spare, second_spare),
        SUMS[function],
        _of(scales.output, (0, int(np.abs(sums).max()) ** 2) if squared else sums),
        within,
        squared=squared,
    )


def _product(form: Formats, ranges: Sequence[Pair], within: Pair, out: Tensor) -> Rule:
    """The largest product of two 16-bit numbers, that of the two most negative ones, must scale like one less."""
    ends = [a * b for a in ranges[0] for b in ranges[1]]
    if form.once:
        once = _once(form.real_product(), (min(ends), max(ends)), out, within)
        return Joined(None, None, (0, 0), "mul", once, within)
    scale = form.product_scale()
    if max(ends) < LARGEST_PRODUCT:
        return Joined(None, None, (0, 0), "mul", _of(scale, (min(ends), max(ends))), within)
    largest = LARGEST_PRODUCT - 1
    results = saturate(requantize([largest, largest + 1], *scale), *within)
    if results[0] != results[1]:
        raise Unfit
    return Joined(None, None, (0, 0), "mul", _of(scale, (-largest, largest)), within, largest)

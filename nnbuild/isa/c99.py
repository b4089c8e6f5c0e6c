"""Portable C99, one number at a time: runs on every board.

Costs are those of a simple in-order core with a floating-point unit; a measured table takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Row, Writer
from nnbuild.isa.isa import Isa
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import General
from nnbuild.ops.base import Clamp

if TYPE_CHECKING:
    from nnbuild.isa.float_results import FloatResults

C99 = Isa("c99", "portable C: any compiler, any processor")
ISAS = (C99,)

COMPARISON = 0.4
"""What a comparison of floats takes of an addition or multiplication, without a unit for them."""

LOAD = Row("const float {0} = {1};", 2)
LOAD_MUTABLE = Row("float {0} = {1};", 2)
LOAD_AS = Row("{0} {1} = {2};", 2)
STORE = Row("{0} = {1};", 1)
MULTIPLY_ADD = Row("{0} += {1} * {2};", 3, products=1)
MULTIPLY_ADD_LONG = Row("{0} += (int64_t){1} * {2};", 3, products=1, wides=1)
ADD = Row("{0} += {1};", 3)
ADD_FLOAT = Row("{0} += {1};", 3, floats=1)
LET = Row("const int32_t {0} = {1};", 0)
"""Costs what it computes."""
READ = Row("const int32_t {0} = {1};", 1, 1)
STEP = Row("{0} += {1};", 1)
STORE_BYTE = Row("{0} = (int8_t){1};", 1)
LARGER_FLOAT = Row("if ({1} > {0}) {0} = {1};", 3, floats=COMPARISON)
SMALLER_FLOAT = Row("if ({1} < {0}) {0} = {1};", 3, floats=COMPARISON)
LARGER = Row("if ({1} > {0}) {0} = {1};", 3)
SMALLER = Row("if ({1} < {0}) {0} = {1};", 3)
HELD = Row("if ({0} {1} {2}) {0} = {2};", 2.5)
AT_LEAST = Row("if ({0} < {1}) {0} = {1};", 2)
AT_MOST = Row("if ({0} > {1}) {0} = {1};", 2)


def clamp(w: Writer, bounds: Clamp, variable: str) -> None:
    """Clamps a variable to the bounds of a fused activation."""
    if bounds.low is not None:
        w.bill(0, floats=COMPARISON)
        w(w.use(AT_LEAST, variable, float_literal(bounds.low)))
    if bounds.high is not None:
        w.bill(0, floats=COMPARISON)
        w(w.use(AT_MOST, variable, float_literal(bounds.high)))


def product(w: Writer, a: str, b: str) -> str:
    """a * b in single floats, which no compiler contracts to a fused multiply-add, whatever its flags."""
    w.helpers.add("product")
    w.bill(0, floats=1)
    return f"{w.prefix}_product({a}, {b})"


def multiply_add(w: Writer, accumulator: str, a: str, b: str) -> None:
    """accumulator += a * b in single floats, rounded twice."""
    w(w.use(ADD_FLOAT, accumulator, product(w, a, b)))


NOTHING = re.compile(r"(?: \+ 0)+$")


def at(pointer: str) -> str:
    """The target of a pointer expression, in the usual notation."""
    base, _, index = NOTHING.sub("", pointer).partition(" + ")
    return f"{base}[{index}]" if index else f"*{base}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Single(Vectors):
    """A set without vectors: a float variable is a vector of one lane, and operations are C expressions."""

    def call(self, w: Writer, name: str, *given: str | int, of: tuple[int | str, ...] = ()) -> str:
        w.bill(self.cycles.get(name, CYCLES.get(name, 1)), floats=FLOATS.get(name, 0))
        operands = [str(each) for each in given]
        match name:
            case "f_load" | "f_repeat":
                return at(operands[0])
            case "f_store":
                return f"{at(operands[0])} = {operands[1]}"
            case "f_each":
                return operands[0]
            case "f_mul":
                return product(w, *operands)
            case "f_sqrt":
                return w.helper("sqrtf", *operands)
        return EXPRESSIONS[name].format(*map(_grouped, operands))

    def let(self, w: Writer, kind: str, name: str, value: str, const: str = "const ") -> None:
        w(f"float {name} = {value};")

    def load_bytes(self, w: Writer, pointer: str) -> str:
        w.bill(BYTE_CYCLES, floats=COMPARISON)
        return f"(float){at(pointer)}"

    def accumulate(self, w: Writer, total: str, a: str, b: str) -> None:
        if "multiply_add" in self.spellings:
            w(f"{total} = {super().call(w, 'multiply_add', a, b, total)};")
        else:
            multiply_add(w, total, a, b)

    def bound(self, w: Writer, bounds: Clamp, variable: str) -> None:
        clamp(w, bounds, variable)


def _grouped(operand: str) -> str:
    """Adds parentheses, unless it is a name, a number, an element or a call."""
    return operand if WHOLE.fullmatch(operand) else f"({operand})"


WHOLE = re.compile(r"-?[\w.]+(\[[^\[\]]*\]|\([^()]*\))?|\([^()]*\)")
EXPRESSIONS = {
    "f_add": "{0} + {1}",
    "f_sub": "{0} - {1}",
    "f_div": "{0} / {1}",
    "f_max": "({0} > {1} ? {0} : {1})",
    "f_min": "({0} < {1} ? {0} : {1})",
    "f_if_less": "({0} >= {1} ? {3} : {2})",
}
CYCLES = {"f_load": 2, "f_repeat": 2, "f_div": 14, "f_max": 3, "f_min": 3, "f_if_less": 4, "f_each": 2, "f_mul": 0}
FLOATS = {"f_add": 1, "f_sub": 1, "f_div": 1.5, **dict.fromkeys(("f_max", "f_min", "f_if_less"), COMPARISON)}
BYTE_CYCLES = 4
"""Loading a byte and making it a float; without a unit for floats that takes about as long as a comparison."""
SINGLE = Single(name="scalar", guard="", registers=14)
"""Floats on any processor."""


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerLanes(Lanes):
    """Single integers: 8-bit inputs with 32-bit sums, 16-bit inputs with 64-bit sums.

    scaling: how a sum becomes an output, which may be a float, with the constants of each channel in `channels`. The
    zero points are of inputs, weights and outputs; only a dense layer's weights may have a zero point other than 0.
    """

    channels: Mapping[str, Array]
    input_type: str
    weight_type: str
    output_type: str
    input_zero: int
    weight_zero: int
    output_zero: int
    bounds: tuple[int, int]
    scaling: General | FloatResults
    vectors: int = 4

    @property
    def sum_type(self) -> str:
        return "int32_t" if self.input_type == "int8_t" else "int64_t"

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        w(w.use(LOAD_AS, self.sum_type, accumulator, f"bias[{channel}]" if "bias" in self.channels else "0"))

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD_AS, "const int32_t", name, f"{at(pointer)} - {self.weight_zero}"))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD_AS, "const int32_t", name, f"{at(pointer)} - {self.input_zero}"))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(w.use(MULTIPLY_ADD if self.sum_type == "int32_t" else MULTIPLY_ADD_LONG, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        constants = {name: f"{name}[{channel}]" for name in self.scaling.constants}
        value = f"{accumulator}_scaled"
        if not isinstance(self.scaling, General):
            self.scaling.declare(w, value, accumulator, constants)
            w(w.use(STORE, at(pointer), value))
            return
        scaled = w.helper(self.scaling.function, accumulator, *constants.values())
        w(w.use(LOAD_AS, "int32_t", value, f"{scaled} + {self.output_zero}"))
        bound(w, self.bounds, value)
        w(w.use(STORE, at(pointer), f"({self.output_type}){value}"))


def added(value: str, number: int) -> str:
    """value + number, in the usual notation."""
    if number == 0:
        return value
    return f"{value} + {number}" if number > 0 else f"{value} - {-number}"


def narrow(w: Writer, bounds: tuple[int, int], variable: str, known: tuple[int, int]) -> None:
    """The same for a variable that is known to lie within other bounds."""
    if bounds[0] > known[0]:
        w(w.use(HELD, variable, "<", str(bounds[0])))
    if bounds[1] < known[1]:
        w(w.use(HELD, variable, ">", str(bounds[1])))


def bound(w: Writer, bounds: tuple[int, int], variable: str) -> None:
    """Clamps an integer variable."""
    w(w.use(AT_LEAST, variable, str(bounds[0])))
    w(w.use(AT_MOST, variable, str(bounds[1])))

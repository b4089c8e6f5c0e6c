"""exp, log, tanh, the sigmoid and others of every lane, for every width of x86, with the same bits on each.

Only the cells' functions use fused multiply-add: elsewhere a product is rounded before the addition, on all widths.
`exp` and `log` equal those of firmware/libm bit by bit, and have their bounds: 0.90 and 0.96 ULP. `tanh` and `sigmoid`
are shorter than the library's: at most 2.6 ULP where the result is a normal number; below, the sigmoid errs by at most
2^-126. `erf` errs by at most 9 ULP, `log1p` by 2.6. tests/kernels/test_vector_functions.py checks these bounds.

The sigmoid and tanh of cells in integer vectors have 20 fraction bits: `numeric.tables` defines them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from nnbuild.base.writer import Instruction
from nnbuild.isa.vectors import Vectors
from nnbuild.numeric.tables import FINE_POINT

MAGIC = "0x1.8p23f"
"""Added to a small number, it leaves its integer part in the low bits."""

MINUS_INFINITY = -0x800000
SPECIAL = {"infinity": "0x7f800000", "-infinity": str(MINUS_INFINITY), "nan": "0x7fc00000"}
"""The bits of special values; those of minus infinity as a signed number."""


RELOADED = 2
"""An operation's cost where registers are few, and constants and intermediate results come from memory: the functions
take 3.0 to 4.0 instructions for each operation on Cortex-M55."""


class Text:
    """The body of a vector function, line by line; every operation counts towards its cost."""

    def __init__(self, floats: Vectors) -> None:
        self.floats = floats
        self.lines: list[str] = []
        self.cycles = 0.0
        self.uses: list[Instruction] = []

    def call(self, name: str, *operands: str, of: tuple[int | str, ...] = ()) -> str:
        used = self.floats.instruction(name, *of)
        self.uses.append(used)
        self.cycles += used.cycles * (RELOADED if self.floats.sparing else 1)
        return f"{{prefix}}_{used.name}({', '.join(operands)})"

    def op(self, operation: str, *operands: str) -> str:
        return self.call(f"f_{operation}", *map(self.value, operands))

    def value(self, operand: str) -> str:
        """A C number or a name of SPECIAL stands for a vector of it."""
        if operand in SPECIAL:
            return self.call("f_of_bits", self.call("each", SPECIAL[operand]))
        is_number = operand.lstrip("-")[:1].isdigit()
        return self.call("f_each", operand) if is_number else operand

    def let(self, name: str, value: str, kind: str = "floats") -> None:
        self.lines.append(self.floats.typed(f"const {kind} {name} = {self.value(value)};"))

    def bits(self, operation: str, value: str, *operands: str, of: tuple[int, ...] = ()) -> str:
        """An operation on the lanes' bits, as 32-bit integers."""
        others = [self.call("each", operand) for operand in operands]
        return self.call("f_of_bits", self.call(operation, self.call("f_bits", value), *others, of=of))

    def less(self, a: str, b: str, then: str, otherwise: str) -> str:
        """a < b ? then : otherwise."""
        return self.op("if_less", a, b, then, otherwise)

    def horner(self, x: str, coefficients: tuple[str, ...], name: str = "q") -> None:
        """Evaluates a polynomial of x by Horner's rule, highest power first."""
        first, *others = coefficients
        self.lines.append(self.floats.typed(f"floats {name} = {self.value(first)};"))
        for coefficient in others:
            self.lines.append(f"{name} = {self.op('add', coefficient, self.op('mul', x, name))};")

    def other(self, function: Callable[[Vectors], Instruction], operand: str) -> str:
        """Another of these functions, applied to an operand."""
        used = function(self.floats)
        self.uses.append(used)
        self.cycles += used.cycles
        return f"{{prefix}}_{used.name}({operand})"

    def function(self, name: str, result: str, head: str = "floats {name}(floats x)") -> Instruction:
        """The function; where vectors cannot wait on the stack, the next one does not start before its end."""
        result = self.op("settled", result) if self.floats.unsaved else result
        body = "\n".join([*self.lines, f"return {result};"])
        head = self.floats.typed(head)
        return Instruction(f"{self.floats.name}_{name}", head, body, self.cycles, uses=tuple(dict.fromkeys(self.uses)))


EXP = ("0x1.6afe14p-10f", "0x1.124492p-7f", "0x1.555826p-5f", "0x1.555482p-3f", "0x1.fffffcp-2f")
"""(e^r - 1 - r) / r^2 for |r| <= ln2 / 2, as in firmware/libm/nn_expf.c."""


def _reduced(t: Text, x: str, factor: str, shrink: int = 0) -> None:
    """k with x = k ln2 + r, and e^r - 1 as `part`. With `shrink`, for 2^shrink x, whose log2(e) is `factor`."""
    t.let("shifted", t.op("add", t.op("mul", x, factor), MAGIC))
    t.let("k", t.op("sub", "shifted", MAGIC))
    twice = t.op("add", x, x) if shrink else x
    t.let("high", t.op("sub", twice, t.op("mul", "k", "0x1.62e4p-1f")))
    t.let("low", t.op("mul", "k", "0x1.7f7d1cp-20f"))
    t.let("r", t.op("sub", "high", "low"))
    t.horner("r", EXP)
    t.let("part", t.op("add", "high", t.op("sub", t.op("mul", t.op("mul", "r", "r"), "q"), "low")))


def _power(t: Text, shifted: str) -> str:
    """2^k, from k in the low bits of `shifted`."""
    return t.bits("shift_left", t.bits("add", shifted, "127"), of=(23,))


@cache
def exp(floats: Vectors) -> Instruction:
    """Applies 2^k in two factors, since it may be no normal number."""
    t = Text(floats)
    t.let("within", t.op("min", "90.0f", t.op("max", "-105.0f", "x")))
    _reduced(t, "within", "0x1.715476p+0f")
    t.let("half", t.op("add", t.op("mul", "k", "0.5f"), MAGIC))
    t.let("rest", t.op("add", t.op("sub", "k", t.op("sub", "half", MAGIC)), MAGIC))
    y = t.op("add", "1.0f", "part")
    return t.function("exp", t.op("mul", t.op("mul", y, _power(t, "half")), _power(t, "rest")))


@cache
def sigmoid(floats: Vectors) -> Instruction:
    t = Text(floats)
    t.let("within", t.op("sub", "0.0f", t.op("min", "87.0f", t.op("max", "-88.0f", "x"))))
    _reduced(t, "within", "0x1.715476p+0f")
    t.let("power", _power(t, "shifted"))
    t.let("below", t.op("add", t.op("add", "power", "1.0f"), t.op("mul", "power", "part")))
    return t.function("sigmoid", t.op("div", "1.0f", "below"))


@cache
def tanh(floats: Vectors) -> Instruction:
    """t / (t + 2) with t = e^2x - 1, which is accurate in its leading digits for small x too."""
    t = Text(floats)
    t.let("within", t.op("min", "10.0f", t.op("max", "-10.0f", "x")))
    _reduced(t, "within", "0x1.715476p+1f", shrink=1)
    t.let("power", _power(t, "shifted"))
    t.let("less", t.op("add", t.op("sub", "power", "1.0f"), t.op("mul", "power", "part")))
    return t.function("tanh", t.op("div", "less", t.op("add", "less", "2.0f")))


TANH_ABOVE = ("0x1.13e0ccp-26f", "0x1.a05b3p-16f", "0x1.141482p-8f", "0x1.4a5fb4p-3f", "0x1.34a6e2p+0f")
TANH_BELOW = ("0x1.f66c5p-21f", "0x1.9f0f3cp-12f", "0x1.ff0ca4p-6f", "0x1.205c7cp-1f", "0x1.34a6e2p+0f")
"""tanh(x) / x as a fraction of two polynomials of x^2, for |x| <= 9.02, where it becomes 1."""


def _quotient(t: Text, half: bool) -> str:
    """tanh(x), or with `half` tanh(x / 2) / 2, whose coefficients are scaled by powers of two.

    Terms are paired to shorten dependencies, and fused where the set can: the sums of its cells are, too.
    """
    bound, scale = ("18.04f", 0.5) if half else ("9.02f", 1.0)
    t.let("within", t.op("min", bound, t.op("max", f"-{bound}", "x")))
    t.let("square", t.op("mul", "within", "within"))
    t.let("fourth", t.op("mul", "square", "square"))
    for name, coefficients, factor in (("above", TANH_ABOVE, scale**2), ("below", TANH_BELOW, 1.0)):
        numbers = [float.fromhex(text.removesuffix("f")) for text in reversed(coefficients)]
        a, b, c, d, e = (f"{float.hex(number * factor * scale ** (2 * i))}f" for i, number in enumerate(numbers))
        high = t.op("fma", "fourth", e, t.op("fma", "square", d, c))
        t.let(name, t.op("fma", "fourth", high, t.op("fma", "square", b, a)))
    return t.op("div", t.op("mul", "within", "above"), "below")


@cache
def cell_tanh(floats: Vectors) -> Instruction:
    """For cells, which wait for it at every step: half the latency, errs by at most 5 ULP."""
    t = Text(floats)
    return t.function("cell_tanh", _quotient(t, half=False))


@cache
def cell_sigmoid(floats: Vectors) -> Instruction:
    """The same for gates: 1/2 + tanh(x / 2) / 2, which errs by at most 2.5e-7."""
    t = Text(floats)
    return t.function("cell_sigmoid", t.op("add", "0.5f", _quotient(t, half=True)))


@cache
def expm1(floats: Vectors) -> Instruction:
    """e^x - 1 for x up to 88."""
    t = Text(floats)
    t.let("within", t.op("min", "88.0f", t.op("max", "-30.0f", "x")))
    _reduced(t, "within", "0x1.715476p+0f")
    t.let("power", _power(t, "shifted"))
    return t.function("expm1", t.op("add", t.op("sub", "power", "1.0f"), t.op("mul", "power", "part")))


LOG = (
    *("-0x1.41ee1ap-4f", "0x1.07d0fp-3f", "-0x1.0ce078p-3f", "0x1.226e4ap-3f"),
    *("-0x1.54788cp-3f", "0x1.99a596p-3f", "-0x1.00022p-2f", "0x1.55554ap-2f"),
)
"""(log(1 + f) - f + f^2 / 2) / f^3, as in firmware/libm/nn_logpartsf.c."""


@cache
def log(floats: Vectors) -> Instruction:
    """Like the library's: x = 2^k m with m from sqrt(1/2) to sqrt(2), and a sum that keeps its own rounding error."""
    t = Text(floats)
    tiny = ("x", "0x1p-126f")
    t.let("normal", t.less(*tiny, t.op("mul", "x", "0x1p23f"), "x"))
    t.let("lost", t.less(*tiny, "23.0f", "0.0f"))
    t.let("moved", t.bits("add", "normal", "0x3f800000 - 0x3f3504f3"))
    exponent = t.op("of_sums", t.call("shift_down", t.call("f_bits", "moved"), of=(23,)))
    t.let("k", t.op("sub", t.op("sub", exponent, "127.0f"), "lost"))
    mantissa = t.bits("and", "moved", "0x007fffff")
    t.let("f", t.op("sub", t.bits("add", mantissa, "0x3f3504f3"), "1.0f"))
    t.let("high", t.op("mul", "k", "0x1.62e4p-1f"))
    t.let("sum", t.op("add", "high", "f"))
    t.let("rest", t.op("sub", "f", t.op("sub", "sum", "high")))
    t.horner("f", LOG)
    t.let("bend", t.op("mul", t.op("mul", "f", "f"), t.op("sub", "0.5f", t.op("mul", "f", "q"))))
    low = t.op("sub", t.op("mul", "k", "0x1.7f7d1cp-20f"), "bend")
    t.let("finite", t.op("add", "sum", t.op("add", "rest", low)))
    special = t.less("0.0f", "x", "x", t.less("x", "0.0f", "nan", t.op("add", "x", "-infinity")))
    positive = t.less("x", "infinity", "finite", special)
    return t.function("log", t.less("0.0f", "x", positive, special))


@cache
def log1p(floats: Vectors) -> Instruction:
    """log(1 + x) for x from 0 to 1, corrected for the rounding error of 1 + x."""
    t = Text(floats)
    t.let("above", t.op("add", "1.0f", "x"))
    t.let("kept", t.op("sub", "above", "1.0f"))
    scaled = t.op("mul", t.other(log, "above"), t.op("div", "x", "kept"))
    return t.function("log1p", t.less("0.0f", "kept", scaled, "x"))


EXACT_FROM = "0x1p23f"
"""Numbers from here on are whole."""
SIZE = 0x7FFFFFFF
"""The bits of a number without its sign."""


def _signed(t: Text, size: str) -> str:
    """A number of this size with the sign of x, which zeros have too."""
    sign = t.call("and", t.call("f_bits", "x"), t.call("each", str(-SIZE - 1)))
    return t.call("f_of_bits", t.call("xor", t.call("f_bits", size), sign))


@cache
def rint(floats: Vectors) -> Instruction:
    """The nearest whole number, of two the even one."""
    t = Text(floats)
    t.let("size", t.bits("and", "x", str(SIZE)))
    t.let("near", t.op("sub", t.op("add", "size", EXACT_FROM), EXACT_FROM))
    return t.function("rint", t.less("size", EXACT_FROM, _signed(t, "near"), "x"))


@cache
def floor(floats: Vectors) -> Instruction:
    t = Text(floats)
    t.let("near", t.other(rint, "x"))
    return t.function("floor", t.less("x", "near", t.op("sub", "near", "1.0f"), "near"))


@cache
def ceil(floats: Vectors) -> Instruction:
    t = Text(floats)
    t.let("near", t.other(rint, "x"))
    t.let("above", t.less("near", "x", t.op("add", "near", "1.0f"), "near"))
    return t.function("ceil", _signed(t, t.bits("and", "above", str(SIZE))))


ERF_ABOVE = (
    *("0x1.13292p-19f", "0x1.2ab81ep-12f", "0x1.ed8e66p-9f"),
    *("0x1.b01d92p-5f", "0x1.85f2d4p-3f", "0x1.06eba6p-3f"),
)
ERF_BELOW = (
    *("0x1.3f8972p-15f", "0x1.30bf18p-10f", "0x1.ea818p-7f"),
    *("0x1.d36342p-4f", "0x1.010fe6p-1f", "1.0f"),
)
"""erf(x) / x as (1 + one polynomial of x^2) by another one, for |x| <= 3.92, where it becomes 1."""


@cache
def erf(floats: Vectors) -> Instruction:
    t = Text(floats)
    t.let("within", t.op("min", "3.92f", t.op("max", "-3.92f", "x")))
    t.let("square", t.op("mul", "within", "within"))
    t.horner("square", ERF_ABOVE, "above")
    t.horner("square", ERF_BELOW, "below")
    t.let("whole", t.op("add", "within", t.op("mul", "within", "above")))
    return t.function("erf", t.op("min", "1.0f", t.op("max", "-1.0f", t.op("div", "whole", "below"))))


FINE_HEAD = "sums {name}(const int32_t *table, sums x)"


@cache
def fine_sigmoid(v: Vectors) -> Instruction:
    """Products are floored: upper halves, of factors that are shifted to the left."""
    t = Text(v)
    let, call = partial(t.let, kind="sums"), t.call

    def each(number: int) -> str:
        return call("each", str(number))

    def left(value: str, by: int) -> str:
        return call("shift_left", value, of=(by,))

    let("sign", call("shift_right", "x", of=(31,)))
    positive = call("sub", call("xor", "x", "sign"), "sign")
    let("size", call("min", positive, each(16 << FINE_POINT)))
    let("place", call("shift_right", call("add", "size", each(1 << 15)), of=(16,)))
    let("near", call("gather", "table", "place"))
    let("rest", left(call("sub", "size", left("place", 16)), 12))
    let("slope", call("upper", left("near", 1), left(call("sub", each(1 << 30), "near"), 1)))
    let("bend", call("upper", left("slope", 2), call("sub", each(1 << 29), "near")))
    let("tilted", call("add", "slope", call("upper", "rest", "bend")))
    raised = call("add", call("add", "near", call("upper", "rest", "tilted")), each(1 << 9))
    let("above", call("shift_right", raised, of=(10,)))
    below = call("and", "sign", each(1 << FINE_POINT))
    result = call("add", call("sub", call("xor", "above", "sign"), "sign"), below)
    return t.function("fine_sigmoid", result, FINE_HEAD)


@cache
def fine_tanh(v: Vectors) -> Instruction:
    t = Text(v)
    half = t.other(fine_sigmoid, f"table, {t.call('shift_left', 'x', of=(1,))}")
    twice = t.call("shift_left", half, of=(1,))
    return t.function("fine_tanh", t.call("sub", twice, t.call("each", str(1 << FINE_POINT))), FINE_HEAD)


FINE = {"sigmoid": fine_sigmoid, "tanh": fine_tanh}

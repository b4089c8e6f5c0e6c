"""32-bit arithmetic on the elements of integer tensors, exactly rounded: in vectors, or one by one with the rounded
high words of products.

`requantize` of a number is the rounded high word of its double, shifted left again where the scale is large, times the
multiplier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import (
    Body,
    Demand,
    K,
    Kernel,
    Names,
    OnEach,
    T,
    accepted,
    kernel_of,
    kinds_of,
    on_each,
    only_integer,
    reason_of,
)
from nnbuild.kernels.lanes.vector_binary import Scaled, scaled_by, scaled_once_by
from nnbuild.kernels.loops.strided import Loops
from nnbuild.kernels.parts.integer_steps import computed
from nnbuild.model.graph import Tensor
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.real_scale import HighScale, high_scale
from nnbuild.numeric.rounding import INT32, limits
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

Pair = tuple[int, int]
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "xor": "^", "and": "&"}


@dataclass(frozen=True)
class Rounded:
    """`rounding.requantize` of numbers after a shift to the left: a scale of at most one. line: the same for sets
    without instructions that round."""

    scale: Multiplier
    line: Scaled
    left: int = 0


def rounded(scale: Multiplier, numbers: Pair) -> Rounded | None:
    """The scaling of numbers in this range, if it fits 32 bits."""
    left = max(scale.shift, 0)
    low, high = (end << left for end in numbers)
    right = Multiplier(scale.multiplier, min(scale.shift, 0))
    line = scaled_by(right, 0, (low, high))
    fits = 2 * low >= INT32[0] and 2 * high <= INT32[1]
    return Rounded(right, line, left) if line and fits else None


@dataclass(frozen=True)
class Once:
    """The product with a number, rounded once. line: the same for sets without instructions that round."""

    high: HighScale
    line: Scaled


def rounded_once(real: float, numbers: Pair, results: Pair) -> Once | None:
    """The scaling of numbers in this range; results beyond the given ones are clamped to them afterwards."""
    high = high_scale(real, numbers, (results[0] - 1, results[1] + 1))
    line = scaled_once_by(real, 0, results, numbers)
    return Once(high, line) if high and line else None


class Arithmetic(Protocol):
    """Expressions and statements for values of 32 bits."""

    @property
    def lanes(self) -> int: ...
    def load(self, w: Writer, kind: str, pointer: str, place: str, count: int, single: bool = False) -> str: ...
    def declare(self, w: Writer, name: str, value: str) -> None: ...
    def both(self, w: Writer, operation: str, a: str, b: str | int) -> str: ...
    def shift_left(self, w: Writer, a: str, by: int) -> str: ...
    def sign(self, w: Writer, a: str) -> str:
        """-1 where a number is negative, else 0."""
        ...

    def scale(self, w: Writer, name: str, by: Rounded | Once) -> None: ...
    def store(self, w: Writer, kind: str, target: str, value: str, bounds: Pair | None, count: int) -> None:
        """Without bounds for a number that fits the type."""
        ...


@dataclass(frozen=True)
class InVectors:
    v: Vectors

    @property
    def lanes(self) -> int:
        return self.v.lanes

    def load(self, w: Writer, kind: str, pointer: str, place: str, count: int, single: bool = False) -> str:
        if single:
            return self.v.call(w, "each", f"{pointer}[{place}]")
        return self.v.call(w, "widen" if kind == "int8" else "widen_words", f"{pointer} + {place}", of=(count,))

    def declare(self, w: Writer, name: str, value: str) -> None:
        self.v.let(w, "sums", name, value, "")

    def both(self, w: Writer, operation: str, a: str, b: str | int) -> str:
        return self.v.call(w, operation, a, b)

    def shift_left(self, w: Writer, a: str, by: int) -> str:
        return self.v.call(w, "shift_left", a, of=(by,)) if by else a

    def sign(self, w: Writer, a: str) -> str:
        return self.v.call(w, "shift_right", a, of=(31,))

    def scale(self, w: Writer, name: str, by: Rounded | Once) -> None:
        """Turns a variable into a multiple of it."""
        left = by.left if isinstance(by, Rounded) else by.high.left if self.v.rounds else 0
        if left:
            w(f"{name} = {self.shift_left(w, name, left)};")
        if not self.v.rounds:
            by.line.apply(w, self.v, name)
            return
        if isinstance(by, Once):
            high = self.both(w, "add", self.both(w, "upper", name, by.high.multiplier), 1 << (by.high.shift - 1))
            w(f"{name} = {self.v.call(w, 'shift_right', high, of=(by.high.shift,))};")
            return
        w(f"{name} = {self.both(w, 'high_rounded', name, by.scale.multiplier)};")
        if by.scale.shift < 0:
            away = self.v.call(w, "away", name)
            w(f"{name} = {self.v.call(w, 'round_each', away, -by.scale.shift)};")

    def store(self, w: Writer, kind: str, target: str, value: str, bounds: Pair | None, count: int) -> None:
        store = "store_bytes" if kind == "int8" else "store_words"
        w(f"{self.v.call(w, store, target, value, of=(*(bounds or limits(kind)), count))};")


@dataclass(frozen=True)
class OneByOne:
    """Single numbers, with the operations of a set on words."""

    ops: Vectors
    lanes: int = 1

    def load(self, w: Writer, kind: str, pointer: str, place: str, count: int, single: bool = False) -> str:
        w.bill(2)
        return f"{pointer}[{place}]"

    def declare(self, w: Writer, name: str, value: str) -> None:
        computed(w, name, value, "int32_t")

    def both(self, w: Writer, operation: str, a: str, b: str | int) -> str:
        w.bill(1 if operation in OPERATORS else 4)  # a copy, a comparison, a conditional move of two instructions
        if operation in OPERATORS:
            return f"({a} {OPERATORS[operation]} {b})"
        return f"({a} {'<' if operation == 'min' else '>'} {b} ? {a} : {b})"

    def shift_left(self, w: Writer, a: str, by: int) -> str:
        w.bill(1)
        return f"{a} * {1 << by}"

    def sign(self, w: Writer, a: str) -> str:
        w.bill(1)
        return f"({a} >> 31)"

    def scale(self, w: Writer, name: str, by: Rounded | Once) -> None:
        if isinstance(by, Once):
            numbers = self.shift_left(w, name, by.high.left), str(by.high.multiplier), str(1 << (by.high.shift - 1))
            w.bill(1)
            w(f"{name} = {self.ops.call(w, 'high_add', *numbers)} >> {by.high.shift};")
            return
        double = self.shift_left(w, name, by.left + 1)
        w(f"{name} = {self.ops.call(w, 'high_rounded_add', double, str(by.scale.multiplier), '0')};")
        if by.scale.shift < 0:
            w.bill(3)
            w(f"{name} = ({name} + ({name} >> 31) + {1 << (-by.scale.shift - 1)}) >> {-by.scale.shift};")

    def store(self, w: Writer, kind: str, target: str, value: str, bounds: Pair | None, count: int) -> None:
        if bounds is not None:
            ends = limits(kind)
            self.declare(w, "value", self.ops.call(w, "saturate", value, of=(ends[1].bit_length() + 1,)))
            c99.narrow(w, bounds, "value", ends)
            value = f"({C_TYPES[kind]})value"
        w(w.use(c99.STORE, c99.at(target), value))


class Rule(Protocol):
    """An elementwise function in this arithmetic; `apply` gives the result, not clamped yet, of variables, which it may
    change."""

    @property
    def bounds(self) -> Pair: ...
    def apply(self, w: Writer, n: Arithmetic, *variables: str) -> str: ...


class Operands(Protocol):
    """Puts the facts of inputs and constants in the operands' order."""

    def __call__(self, inputs: Sequence[T], constants: Mapping[str, T], /) -> Sequence[T]: ...


@dataclass(frozen=True)
class RoundedElements(Generic[K]):
    """A kernel of elementwise functions; `walks` are those of the output and of each operand. mixes: whether inputs and
    outputs may have different types."""

    n: Arithmetic
    walks: Callable[[Site[K]], Loops]
    demanded: Callable[[Site[K], int], Demand]
    rule: Callable[[Site[K]], Rule | str]
    operands: Operands
    mixes: bool = False

    def accepts(self, site: Site[K]) -> str | None:
        if not kinds_of(site) <= {"int8", "int16"}:
            return "it computes integers of 8 and 16 bits only"
        mixed = None if self.mixes else only_integer(site)
        return mixed or reason_of(self.rule(site)) or self.walks(site).no_vectors(self.n.lanes)

    def demand(self, site: Site[K]) -> Demand:
        return self.demanded(site, self.n.lanes)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        rule, walks, n = accepted(self.rule(site)), self.walks(site), self.n
        quants = self.operands([*map(quant_of, site.inputs)], {at: quant_of(c) for at, c in site.constants.items()})
        kinds = self.operands(
            [tensor.dtype for tensor in site.inputs], {at: c.data.dtype.name for at, c in site.constants.items()}
        )

        def element(at: list[str], count: int) -> None:
            variables = "ab"[: len(at) - 1]
            pointers, once = self.operands(names.inputs, names.packed), walks.repeated[1:]
            for i, name in enumerate(variables):
                value = n.load(w, kinds[i], pointers[i], at[1 + i], count, once[i])
                declare_centred(w, n, name, value, quants[i].zero_point)
            value = rule.apply(w, n, *variables)
            store_result(w, n, site.outputs[0], f"{names.outputs[0]} + {at[0]}", value, rule.bounds, count)

        walks.vector_nest(w, n.lanes, element)


def declare_centred(w: Writer, n: Arithmetic, name: str, value: str, zero: int) -> None:
    """Declares a number less its zero point."""
    n.declare(w, name, value)
    if zero:
        w(f"{name} = {n.both(w, 'sub', name, zero)};")


def store_result(w: Writer, n: Arithmetic, out: Tensor, target: str, value: str, bounds: Pair, count: int) -> None:
    """Stores a number after adding the output's zero point."""
    zero = quant_of(out).zero_point
    n.store(w, out.dtype, target, n.both(w, "add", value, zero) if zero else value, bounds, count)


def rounded_kernels(
    walks: Callable[[Site[K]], Loops],
    demanded: Callable[[Site[K], int], Demand],
    rule: Callable[[Site[K]], Rule | str],
    operands: Operands,
    mixes: bool = False,
) -> tuple[Kernel[K] | OnEach[K], ...]:
    return on_arithmetic(lambda n: RoundedElements(n, walks, demanded, rule, operands, mixes))


def on_arithmetic(body: Callable[[Arithmetic], Body[K]]) -> tuple[Kernel[K] | OnEach[K], ...]:
    """The kernels of a function: of single words by the high words of products, and of every vector set."""
    return (
        kernel_of("high_words", frozenset({"armv7em_dsp"}), body(OneByOne(DSP))),
        kernel_of("high_words_many", frozenset({"rv32im"}), body(OneByOne(WORDS))),
        *(on_each(numbers, lambda v: body(InVectors(v)), "_rounded") for numbers in ("integer", "across")),
    )

"""The routines of Winograd's convolutions in integers modulo 2**32, bit-exact.

A tile of 4 x 4 outputs takes 6 x 6 inputs, and 36 products a channel replace 144. Only the final sums are bounded; all
else may wrap: modulo 2**32 a third is a number, and only the powers of two of the transforms remain.

    inputs   V = B d B'    rows of B:  4 0 -5 0 1 0 | 0 -4 -4 1 1 0 | 0 4 -4 -1 1 0
                                       0 -2 -1 2 1 0 | 0 2 -1 -2 1 0 | 0 4 0 -5 0 1
    weights  U = G g G'    rows of G:  6 0 0 | 1 1 1 | 1 -1 1 | 1 2 4 | 1 -2 4 | 0 0 6
    outputs  A (U * V) A'  rows of A:  1 -4 -4 1 1 0 | 0 -2 2 1 -1 0 | 0 -1 -1 1 1 0 | 0 -1 1 2 -2 1

An output at (i, j) comes 576 / (f(i) f(j)) times too large, f being 1, 2, 4 and 4; times f(i) f(j) / 9 it is 64 times.
A tile of 2 x 2 outputs takes 4 x 4 inputs and smaller weights, by the matrices of `scalar_routines`; its outputs come 4
times too large. Inputs are taken plus 128, as unsigned bytes: two channels then share the additions of a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.lanes.layer_sums import Sums
from nnbuild.kernels.winograd.patch_rows import FACTORS, FOUR, NINTH, TWO, transformed
from nnbuild.kernels.winograd.scalar_routines import INPUTS_CALL, Winograd, packed, store
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints

SIGN = 128
LET = Row("const uint32_t {0} = {1};", 0)
"""Billed explicitly."""
LINE_CYCLES, RESULT_CYCLES = 12, 10
"""Cycles of a transform of six inputs, and of one to four outputs."""


@dataclass(frozen=True, eq=False)
class Form:
    """Tiles of `size` by `size` outputs. Sums are shifted left by `left` bits; a summand of the sum at (1, 1), times
    `starts`, reaches all outputs. line and results: the transforms of a line of inputs and of sums."""

    size: int
    taps: Ints
    left: int
    starts: int
    factors: tuple[int, ...]
    line: Callable[[Writer, str, list[str], str], list[str]]
    results: Callable[[Writer, str, list[str]], list[str]]

    @property
    def span(self) -> int:
        return self.size + 2

    @property
    def room(self) -> int:
        """The bound of sums."""
        return (1 << (31 - self.left)) - 1

    def pack(self, shape: Winograd, kernel: Array, sums: Sums) -> dict[str, Array]:
        starts = self.starts * (sums.start - shape.scaling.centre - SIGN * sums.weights.sum(axis=0))
        return packed(shape, transformed(kernel, self.taps), starts)

    def transform_inputs(self, w: Writer, shape: Winograd, source: str, stride: str) -> None:
        """Prints the calls that fill `patch` from both tiles' inputs at `source`, whose rows are `stride` apart."""
        span = self.span
        body = Writer("{prefix}")
        body(f"int32_t columns[{2 * span * span}];")
        body()
        with body.loop("i", shape.depth, step=4):
            body("const int8_t *column = from;")
            body("int32_t *into = columns;")
            with body.loop("x", span):
                self._column(body, shape)
            body("const int32_t *line = columns;")
            with body.loop("half", 2):
                with body.loop("y", span):
                    self._row(body, shape)
                body(f"patch += {2 - 2 * shape.pairs * span * span};")
            body.bill(6)
            body("from += 4;")
            body.bill(3)
        head = "void {name}(int32_t *patch, const int8_t *from, int32_t stride)"
        name = f"winograd{self.size}_inputs_{shape.depth}"
        routine = body.routine(name, head)
        for tile in range(2):
            w.bill(INPUTS_CALL, INPUTS_CALL)
            w.add(body.counts)
            at = f"{source} + {self.size * tile * shape.depth}"
            w(f"{w.call(routine, f'(int32_t *)patch + {tile}', at, stride)};")

    def _column(self, w: Writer, shape: Winograd) -> None:
        """A column of four channels, two of them in the halves of a word."""
        span, ops = self.span, shape.ops
        w("const int8_t *row = column;")
        for y in range(span):
            loaded = ops.call(w, "load_bytes", "row", of=(4,))
            w(w.use(LET, f"all{y}", f"(uint32_t){loaded} ^ 0x80808080U"))
            w("row += stride;")
            w.bill(2)
        for at, half in enumerate(("even", "odd")):
            for y in range(span):
                two = ops.call(w, f"p_{half}_unsigned", f"(int32_t)all{y}")
                w(w.use(LET, f"{half}{y}", f"(uint32_t){two}"))
            for y, value in enumerate(self.line(w, half, [f"{half}{y}" for y in range(span)], "")):
                w(w.use(c99.STORE, f"into[{span * (span * at + y)}]", f"(int32_t){value}"))
        w("into += 1;")
        w(f"column += {shape.depth};")
        w.bill(2)

    def _row(self, w: Writer, shape: Winograd) -> None:
        """A row of transformed columns into the patch. Adding the sign to all of them keeps their lower halves from
        borrowing from the upper ones."""
        span = self.span
        for x in range(0, span, 2):
            w(f"int32_t word{x + 1};")
            w(f"const int32_t word{x} = {shape.ops.call(w, 'load_two', f'line + {x}', f'&word{x + 1}')};")
        words = [f"(uint32_t)word{x}" for x in range(span)]
        for x, value in enumerate(self.line(w, "x", words, " + 0x8000U")):
            w(w.use(c99.STORE, f"patch[{2 * shape.pairs * x}]", f"(int32_t)({value} ^ 0x8000U)"))
            w.bill(1)
        w(f"line += {span};")
        w(f"patch += {2 * shape.pairs * span};")
        w.bill(5)

    def tile(self, w: Writer, shape: Winograd, number: int) -> None:
        """Transforms the sums of tile `number` to outputs."""
        size, span, block = self.size, self.span, shape.block
        w(f"const int32_t *const m = products + channel + {number * block};")
        w(f"int32_t between[{size * span}];")
        w(f"int32_t *const t = {shape.ops.call(w, 'anywhere', 'between')};")
        w.bill(2)
        for x in range(span):
            values = [f"(uint32_t)m[{(span * y + x) * 2 * block}]" for y in range(span)]
            values[1] += " + (uint32_t)start" if x == 1 else ""
            for y, value in enumerate(self.results(w, f"m{x}", values)):
                w(w.use(c99.STORE, f"t[{span * y + x}]", f"(int32_t){value}"))
        half = self.left - 1 if shape.scaling.doubled else 0 if shape.scaling.form else self.left
        for y in range(size):
            for x, value in enumerate(self.results(w, f"t{y}", [f"(uint32_t)t[{span * y + x}]" for x in range(span)])):
                name, factor = f"y{y}{x}", self.factors[y] * self.factors[x] * (NINTH if size == 4 else 1) % (1 << 32)
                result = f"(int32_t)({value} * {factor}U)" if factor > 1 else f"(int32_t){value}"
                w(f"int32_t {name} = {result}{f' >> {half}' if half else ''};")
                w.bill(2 + bool(half))
                store(w, shape, name, (y, size * number + x))


def _four_inputs(w: Writer, name: str, d: list[str], more: str) -> list[str]:
    """The transform of six numbers, each plus `more`."""
    parts = {
        "near": f"{d[4]} - {d[2]}{more}",
        "far": f"{d[3]} - {d[1]}",
        "sides": f"{d[4]} - 4 * {d[2]}{more}",
        "middle": f"{d[3]} - 4 * {d[1]}",
        "last": f"{d[5]} - {d[3]}{more}",
    }
    for part, value in parts.items():
        w(w.use(LET, f"{name}_{part}", value))
    near, far, sides, middle, last = (f"{name}_{part}" for part in parts)
    w.bill(LINE_CYCLES)
    return [
        f"({near} + 4 * ({d[0]} - {d[2]}))",
        f"({sides} + {middle})",
        f"({sides} - {middle})",
        f"({near} + 2 * {far})",
        f"({near} - 2 * {far})",
        f"({last} - 4 * {far})",
    ]


def _four_outputs(w: Writer, name: str, m: list[str]) -> list[str]:
    """The transform of six sums to four outputs."""
    for index, value in enumerate(m):
        w(w.use(LET, f"{name}_{index}", value))
        w.bill(1, 1)
    for part, (first, sign, second) in {"a": (1, "+", 2), "b": (1, "-", 2), "c": (3, "+", 4), "d": (3, "-", 4)}.items():
        w(w.use(LET, f"{name}_{part}", f"{name}_{first} {sign} {name}_{second}"))
    w.bill(RESULT_CYCLES)
    a, b, c, d = (f"{name}_{part}" for part in "abcd")
    return [f"({name}_0 - 4 * {a} + {c})", f"({d} - 2 * {b})", f"({c} - {a})", f"({name}_5 + 2 * {d} - {b})"]


def _two_inputs(w: Writer, name: str, d: list[str], more: str) -> list[str]:
    """The transform of four numbers, each plus `more`."""
    w.bill(8)
    w(w.use(LET, f"{name}_high", f"{d[2]}{more}"))
    w(w.use(LET, f"{name}_one", d[1]))
    low, one, high, last = d[0], f"{name}_one", f"{name}_high", d[3]
    return [f"({low} - {d[2]}{more})", f"({high} + {one})", f"({high} - {one})", f"({one} - {last}{more})"]


def _two_outputs(w: Writer, name: str, m: list[str]) -> list[str]:
    """The transform of four sums to two outputs."""
    for index, value in enumerate(m):
        w(w.use(LET, f"{name}_{index}", value))
        w.bill(1, 1)
    w.bill(4)
    a, b, c, d = (f"{name}_{index}" for index in range(4))
    return [f"({a} + {b} + {c})", f"({b} - {c} - {d})"]


BY_TWO = Form(2, TWO, 2, 4, (1, 1), _two_inputs, _two_outputs)
BY_FOUR = Form(4, FOUR, 6, 36, FACTORS, _four_inputs, _four_outputs)

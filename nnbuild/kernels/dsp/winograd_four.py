"""The routines of Winograd's convolution F(4 x 4, 3 x 3) in integers modulo 2**32, exact to the last bit.

A tile of 4 x 4 outputs takes 6 x 6 inputs, and 36 products a channel replace 144. Nothing on the way may be as large as
it likes but the sums: modulo 2**32 a third is a number, and only the powers of two of the transforms are left.

    inputs   V = B d B'    rows of B:  4 0 -5 0 1 0 | 0 -4 -4 1 1 0 | 0 4 -4 -1 1 0
                                       0 -2 -1 2 1 0 | 0 2 -1 -2 1 0 | 0 4 0 -5 0 1
    weights  U = G g G'    rows of G:  6 0 0 | 1 1 1 | 1 -1 1 | 1 2 4 | 1 -2 4 | 0 0 6
    outputs  A (U * V) A'  rows of A:  1 -4 -4 1 1 0 | 0 -2 2 1 -1 0 | 0 -1 -1 1 1 0 | 0 -1 1 2 -2 1

An output at (i, j) comes 576 / (f(i) f(j)) times too large, f being 1, 2, 4 and 4; times f(i) f(j) / 9 it is 64 times.
Inputs are taken 128 too large, as bytes without a sign: two channels then share the additions of a word.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.dsp.winograd import INPUTS_CALL, WIDTH, Winograd, packed, store
from nnbuild.kernels.sums import Sums
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints

G = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64)
SIZE, SPAN = 4, 6
LEFT = 6
"""Sums come shifted by so many bits."""
ROOM = (1 << (31 - LEFT)) - 1
NINTH = pow(9, -1, 1 << 32)
FACTORS = (1, 2, 4, 4)
SIGN = 128
LET = Row("const uint32_t {0} = {1};", 0)
"""Priced by hand."""
STORE = Row("{0} = {1};", 1)
LINE_CYCLES, RESULT_CYCLES = 12, 10
"""Of a transform of six inputs, and of one to four outputs."""


def transformed(kernel: Array) -> Ints:
    """[3, 3, in, out] -> [36, in, out]."""
    both: Ints = np.einsum("ai,bj,ijcf->abcf", G, G, kernel.astype(np.int64))
    return both.reshape(SPAN * SPAN, *kernel.shape[2:])


def pack(kernel: Array, sums: Sums, scaling: Scaling) -> dict[str, Array]:
    """Where sums start is added at one place, from where it reaches all outputs."""
    starts = 36 * (sums.start - scaling.centre - SIGN * sums.weights.sum(axis=0))
    return packed(transformed(kernel), starts, scaling)


def transform_inputs(w: Writer, shape: Winograd, source: str, stride: str) -> None:
    """Prints the calls that fill `patch` from the 6 x 10 inputs at `source`, whose rows are `stride` apart."""
    body = Writer("{prefix}")
    body(f"int32_t columns[{2 * SPAN * SPAN}];")
    body()
    with body.loop("i", shape.depth, step=4):
        body("const int8_t *column = from;")
        body("int32_t *into = columns;")
        with body.loop("x", SPAN):
            _column(body, shape)
        body("const int32_t *line = columns;")
        with body.loop("half", 2):
            with body.loop("y", SPAN):
                _row(body, shape)
            body(f"patch += {2 - 2 * shape.pairs * SPAN * SPAN};")
        body.bill(6)
        body("from += 4;")
        body.bill(3)
    head = "void {name}(int32_t *patch, const int8_t *from, int32_t stride)"
    uses = tuple(body.instructions.values())
    routine = Instruction(f"winograd4_inputs_{shape.depth}", head, str(body), 0, uses=uses, outlined=True)
    for tile in range(2):
        w.bill(INPUTS_CALL, INPUTS_CALL)
        w.add(body.whole)
        at = f"{source} + {SIZE * tile * shape.depth}" if tile else source
        w(f"{w.call(routine, f'(int32_t *)patch + {tile}', at, stride)};")


def _column(w: Writer, shape: Winograd) -> None:
    """A column of four channels, two of them in the halves of a word."""
    w("const int8_t *row = column;")
    for y in range(SPAN):
        loaded = DSP.call(w, "load_bytes", "row", of=(4,))
        w(w.use(LET, f"all{y}", f"(uint32_t){loaded} ^ 0x80808080U"))
        w("row += stride;")
        w.bill(2)
    for at, half in enumerate(("even", "odd")):
        for y in range(SPAN):
            two = DSP.call(w, f"p_{half}_unsigned", f"(int32_t)all{y}")
            w(w.use(LET, f"{half}{y}", f"(uint32_t){two}"))
        for y, value in enumerate(_line(w, half, [f"{half}{y}" for y in range(SPAN)])):
            w(w.use(STORE, f"into[{SPAN * (SPAN * at + y)}]", f"(int32_t){value}"))
    w("into += 1;")
    w(f"column += {shape.depth};")
    w.bill(2)


def _row(w: Writer, shape: Winograd) -> None:
    """A row of transformed columns into the patch. Added to all of them, the sign keeps their lower halves from
    borrowing of the upper ones."""
    for x in range(0, SPAN, 2):
        w(f"int32_t word{x + 1};")
        w(f"const int32_t word{x} = {DSP.call(w, 'load_two', f'line + {x}', f'&word{x + 1}')};")
    for x, value in enumerate(_line(w, "x", [f"(uint32_t)word{x}" for x in range(SPAN)], " + 0x8000U")):
        w(w.use(STORE, f"patch[{2 * shape.pairs * x}]", f"(int32_t)({value} ^ 0x8000U)"))
        w.bill(1)
    w(f"line += {SPAN};")
    w(f"patch += {2 * shape.pairs * SPAN};")
    w.bill(5)


def _line(w: Writer, name: str, d: list[str], more: str = "") -> list[str]:
    """The transform of six numbers, each with `more`."""
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


def tile(w: Writer, shape: Winograd, number: int) -> None:
    """Back from the 36 sums of a tile of this number to its outputs."""
    w(f"const int32_t *const m = products + channel + {number * WIDTH};")
    w("uint32_t t[24];")
    w.bill(2)
    for x in range(SPAN):
        values = [f"(uint32_t)m[{(SPAN * y + x) * 2 * WIDTH}]" for y in range(SPAN)]
        values[1] += " + (uint32_t)start" if x == 1 else ""
        for y, value in enumerate(_results(w, f"m{x}", values)):
            w(w.use(STORE, f"t[{SPAN * y + x}]", value))
    half = LEFT - 1 if shape.scaling.doubled else 0 if shape.scaling.form else LEFT
    for y in range(SIZE):
        for x, value in enumerate(_results(w, f"t{y}", [f"t[{SPAN * y + x}]" for x in range(SPAN)])):
            name, factor = f"y{y}{x}", NINTH * FACTORS[y] * FACTORS[x] % (1 << 32)
            result = f"(int32_t)({value} * {factor}U)"
            w(f"int32_t {name} = {result}{f' >> {half}' if half else ''};")
            w.bill(2 + bool(half))
            store(w, shape, name, (y, SIZE * number + x))


def _results(w: Writer, name: str, m: list[str]) -> list[str]:
    """The transform of six sums to four outputs."""
    for index, value in enumerate(m):
        w(w.use(LET, f"{name}_{index}", value))
        w.bill(1, 1)
    for part, (first, sign, second) in {"a": (1, "+", 2), "b": (1, "-", 2), "c": (3, "+", 4), "d": (3, "-", 4)}.items():
        w(w.use(LET, f"{name}_{part}", f"{name}_{first} {sign} {name}_{second}"))
    w.bill(RESULT_CYCLES)
    a, b, c, d = (f"{name}_{part}" for part in "abcd")
    return [f"({name}_0 - 4 * {a} + {c})", f"({d} - 2 * {b})", f"({c} - {a})", f"({name}_5 + 2 * {d} - {b})"]

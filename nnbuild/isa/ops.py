"""The table of vector operations: the operations that kernels may request, and the portable meaning of each.

Kinds of values, each a C type of the set and one register large: `floats` and `sums`, a float or an int32_t a lane;
`bytes`, `words` and `halves`, four int8_t or two or one int16_t a lane; `wide`, an int64_t for every two lanes. An
operation may have parameters, numbers known at build time that become part of its name, such as a shift or a number of
lanes. The rows of floats are here, those of integers in `integer_ops`.

A meaning is an expression of lane i, or a function body where it is not lane by lane. LANES stands for the set's number
of lanes. So every kernel of every set compiles and gives the same bits on a processor without the set; only `f_fma` may
differ there in the last bit: it rounds once or twice, depending on the set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

KINDS = {
    "floats": "struct { float at[LANES]; }",
    "sums": "struct { int32_t at[LANES]; }",
    "wide": "struct { int64_t at[LANES / 2]; }",
    "bytes": "struct { int8_t at[LANES * 4]; }",
    "words": "struct { int16_t at[LANES * 2]; }",
    "halves": "struct { int16_t at[LANES]; }",
}
"""The portable C type of each kind."""


class Operation(NamedTuple):
    """The kind of the result, the operands as declared in C, the meaning, the usual cost, the words that it loads."""

    result: str
    operands: str
    meaning: str
    cycles: float = 0.5
    words: float = 0


Family = Callable[..., Operation]
"""An operation for each choice of parameters."""

FMA_CYCLES, LOAD_CYCLES = 0.5, 0.2
EACH = "for (int32_t i = 0; i < LANES; ++i) "
BOTH = "union {{\n    floats f;\n    sums s;\n}} both;\n\nboth.{0} = a;\nreturn both.{1};"
SQUARE_ROOT = """\
floats r;

for (int32_t i = 0; i < LANES; ++i) {
    const double x = a.at[i];
    double root = x > 1.0 ? x : 1.0;

    for (int32_t step = 0; step < 140; ++step) root = 0.5 * (root + x / root);
    r.at[i] = (float)(x > 0.0 && x < 3.5e38 ? root : x >= 0.0 ? x : (x - x) / (x - x));
}
return r;"""
"""Newton's method in double precision, whose error is too small to change the rounding to a float."""


def _floats(meaning: str, cycles: float = 0.5, operands: str = "floats a, floats b") -> Operation:
    return Operation("floats", operands, meaning, cycles)


def _join(depth: int, positions: int, channels: int) -> Operation:
    """The sums of every `depth` lanes of several vectors, one a position: the first `channels` sums of each, position
    by position without gaps. Neighbours are added first."""
    names = "abcd"[:positions]
    lines = ["floats r = a;"]
    for position, name in enumerate(names):
        for width in (2**n for n in range(depth.bit_length() - 1)):
            pair = f"{name}.at[i] = {name}.at[i] + {name}.at[i + {width}];"
            lines.append(f"for (int32_t i = 0; i < LANES; i += {2 * width}) {pair}")
        first = f"{position * channels} + "
        lines.append(f"for (int32_t i = 0; i < {channels}; ++i) r.at[{first}i] = {name}.at[i * {depth}];")
    lines.append("return r;")
    cycles = 1.5 * depth.bit_length() + positions / 2
    return _floats("\n".join(lines), cycles, ", ".join(f"floats {name}" for name in names))


def _across(operation: str, count: int) -> Operation:
    """The sum or maximum of the first `count` lanes, a power of two, in each of them; the others hold other values."""
    combined = {"add": "{0} + {1}", "max": "{0} > {1} ? {0} : {1}", "min": "{0} < {1} ? {0} : {1}"}[operation]
    swapped = combined.format("a.at[i]", "a.at[i ^ by]")
    steps = count.bit_length() - 1
    return _floats(
        f"for (int32_t by = 1; by < {count}; by *= 2) {{\n    floats r;\n    {EACH}r.at[i] = {swapped};\n    a = r;\n}}"
        "\nreturn a;",
        4.0 * steps,
        "floats a",
    )


def _steps(low: int, high: int) -> Operation:
    """The nearest whole numbers, halves away from zero, of numbers held to these bounds; the lower one for a NaN."""
    body = f"""\
sums r;

for (int32_t i = 0; i < LANES; ++i) {{
    const float x = a.at[i] > {low}.0f ? a.at[i] < {high}.0f ? a.at[i] : {high}.0f : {low}.0f;
    const int32_t whole = (int32_t)x;
    const float rest = x - (float)whole;

    r.at[i] = rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}}
return r;"""
    return Operation("sums", "floats a", body, 8.0)


def turn(kind: str, side: int, cycles: float) -> Operation:
    """The rows of a square block become columns; `apart`: from one row to the next."""
    move = f"for (int32_t k = 0; k < {side}; ++k) to[k * to_apart + i] = from[i * from_apart + k];"
    return Operation(
        "void",
        f"{kind} *to, const {kind} *from, int32_t to_apart, int32_t from_apart",
        f"for (int32_t i = 0; i < {side}; ++i) {{\n    {move}\n}}",
        cycles,
    )


FLOAT_BLOCK = 4
"""Rows and columns of a block of floats that is turned."""

FLOATS: dict[str, Operation | Family] = {
    "f_load": _floats("from[i]", LOAD_CYCLES, "const float *from"),
    "f_load_first": lambda count: _floats(f"i < {count} ? from[i] : 0.0f", 0.7, "const float *from"),
    "f_load_repeated": lambda times, count: _floats(
        f"i < {count} ? from[i / {times}] : 0.0f", 0.7, "const float *from"
    ),  # the first lanes, `times` of which are equal
    "f_store": Operation("void", "float *to, floats a", f"{EACH}to[i] = a.at[i];"),
    "f_store_first": lambda count: Operation(
        "void", "float *to, floats a", f"for (int32_t i = 0; i < {count}; ++i) to[i] = a.at[i];", 1.0
    ),
    "f_each": _floats("a", 0.2, "float a"),
    "f_repeat": lambda depth: _floats(f"from[i % {depth}]", 0.2, "const float *from"),
    "f_add": _floats("a.at[i] + b.at[i]"),
    "f_sub": _floats("a.at[i] - b.at[i]"),
    "f_mul": _floats("{prefix}_product(a.at[i], b.at[i])"),
    "f_div": _floats("a.at[i] / b.at[i]", 5.0),
    "f_max": _floats("a.at[i] > b.at[i] ? a.at[i] : b.at[i]"),
    "f_min": _floats("a.at[i] < b.at[i] ? a.at[i] : b.at[i]"),
    "f_sqrt": _floats(SQUARE_ROOT, 7.0, "floats a"),
    "f_fma": _floats("c.at[i] + {prefix}_product(a.at[i], b.at[i])", FMA_CYCLES, "floats a, floats b, floats c"),
    "f_fma_by": _floats("c.at[i] + {prefix}_product(a, b.at[i])", FMA_CYCLES, "float a, floats b, floats c"),
    "f_fma_of": lambda lane: _floats(
        f"c.at[i] + {{prefix}}_product(a.at[{lane}], b.at[i])", FMA_CYCLES, "floats a, floats b, floats c"
    ),
    "f_if_less": _floats(
        "a.at[i] < b.at[i] ? then.at[i] : otherwise.at[i]", 1.0, "floats a, floats b, floats then, floats otherwise"
    ),
    "f_join": _join,
    "f_across": _across,
    "f_bits": Operation("sums", "floats a", BOTH.format("f", "s"), 0.0),
    "f_of_bits": _floats(BOTH.format("s", "f"), 0.0, "sums a"),
    "f_of_sums": _floats("(float)a.at[i]", 0.5, "sums a"),
    "f_steps": _steps,
    "f_settled": _floats("a.at[i]", 0.0, "floats a"),  # later code does not start before
    "f_turn": turn("float", FLOAT_BLOCK, 12.0),
    "fetch": Operation("void", "const void *from", "(void)from;", 0.1),
}

"""An imaginary vector set with four lanes, written as a user would add one.

Some operations are spelled in GNU C, the others use their meanings. It differs from the x86 sets where these agree:
bytes are multiplied as signed numbers, 64-bit numbers belong to halves of a vector, and interleaved taps keep their
order.
"""

from __future__ import annotations

from nnbuild.isa.isa import Isa
from nnbuild.isa.vectors import Vectors

GUARD = "defined(__GNUC__) && !defined(NN_PORTABLE)"

ISA = Isa(name="made_up", summary="four lanes of nothing", features=frozenset({"made_up"}), guard=GUARD)


def _both(element: str, count: int) -> str:
    """Numbers one by one, as in meanings, or all together."""
    return f"union {{ {element} at[{count}]; {element} v __attribute__((vector_size(16))); }}"


def _lanes(kind: str, operation: str) -> str:
    return f"({kind}){{.v = {operation}}}"


VECTORS = Vectors(
    name="made_up",
    guard=GUARD,
    lanes=4,
    registers=16,
    types={
        "floats": _both("float", 4),
        "sums": _both("int32_t", 4),
        "wide": _both("int64_t", 2),
        "words": _both("int16_t", 8),
        "bytes": _both("int8_t", 16),
    },
    repeats=(1, 2, 4),
    depth=4,
    reach=16,
    spellings={
        "f_add": _lanes("floats", "a.v + b.v"),
        "f_sub": _lanes("floats", "a.v - b.v"),
        "f_mul": _lanes("floats", "a.v * b.v"),
        "f_div": _lanes("floats", "a.v / b.v"),
        "f_fma": _lanes("floats", "a.v * b.v + c.v"),
        "f_each": "(floats){{a, a, a, a}}",
        "f_load": "(floats){{from[0], from[1], from[2], from[3]}}",
        "each": "(sums){{a, a, a, a}}",
        "load": "(sums){{from[0], from[1], from[2], from[3]}}",
        "and": _lanes("sums", "a.v & b.v"),
        "xor": _lanes("sums", "a.v ^ b.v"),
        "shift_right": lambda by: _lanes("sums", f"a.v >> {by}"),
        "shift_right_each": _lanes("sums", "a.v >> by.v"),
        "add": "for (int32_t i = 0; i < 4; ++i) a.at[i] = (int32_t)((uint32_t)a.at[i] + (uint32_t)b.at[i]);\nreturn a;",
    },
)

"""The rows of the table of vector operations for bytes, four a lane; `ops` defines rows."""

from __future__ import annotations

from nnbuild.isa.ops import Family, Operation, turn

PART = 6.0
"""Cycles of a load or store by way of an array, as most sets need for fewer than eight bytes or for no power of two."""


def _all(value: str, operands: str, cycles: float = 0.5) -> Operation:
    loop = f"for (int32_t i = 0; i < LANES * 4; ++i) r.at[i] = {value};"
    return Operation("bytes", operands, f"bytes r;\n\n{loop}\nreturn r;", cycles)


def _load(count: int) -> Operation:
    """The first `count` bytes; the others do not count."""
    return _all(f"i < {count} ? from[i] : 0", "const int8_t *from", _price(count))


def _store(count: int) -> Operation:
    loop = f"for (int32_t i = 0; i < {count}; ++i) to[i] = a.at[i];"
    return Operation("void", "int8_t *to, bytes a", loop, _price(count))


def _price(count: int) -> float:
    return 0.5 if count >= 8 and count & (count - 1) == 0 else PART


LOOK_UP = Operation(
    "void",
    "int8_t *to, const int8_t *from, const int8_t *table, int32_t count",
    "for (int32_t i = 0; i < count; ++i) to[i] = table[(uint8_t)from[i]];",
    3.0,
)
"""Its cycles are those of 16 bytes."""

BLOCK = 8
"""Rows and columns of a block that is turned."""

BYTES: dict[str, Operation | Family] = {
    "b_load": _load,
    "b_store": _store,
    "b_each": _all("(int8_t)a", "int32_t a", 0.2),
    "b_max": _all("a.at[i] > b.at[i] ? a.at[i] : b.at[i]", "bytes a, bytes b"),
    "b_min": _all("a.at[i] < b.at[i] ? a.at[i] : b.at[i]", "bytes a, bytes b"),
    "look_up": LOOK_UP,
    "turn": turn("int8_t", BLOCK, 20.0),
}

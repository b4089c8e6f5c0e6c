"""Sums and extremes of a row's contiguous bytes or words in vectors."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.parts.integer_steps import declare

WIDTH = 16
"""Bytes whose products a set sums across its lanes."""


def declare_sums(w: Writer, v: Vectors, size: int, names: tuple[str, ...]) -> None:
    """Declares the sum of `size` bytes from `from` on, and the sum of their `squares`, as named."""
    (_totals if "across" in v.kernels else _lanes)(w, v, size, names)


def declare_word_sums(w: Writer, v: Vectors, size: int, names: tuple[str, ...]) -> None:
    """The same for 16-bit numbers, fewer than 2^15: upper and lower halves of squares are summed apart."""
    parts = [name for name in names if name == "sum"] + ["upper", "lower"] * ("squares" in names)
    for part in parts:
        v.let(w, "sums", f"{part}_each", v.call(w, "each", "0"), "")
    for i, count in in_vectors(w, v.lanes, size, "i", rolled=v):
        v.let(w, "sums", "x", v.kept_sums(w, v.call(w, "widen_words", f"from + {i}", of=(count,)), count))
        values = {"sum": "x"}
        if "squares" in names:
            v.let(w, "sums", "square", v.call(w, "mul", "x", "x"))
            values["upper"] = v.call(w, "shift_right", "square", of=(16,))
            values["lower"] = v.call(w, "and", "square", 65535)
        for part in parts:
            w(f"{part}_each = {v.call(w, 'add', f'{part}_each', values[part])};")
    for part in parts:
        declare(w, part, v.call(w, "sum_across", f"{part}_each"), "const int32_t")
    if "squares" in names:
        declare(w, "squares", "(int64_t)upper * 65536 + lower", "const int64_t")


def _totals(w: Writer, v: Vectors, size: int, names: tuple[str, ...]) -> None:
    whole = size // WIDTH * WIDTH
    for name in names:
        w(w.use(c99.LOAD_AS, "int32_t", name, "0"))
    with w.loop("i", whole, step=WIDTH):
        v.let(w, "bytes", "x", v.call(w, "inputs", "from + i", of=(4,)))
        for name in names:
            by = v.call(w, "b_each", "1") if name == "sum" else "x"
            w(f"{name} = {v.call(w, 'total', name, 'x', by, of=(4,))};")
    with w.loop("i", size, start=whole):
        for name in names:
            w(w.use(c99.MULTIPLY_ADD, name, "from[i]", "1" if name == "sum" else "from[i]"))


def _lanes(w: Writer, v: Vectors, size: int, names: tuple[str, ...]) -> None:
    for name in names:
        v.let(w, "sums", f"{name}_each", v.call(w, "each", "0"), "")
    for i, count in in_vectors(w, v.lanes, size, "i", rolled=v):
        v.let(w, "sums", "x", v.kept_sums(w, v.call(w, "widen", f"from + {i}", of=(count,)), count))
        for name in names:
            value = "x" if name == "sum" else v.call(w, "mul", "x", "x")
            w(f"{name}_each = {v.call(w, 'add', f'{name}_each', value)};")
    for name in names:
        declare(w, name, v.call(w, "sum_across", f"{name}_each"), "const int32_t")


def extreme(w: Writer, v: Vectors, size: int, function: str, kind: str) -> str:
    """The largest or smallest of at least a vector of numbers from `from` on. The last vector repeats some."""
    source, width, widen = "from", 4 * v.lanes, "widen" if kind == "int8" else "widen_words"
    if kind == "int8" and size >= 2 * width:
        v.let(w, "bytes", "most", v.call(w, "b_load", "from", of=(width,)), "")
        for i, count in in_vectors(w, width, size, "i"):
            place = i if count == width else str(size - width)
            values = v.call(w, "b_load", f"from + {place}", of=(width,))
            w(f"most = {v.call(w, f'b_{function}', 'most', values)};")
        w(f"int8_t kept[{width}];")
        w(f"{v.call(w, 'b_store', 'kept', 'most', of=(width,))};")
        source, size = "kept", width
    v.let(w, "sums", "best", v.call(w, widen, source, of=(v.lanes,)), "")
    for i, count in in_vectors(w, v.lanes, size, "i", rolled=v):
        place = i if count == v.lanes else str(size - v.lanes)
        values = v.call(w, widen, f"{source} + {place}", of=(v.lanes,))
        w(f"best = {v.call(w, function, 'best', values)};")
    if function == "max":
        return v.call(w, "max_across", "best")
    flipped = v.call(w, "xor", "best", -1)
    return f"-1 - {v.call(w, 'max_across', flipped)}"

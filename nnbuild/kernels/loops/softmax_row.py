"""The softmax of one row whose values are in registers."""

from __future__ import annotations

from collections.abc import Sequence

from nnbuild.base.writer import Writer
from nnbuild.isa import vector_functions as math
from nnbuild.isa.vectors import Vectors


def emit(w: Writer, floats: Vectors, values: Sequence[str], counts: Sequence[int]) -> None:
    """Replaces the first lanes of the variables by their softmax; all other lanes must hold finite numbers.

    Other lanes become minus infinity for the maximum. Their exponentials are masked afterwards, as underflow is slow.
    """
    used = max(counts)
    seen = list(values)
    for i, count in enumerate(counts):
        if count < floats.lanes:
            seen[i] = f"{values[i]}_seen"
            hidden = floats.call(w, "mask", of=(count, 0, math.MINUS_INFINITY))
            filled = floats.use(w, "add", values[i], floats.call(w, "f_of_bits", hidden))
            floats.declare(w, seen[i], filled)
    floats.declare(w, "largest", floats.across(w, "max", _all(w, floats, "max", seen), used))
    for value, count in zip(values, counts, strict=True):
        power = w.call(math.exp(floats), floats.use(w, "sub", value, "largest"))
        w(f"{value} = {floats.kept(w, power, count) if count < floats.lanes else power};")
    floats.declare(w, "sum", floats.across(w, "add", _all(w, floats, "add", values), used))
    if len(values) == 1:
        w(f"{values[0]} = {floats.use(w, 'div', values[0], 'sum')};")
        return
    floats.declare(w, "share", floats.use(w, "div", 1.0, "sum"))
    for value in values:
        w(f"{value} = {floats.use(w, 'mul', value, 'share')};")


def _all(w: Writer, floats: Vectors, operation: str, values: Sequence[str]) -> str:
    """Reduces the vectors of a row to one, lane by lane."""
    if len(values) == 1:
        return values[0]
    name = f"all_{operation}"
    floats.declare(w, name, floats.use(w, operation, *values[:2]))
    for value in values[2:]:
        w(f"{name} = {floats.use(w, operation, name, value)};")
    return name

"""Sums of many floats: one number added thousands of times would drift from the sum by hundreds of last bits.

Sixteen numbers make a part, sixteen parts a larger one, and so on: nothing is added to more than 16 others in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors

MOST = 128
"""Up to so many numbers are added one after the other."""
PART = 16

Levels = tuple[tuple[str, ...], ...]
"""For each sum its variables: of the part at hand, of the larger part, and so on."""


def declare_parts(w: Writer, sums: list[str], times: int, floats: Vectors | None = None) -> Levels:
    """Declares the larger parts of each of `sums`, to which `times` numbers are added; nothing where these are few."""
    if times <= MOST:
        return ()
    count = next(count for count in range(1, 9) if PART ** (count + 1) >= times)
    levels = tuple((name, *(f"{name}_of_{PART**level}" for level in range(1, count + 1))) for name in sums)
    for _, *larger in levels:
        for name in larger:
            if floats is None:
                w(w.use(c99.LOAD_MUTABLE, name, "0.0f"))
            else:
                floats.declare(w, name, floats.each(w, 0.0))
    return levels


def end_parts(
    w: Writer, levels: Levels, index: str, step: int = 1, floats: Vectors | None = None, level: int = 0
) -> None:
    """At the start of a loop over `index`: adds parts that are complete to larger ones."""
    if levels and level + 1 < len(levels[0]):
        mask = PART ** (level + 1) * step - 1
        with w.block(f"if (({index} & {mask}) == 0)"), w.trips(1 / PART):
            for names in levels:
                _add(w, names[level + 1], names[level], floats)
                w(f"{names[level]} = {'0.0f' if floats is None else floats.each(w, 0.0)};")
            end_parts(w, levels, index, step, floats, level + 1)


def begin_parts(w: Writer, sums: list[str], times: int, floats: Vectors | None = None) -> Levels:
    """`declare_parts` for loops that have no common index: what is added is counted."""
    levels = declare_parts(w, sums, times, floats)
    if levels:
        w("int32_t added = 0;")
    return levels


def count_parts(w: Writer, levels: Levels, floats: Vectors | None = None) -> None:
    """`end_parts` before a number is added in such loops."""
    if levels:
        end_parts(w, levels, "added", floats=floats)
        w("++added;")


def join_parts(w: Writer, levels: Levels, floats: Vectors | None = None) -> None:
    """Behind the loop: the sums become those of all numbers."""
    for name, *larger in levels:
        for part in larger:
            _add(w, name, part, floats)


@contextmanager
def summed(w: Writer, name: str, size: int) -> Iterator[None]:
    """The loop over `i` that adds `size` floats to a variable."""
    w(w.use(c99.LOAD_MUTABLE, name, "0.0f"))
    sums = declare_parts(w, [name], size)
    with w.loop("i", size):
        end_parts(w, sums, "i")
        yield
    join_parts(w, sums)


def _add(w: Writer, name: str, other: str, floats: Vectors | None) -> None:
    w(w.use(c99.ADD, name, other) if floats is None else f"{name} = {floats.use(w, 'add', name, other)};")

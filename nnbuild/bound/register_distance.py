"""Tracks the distance between two unknown registers, which ends a loop such as "from p to p + 64".

For each register with an unknown value, a state may keep a mark: the unique name of an unknown number in the upper
bits, and the amount added to it in the lower 32. Two marks with the same name give the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

MARKED = (*(f"r{number}" for number in range(13)), "lr")
MARKS = tuple(f"{name}_mark" for name in MARKED)
MASK = (1 << 32) - 1
_names = count(1)


def new_mark() -> int:
    """The mark of a number of which nothing is known."""
    return next(_names) << 32


def advanced(mark: str, step: int) -> str:
    """An expression: the mark of a number that is larger by `step`."""
    return f"{mark} & ~{MASK:#x} | ({mark} + {step}) & {MASK:#x}"


def same_distances(marks: Sequence[int | None], others: Sequence[int | None]) -> bool:
    """Whether the marks give the same distances, whatever their names."""
    return _differences(marks) == _differences(others)


def _differences(marks: Sequence[int | None]) -> list[tuple[int, int] | None]:
    first: dict[int, tuple[int, int]] = {}
    found: list[tuple[int, int] | None] = []
    for place, mark in enumerate(marks):
        if mark is None:
            found.append(None)
            continue
        met, base = first.setdefault(mark >> 32, (place, mark))
        found.append((met, mark - base & MASK))
    return found

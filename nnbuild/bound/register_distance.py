"""How far apart two unknown registers are: what ends a loop from an unknown place to that place and 64.

Beside each register whose value is unknown a state may keep a mark: the name of an unknown number, made once and never
again, in the upper bits, and what is added to it in the lower 32. Two marks of one name tell the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

MARKED = (*(f"r{number}" for number in range(13)), "lr")
MARKS = tuple(f"{name}_mark" for name in MARKED)
MASK = (1 << 32) - 1
_names = count(1)


def new_mark() -> int:
    """The mark of a number that nothing is known of."""
    return next(_names) << 32


def advanced(mark: str, step: int) -> str:
    """An expression: the mark of a number that is larger by `step`."""
    return f"{mark} & ~{MASK:#x} | ({mark} + {step}) & {MASK:#x}"


def same_distances(marks: Sequence[int | None], others: Sequence[int | None]) -> bool:
    """Whether the marks tell the same differences, whatever the names."""
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

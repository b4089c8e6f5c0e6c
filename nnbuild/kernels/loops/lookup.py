"""Table look-up of bytes, one at a time."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.model.graph import Array

TOGETHER = 16
"""Elements per iteration of the loop."""
LOOKUP = Row("{0} = {1}[(uint8_t){2}];", 3)
COPY = Row("{0} = {1};", 2)


def table(entries: Array) -> Array:
    """The results of -128 … 127 along the first axis, ordered by these numbers' unsigned values."""
    return np.roll(entries, len(entries) // 2, axis=0)


def lookups(w: Writer, name: str | None, pointers: tuple[str, str, str], count: int, step: int = 1) -> None:
    """Maps elements `step` bytes apart; `pointers` are the variables (from, to, number of elements left).

    Changes all three; `count` is the usual number. Without a table the bytes are only copied.
    """
    source, target, left = pointers

    def element(to: str, value: str) -> None:
        w(w.use(LOOKUP, to, name, value) if name else w.use(COPY, to, value))

    with w.block(f"for (; {left} >= {TOGETHER}; {left} -= {TOGETHER})"), w.trips(count // TOGETHER):
        w.bill(4)
        for i in range(TOGETHER):
            element(f"{target}[{i * step}]", f"{source}[{i * step}]")
        for pointer in (source, target):
            w(f"{pointer} += {TOGETHER * step};")
    with w.block(f"for (; {left} > 0; --{left})"), w.trips(count % TOGETHER):
        w.bill(4)
        element(f"*{target}", f"*{source}")
        for pointer in (source, target):
            w(f"{pointer} += {step};")

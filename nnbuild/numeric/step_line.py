"""Monotonic functions of few integers as (x * factor + start) >> shift, exactly.

A layer without weights computes each output from one 8-bit input, or from a short sum: all cases of its rule can be
enumerated. They are very close to a line, so a search finds a factor and a start that give the same results. All of it
runs at build time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np
from numpy.typing import NDArray

from nnbuild.numeric.requant import Marks, roomiest, slack
from nnbuild.numeric.rounding import INT32, Ints, ints

Reals = NDArray[np.float64]
FINEST = 22
"""Fraction bits; more would find nothing more."""
TRIES = 4
"""Smaller shifts to try."""


@dataclass(frozen=True, eq=False)
class StepLines:
    """A factor and a start for every channel, and common shift and bounds.

    The lower `drop` bits of products are cut off before the start is added. Halves that go away from zero may leave a
    channel without a line: for inputs below its `turn`, its `kink`, 0 in other channels, is subtracted from the start.
    """

    factors: Ints
    starts: Ints
    turns: Ints
    kinks: Ints
    shift: int
    bounds: tuple[int, int]
    drop: int = 0

    def outputs(self, x: Ints) -> Ints:
        """The outputs of inputs whose last axis is that of the channels."""
        starts = self.starts - np.where(x < self.turns, self.kinks, 0)
        found: Ints = np.clip(((x * self.factors >> self.drop) + starts) >> self.shift, *self.bounds)
        return found


def step_lines(
    x: Ints, wanted: Ints, bounds: tuple[int, int], slopes: Reals, zero: int, drop: int = 0
) -> StepLines | None:
    """Lines that give `wanted` [inputs, channels], clamped, for ascending `x`; None where there are none.

    `slopes` are the approximate slopes of each channel. Results below `zero` may round halves the other way.
    """
    steepest = max(float(np.abs(slopes).max()), 2.0**-FINEST)
    reach = float(np.abs(x).max()) * steepest + float(np.abs(wanted).max()) + 1
    most = min(FINEST, 29 - frexp(reach)[1], *([31 - drop - frexp(steepest)[1]] if drop else []))
    for shift in range(most, max(most - TRIES, -1), -1):
        scale = (shift, drop)
        found = [_line(x, wanted[:, c], bounds, float(slopes[c]), zero, scale) for c in range(wanted.shape[1])]
        if all(found):
            factors, starts, turns, kinks = ints([line for line in found if line]).T
            return StepLines(factors, starts, turns, kinks, shift, bounds, drop)
    return None


Line = tuple[int, int, int, int]
"""Factor, start, turn and kink."""
Scale = tuple[int, int]
"""The shift, and the bits dropped before it."""


def _line(x: Ints, wanted: Ints, bounds: tuple[int, int], slope: float, zero: int, scale: Scale) -> Line | None:
    """One channel's constants."""
    if wanted[0] == wanted[-1]:
        return 0, int(wanted[0]) << scale[0], 0, 0
    if slope < 0:
        mirrored = _line(-x[::-1], wanted[::-1], bounds, -slope, zero, scale)
        if mirrored is None:
            return None
        factor, start, turn, kink = mirrored
        return -factor, start - kink, 1 - turn, -kink
    marks = _marks(x, wanted, bounds)
    nearest = max(round(slope * 2.0 ** sum(scale)), 1)
    for factor in (nearest, roomiest(nearest, sum(scale), marks.corners())):
        whole = _start(x, marks, factor, scale)
        if whole is not None:
            return factor, whole, 0, 0
    at = int(np.searchsorted(wanted, zero))
    halves = [_marks(x[part], wanted[part], bounds) for part in (slice(0, at), slice(at, None)) if len(x[part])]
    for factor in (nearest, *(roomiest(nearest, sum(scale), half.corners()) for half in halves)):
        below, above = (_start(x, half, factor, scale) for half in (halves[0], halves[-1]))
        if below is not None and above is not None:
            return factor, above, int(x[at]) if at < len(x) else int(x[-1]) + 1, above - below
    return None


def _start(x: Ints, marks: Marks, factor: int, scale: Scale) -> int | None:
    """The start with which a factor gives the results."""
    shift, drop = scale
    least, most = slack(factor, shift + drop, marks)
    first, last = -(-least >> drop), most >> drop
    reach = (int(np.abs(x).max()) * factor >> drop) + max(abs(first), abs(last)) + 1
    return (first + last) >> 1 if first <= last and max(reach, factor) <= INT32[1] else None


def _marks(x: Ints, wanted: Ints, bounds: tuple[int, int]) -> Marks:
    """The steps of the results; at both ends they are exact too, unless clamping ensures that."""
    grows = np.flatnonzero(np.diff(wanted))
    first = [0] if wanted[0] > bounds[0] else []
    last = [len(x) - 1] if wanted[-1] < bounds[1] else []
    reached, short = ints([*(grows + 1), *first]), ints([*grows, *last])
    return Marks(x[reached], wanted[reached], x[short], wanted[short] + 1)

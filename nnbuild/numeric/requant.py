"""Requantization: how the accumulators of a layer become its outputs, channel by channel, with proofs.

The reference has three rules: `twice` (8-bit convolutions: rounded at the high multiply and again at the shift), `once`
(dense layers: the float64 product, rounded once) and `wide` (16-bit convolutions: a multiplier of 16 bits, rounded
once). Instruction sets compute other *forms*: a 64-bit product, an addition and a shift (`requant_line`), or the high
word of a product, an addition and a shift (`requant_product`). Every rule and every form is a step function that never
decreases. Two of them are equal on a range of accumulators when they agree on both sides of every step; so a form may
have other constants than the rule where the rule's own do not fit. A channel with one output for its whole range needs
no multiplication. Where no constants exist, `general` is always exact.

The domain is that of the importers: 8-bit weights without a zero point, positive scales, sums of 8-bit inputs below
2**31 and, times the scale, below 2**30; sums of 16-bit inputs below 2**46, for which only `general` serves if they are
larger once scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.real_scale import IntegerScale, apply_real_scale, floating_scale, integer_scale
from nnbuild.numeric.rounding import Ints, ints, reduced_multiplier, requantize, requantize64, saturate

N = TypeVar("N")
RuleName = Literal["twice", "once", "wide"]
NEAR = 2
"""The distance from the quotient within which a step is searched first."""


_COLLECTED: ContextVar[list[tuple[Layer, Any]] | None] = ContextVar("heard", default=None)


@contextmanager
def collected() -> Iterator[list[tuple[Layer, Any]]]:
    """Collects all constants found in the meantime, with their layers, as evidence."""
    found: list[tuple[Layer, Any]] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def recorded(layer: Layer, numbers: N) -> N:
    """Records constants that serve every channel of a layer."""
    listener = _COLLECTED.get()
    if listener is not None:
        listener.append((layer, numbers))
    return numbers


class Line(NamedTuple):
    """(acc * multiplier + addend - (kink if acc < 0)) >> shift, the output's zero point included."""

    multiplier: int
    addend: int
    shift: int
    kink: int = 0


class Marks(NamedTuple):
    """Accumulators whose outputs must be at least some values, and others whose outputs must be below some values."""

    reached: Ints
    least: Ints
    short: Ints
    most: Ints

    def around(self, centre: int) -> Marks:
        return self._replace(reached=self.reached - centre, short=self.short - centre)

    def corners(self) -> Marks:
        """The few marks that decide whether a line steps where it should."""
        short, most = _corners(-self.short, -self.most)
        return Marks(*_corners(self.reached, self.least), -short, -most)

    def hold(self, outputs: Callable[[Ints], Ints]) -> bool:
        """Whether a function that never decreases gives the same outputs, once clamped."""
        return bool((outputs(self.reached) >= self.least).all() and (outputs(self.short) < self.most).all())


def _corners(at: Ints, least: Ints) -> tuple[Ints, Ints]:
    """The corners of the hull above these points: they include any largest `least * a - at * b` with a and b above
    0."""
    order = np.lexsort((least, at))
    at, least, kept = at[order], least[order], np.zeros(1, bool)
    last = np.append(at[1:] > at[:-1], True)[: len(at)]  # of equal ones
    at, least = at[last], least[last]
    while len(at) > 2 and not kept.all():
        up, along = least[1:] - least[:-1], at[1:] - at[:-1]
        kept = np.concatenate([[True], up[:-1] * along[1:] > up[1:] * along[:-1], [True]])
        at, least = at[kept], least[kept]
    return at, least


@dataclass(frozen=True)
class Channel:
    """One channel's rule and accumulator range, which includes the bias."""

    rule: RuleName
    real: float
    zero: int
    bounds: tuple[int, int]
    low: int
    high: int

    @cached_property
    def scale(self) -> Multiplier:
        return quantize_multiplier(self.real)

    def outputs(self, acc: ArrayLike) -> Ints:
        """The reference, clamped."""
        if self.rule == "once":
            scaled = apply_real_scale(acc, self.real)
        else:
            scaled = (requantize if self.rule == "twice" else requantize64)(acc, *self.scale)
        return saturate(scaled + self.zero, *self.bounds)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest output."""
        low, high = self.outputs([self.low, self.high]).tolist()
        return low, high

    @property
    def constant(self) -> bool:
        """Whether every accumulator gives the same output: the scale is too small, or nothing varies."""
        return self.ends[0] == self.ends[1]

    @property
    def wraps(self) -> bool:
        """Whether results may leave 32 bits, of which the rule keeps the low ones: then it does decrease."""
        return max(-self.low, self.high) * self.real >= 1 << 30

    @property
    def signed(self) -> bool:
        """Whether halves rounded away from zero show in outputs below the zero point."""
        return self.rule == "twice" and self.bounds[0] < self.zero

    @cached_property
    def steps(self) -> tuple[Ints, Ints]:
        """For each output above the smallest: the smallest accumulator that gives at least that output."""
        values = np.arange(self.ends[0] + 1, self.ends[1] + 1, dtype=np.int64)
        guess = np.clip((values - self.zero - 0.5) / self.real, self.low, self.high).astype(np.int64)
        low, high = np.maximum(guess - NEAR, self.low), np.minimum(guess + NEAR, self.high)
        low = np.where(self.outputs(low) < values, low, self.low)
        high = np.where(self.outputs(high) >= values, high, self.high)
        while (high - low > 1).any():
            middle = (low + high) >> 1
            reached = self.outputs(middle) >= values
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high, values

    @cached_property
    def marks(self) -> Marks:
        """The marks that any form must meet: each step, and the outputs at both ends unless clamping ensures them."""
        steps, values = self.steps
        first = [self.ends[0]] if self.ends[0] > self.bounds[0] else []
        last = [self.ends[1] + 1] if self.ends[1] < self.bounds[1] else []
        return Marks(
            np.append(steps, ints([self.low] * len(first))),
            np.append(values, ints(first)),
            np.append(steps - 1, ints([self.high] * len(last))),
            np.append(values, ints(last)),
        )

    @cached_property
    def corners(self) -> Marks:
        return self.marks.corners()

    @cached_property
    def line(self) -> Line | None:
        """The rule itself as a line; None for floating-point products."""
        if self.rule == "once":
            return None
        multiplier, shift = self.scale
        if self.rule == "wide":
            right = 15 - shift
            return Line(int(reduced_multiplier(multiplier)), ((2 * self.zero + 1) << right) >> 1, right)
        right = max(-shift, 0)
        half = 1 << (30 + right) if right else 0
        addend = (1 << 30) + half + (self.zero << (31 + right))
        return Line(multiplier << max(shift, 0), addend, 31 + right, 1 << 31 if right and self.signed else 0)


@dataclass(frozen=True, eq=False)
class General:
    """The vendored function that computes the rule itself, and its arguments for every channel besides the sum."""

    function: str
    constants: Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Layer:
    """All channels of a layer: their real scales and accumulator ranges."""

    rule: RuleName
    reals: NDArray[np.float64]
    zero: int
    bounds: tuple[int, int]
    low: Ints
    high: Ints

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(
            Channel(self.rule, float(real), self.zero, self.bounds, int(low), int(high))
            for real, low, high in zip(self.reals, self.low, self.high, strict=True)
        )

    @property
    def signed(self) -> bool:
        return self.rule == "twice" and self.bounds[0] < self.zero

    def general(self, limits: tuple[int, int]) -> General:
        """`limits` are those of the output's type."""
        return recorded(self, self._general(limits))

    def _general(self, limits: tuple[int, int]) -> General:
        if self.rule == "once":
            outs = (limits[0] - self.zero - 1, limits[1] - self.zero + 1)
            found = [integer_scale(channel.real, (channel.low, channel.high), outs) for channel in self.channels]
            if any(scale.floating for scale in found):
                return General("scale_float", _columns([floating_scale(real) for real in self.reals.tolist()]))
            away = {"away": np.array([scale.away for scale in found], np.int8)}
            return General("scale_once", _columns(found) | away)
        multiplier = ints([channel.scale.multiplier for channel in self.channels])
        wide = self.rule == "wide"
        return General(
            "requantize64" if wide else "requantize",
            {
                "multiplier": (reduced_multiplier(multiplier) if wide else multiplier).astype(np.int32),
                "shift": np.array([channel.scale.shift for channel in self.channels], np.int8),
            },
        )


def _columns(scales: list[IntegerScale]) -> dict[str, NDArray[np.generic]]:
    multiplier, shift = ints([(scale.multiplier, scale.shift) for scale in scales]).T
    return {"multiplier": multiplier, "shift": shift.astype(np.int8)}


def slack(multiplier: int, shift: int, marks: Marks, kink: int = 0) -> tuple[int, int]:
    """The addends with which (acc * multiplier + addend - (kink if acc < 0)) >> shift steps where it should.

    They are a range, empty if the first number exceeds the second.
    """
    farthest = max(int(np.abs(part).max(initial=0)) for part in (marks.reached, marks.short))
    largest = max(int(np.abs(part).max(initial=0)) for part in (marks.least, marks.most))
    kind = np.int64 if max(farthest * multiplier + kink, largest << shift) < 1 << 62 else object
    at, least, short, most = (part.astype(kind) for part in marks)
    lowest = least * (1 << shift) - at * multiplier + kink * (marks.reached < 0)
    highest = most * (1 << shift) - short * multiplier + kink * (marks.short < 0)
    return int(lowest.max()), int(highest.min()) - 1


def roomiest(nearest: int, shift: int, marks: Marks, unit: int = 1) -> int:
    """The multiplier near this one that, times `unit`, leaves the widest range of addends: a concave function of it,
    which the corners of the marks decide."""
    low, high = max(nearest - nearest // 2, 1), min(2 * nearest + 2, (1 << 31) - 1)

    def pairs(at: Ints, value: Ints) -> list[tuple[int, int]]:
        return [(unit * x, y << shift) for x, y in zip(at.tolist(), value.tolist(), strict=True)]

    lowest, highest = pairs(marks.reached, marks.least), pairs(marks.short, marks.most)

    @cache
    def room(multiplier: int) -> int:
        """The width of `slack`, in Python integers: few marks are evaluated very often."""
        return min([y - multiplier * x for x, y in highest]) - max([y - multiplier * x for x, y in lowest]) - 1

    while high - low > 2:
        third = (high - low) // 3
        if room(low + third) < room(high - third):
            low += third
        else:
            high -= third
    return max(range(low, high + 1), key=room)

"""TFLite's own two roundings by one instruction each, for sets that have both, or as two rounded high products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.requant import Channel, Layer
from nnbuild.numeric.rounding import INT32, Ints, ints, saturate


@dataclass(frozen=True, eq=False)
class Twice:
    """((sum << left) * multiplier as a doubled high product, rounded) >> shift, rounded, plus the zero point.

    away: whether halves below zero go away from it; not needed where the outputs' bounds hide that.
    """

    constants: Mapping[str, NDArray[np.int32]]
    zero: int
    away: bool


def twice(layer: Layer) -> Twice | None:
    """None for other rules, or where sums may leave 32 bits."""
    if layer.rule != "twice" or any(channel.wraps for channel in layer.channels):
        return None
    multiplier, exponent = ints([channel.scale for channel in layer.channels]).T
    right, left = np.maximum(-exponent, 0), np.maximum(exponent, 0)
    found = {"multiplier": multiplier, "shift": right}
    if left.any():
        found["left"] = left
    if layer.signed and not right.all():
        found["away"] = -(right > 0).astype(np.int64)
    return Twice({name: values.astype(np.int32) for name, values in found.items()}, layer.zero, layer.signed)


@dataclass(frozen=True)
class Highs:
    """high(high(sum * first + sum) * second + zero); each product and the summand of its high word are rounded.

    The first is TFLite's doubled product without the doubling: `first` is twice its multiplier less 2**32, and adding
    the sum compensates. The second is its shift: `second` is 2**(32 - shift) + 1, where the 1 takes halves below zero
    away from it and changes nothing else.
    """

    first: int
    second: int
    zero: int
    bounds: tuple[int, int]

    def outputs(self, acc: ArrayLike) -> Ints:
        high = _high(ints(acc), self.first, ints(acc))
        return saturate(_high(high, self.second, ints(self.zero)), *self.bounds)


def _high(value: Ints, factor: int, added: Ints) -> Ints:
    return added + ((value * factor + (1 << 31)) >> 32)


def highs(channel: Channel) -> Highs | None:
    """None for other rules, or shifts that are too small or too large for this form."""
    if channel.rule != "twice" or channel.wraps:
        return None
    multiplier, exponent = channel.scale
    second, farthest = (1 << (32 + exponent)) + 1 if exponent > -31 else 0, max(-channel.low, channel.high)
    if second > INT32[1] or farthest >= second - 1:
        return None
    return Highs(2 * multiplier - (1 << 32), second, channel.zero, channel.bounds)

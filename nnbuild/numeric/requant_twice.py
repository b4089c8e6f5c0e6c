"""TFLite's own two roundings, each by an instruction: of sets that have both, and as two rounded high products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.requant import Channel, Layer
from nnbuild.numeric.rounding import INT32, Ints, ints, saturate


@dataclass(frozen=True, eq=False)
class Twice:
    """((sum << left) * multiplier as a doubled high product, rounded) >> shift, rounded, and the zero point added.

    away: whether halves below zero must go away from it; they need not where the outputs' bounds hide that.
    """

    constants: Mapping[str, NDArray[np.int32]]
    zero: int
    away: bool


def twice(layer: Layer) -> Twice | None:
    """None where the rule is another one, or sums may leave 32 bits."""
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
    """high(high(sum * first + sum) * second + zero), each product and what is added to its high word rounded.

    The first is TFLite's doubled product without the doubling: `first` is twice its multiplier less 2**32, and the sum
    itself makes up for that. The second is its shift: `second` is 2**(32 - shift) and 1 more, which takes halves below
    zero away from it, and changes nothing else.
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
    """None where the rule is another one, or its shift is too small or too large for this form."""
    if channel.rule != "twice" or channel.wraps:
        return None
    multiplier, exponent = channel.scale
    second, farthest = (1 << (32 + exponent)) + 1 if exponent > -31 else 0, max(-channel.low, channel.high)
    if second > INT32[1] or farthest >= second - 1:
        return None
    return Highs(2 * multiplier - (1 << 32), second, channel.zero, channel.bounds)

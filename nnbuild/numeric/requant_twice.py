"""The form of sets that have TFLite's two roundings as instructions: its own numbers, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnbuild.numeric.requant import Layer
from nnbuild.numeric.rounding import ints


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

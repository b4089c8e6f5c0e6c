"""How the sums of one operation become its outputs, in the form in which vectors compute it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.kernels.sums import layer_of
from nnbuild.kernels.window import Weighted
from nnbuild.model.graph import Array
from nnbuild.numeric.requant_line import HIGH, lines
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Rule:
    """For every output channel: output = (sum * multiplier + addend) >> shift, the zero point included.

    Sums start less their centre. left: how far the sums are shifted left before, and whether negative ones lose one
    (`away`, -1 or 0) after; none where halves may go up.
    """

    centre: Ints
    multiplier: Array
    addend: Array
    shift: Array
    left: Array | None = None
    away: Array | None = None


def rule_of(site: Site[Weighted]) -> Rule | str:
    """The rule, or why none serves; the shifts come without the 32 that reading the upper half is worth."""
    if site.inputs[0].dtype == "int16" and quant_of(site.inputs[0]).zero_point != 0:
        return "its 16-bit inputs have a zero point"
    found = lines(layer_of(site))
    if found is None:
        return "its sums times a channel's scale may need more than 64 bits"
    multiplier, shift, left, away = (
        found.of(name).astype(np.int32) for name in ("multiplier", "shift", "left", "away")
    )
    shifted = (left, away) if found.shifted else (None, None)
    return Rule(found.of("centre"), multiplier, found.of("addend"), shift - HIGH, *shifted)

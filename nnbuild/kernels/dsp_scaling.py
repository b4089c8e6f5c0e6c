"""From a 32-bit sum to an 8-bit output in four or five instructions of a Cortex-M4, with the exact double rounding.

The weights come multiplied by two, so a sum arrives doubled and the doubling high multiply is one SMMLAR, which also
adds what the rounding shift and the zero point add. That shift rounds halves away from zero: a negative number needs
one less, which matters only where the output may lie below its zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbuild.isa import c99
from nnbuild.isa.armv7em_dsp_bytes import SMMLAR, SSAT8
from nnbuild.numeric.rounding import INT8, INT32, Ints
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.integer import bounds, quant_of, requantization
from nnbuild.ops.site import Site
from nnbuild.writer import Row, Writer

ADD_SIGN = Row("{0} + ({1} >> 31)", 1)
ADD_MASKED_SIGN = Row("{0} + ({1} & ({2} >> 31))", 2)
ADD = Row("{0} + {1}", 1)
SHIFT = Row("{0} >> {1}", 1)
STORE = Row("{0} = (int8_t){1};", 1)
LARGEST_SHIFT = 23
"""Beyond it a zero point does not fit 32 bits when it is shifted."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """How sums become outputs.

    factors: what each channel's weights and bias are multiplied by.
    columns: what each channel's epilogue is told, in the order of `names`.
    """

    factors: Ints
    names: tuple[str, ...]
    columns: tuple[Ints, ...]
    bounds: tuple[int, int]


def scaling(site: Site, reach: Ints) -> Scaling | str:
    """How a convolution's sums, whose absolute values are at most `reach`, are scaled; or why they cannot be."""
    attributes, out = site.op.attributes, site.outputs[0]
    assert isinstance(attributes, Convolution)
    limits, zero = bounds(attributes.clamp, out), quant_of(out).zero_point
    scale = requantization(site, site.output_shape()[-1])
    left, right = np.maximum(scale.shift, 0), np.maximum(-scale.shift, 0)
    high = reach << left
    if (2 * high > INT32[1]).any():
        return "its sums, doubled, may leave 32 bits"
    dead = (scale.multiplier == 0) | (right > 0) & (high < 1 << np.maximum(right - 1, 0))
    if (right[~dead] > LARGEST_SHIFT).any():
        return f"an output is shifted by more than {LARGEST_SHIFT} bits"
    right = np.where(dead, 1, right)
    multiplier = np.where(dead, 0, scale.multiplier)
    half = np.where(right > 0, 1 << np.maximum(right - 1, 0), 0)
    offset = half + (zero << right)
    if (high + np.abs(offset) + 1 > INT32[1]).any():
        return "its sums may leave 32 bits when the zero point is added"
    columns, names = [multiplier, offset, right], ["multiplier", "offset", "shift"]
    if limits[0] < zero and ((right == 0) | (multiplier == 1 << 30)).any():
        columns.append(np.where(right > 0, -1, 0))
        names.append("mask")
    elif limits[0] < zero:
        names[1] = "signed_offset"
    return Scaling(2 << left, tuple(names), tuple(columns), limits)


def store(w: Writer, scaling: Scaling, sums: str, columns: Sequence[str], target: str) -> None:
    """Scales the variable `sums` and writes it. `columns` are the C names of the channel's numbers."""
    multiplier, offset, shift, *mask = columns
    if mask:
        high = w.call(SMMLAR, sums, multiplier, "0")
        w(f"{sums} = {high};")
        masked = w.use(ADD_MASKED_SIGN, offset, mask[0], sums)
        w(f"{sums} = {w.use(ADD, sums, masked)};")
    else:
        begin = w.use(ADD_SIGN, offset, sums) if "signed_offset" in scaling.names else offset
        w(f"{sums} = {w.call(SMMLAR, sums, multiplier, begin)};")
    value = w.call(SSAT8, w.use(SHIFT, sums, shift))
    if scaling.bounds == INT8:
        w(w.use(STORE, target, value))
        return
    w(f"{sums} = {value};")
    low, high_bound = scaling.bounds
    if low > INT8[0]:
        w(w.use(c99.AT_LEAST, sums, str(low)))
    if high_bound < INT8[1]:
        w(w.use(c99.AT_MOST, sums, str(high_bound)))
    w(w.use(STORE, target, sums))

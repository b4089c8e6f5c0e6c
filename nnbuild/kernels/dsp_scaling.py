"""From a 32-bit sum to an 8-bit output in three to five instructions of a Cortex-M4, with the exact double rounding.

The rule rounds twice: h = floor(x + 1/2) with x = sum * multiplier / 2**31, then floor((h + half) / 2**right). The
inner floor changes nothing, so the result is floor((x + 1/2 + half) / 2**right): one product and one shift. With the
weights of a channel multiplied by 2**raise the product's high word is x * 2**(raise - 1), and every constant is whole
from a raise of 2 on. Channels of different shifts are raised differently, so that all end with one shift, which costs
nothing as part of the saturation.

The rule's second rounding goes away from zero: below it one less than half is added. That matters only where outputs
may lie below their zero point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.armv7em_dsp import DSP
from nnbuild.numeric.rounding import INT8, INT16, INT32, Ints
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.integer import bounds, quant_of, requantization
from nnbuild.ops.site import Site

LESS_BELOW_ZERO = Row("{0} - ({1} & ({2} >> 31))", 2)
SHIFT = Row("{0} >> {1}", 1)
STORE = Row("{0} = (int8_t){1};", 1)
LARGEST_SHIFT = 22
"""Beyond it a zero point does not fit 32 bits when it is shifted."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """How sums become outputs.

    factors: what each channel's weights and bias are multiplied by.
    columns: what each channel's epilogue is told, by name.
    shift: the last step of every channel, or None where each has its own among the columns.
    """

    factors: Ints
    columns: dict[str, Ints]
    shift: int | None
    bounds: tuple[int, int]


def scaling(site: Site[Convolution], reach: Ints, largest: Ints) -> Scaling | str:
    """How a convolution's sums are scaled, or why they cannot be.

    `reach` is what each channel's sums stay within, `largest` its largest weight.
    """
    attributes, out = site.attributes, site.outputs[0]
    scale = requantization(site, site.output_shape()[-1])
    limits = bounds(attributes.clamp, out)
    return scaled(scale.multiplier, scale.shift, reach, largest, quant_of(out).zero_point, limits)


def scaled(
    multiplier: Ints,
    shift: Ints,
    reach: Ints,
    largest: Ints,
    zero: int,
    limits: tuple[int, int],
    apart: bool = False,
) -> Scaling | str:
    """The same for given multipliers and shifts, one for each channel. `apart`: a common shift is not looked for."""
    dead = (multiplier == 0) | ((shift < 0) & (reach < _power(-shift - 1)))
    right = np.where(dead, 0, -shift)
    if right.max() >= LARGEST_SHIFT:
        return f"an output is shifted by more than {LARGEST_SHIFT} bits"
    common = np.full_like(right, max(int(right[~dead].max(initial=0)), 0) + 1)
    for last in [common] * (not apart) + [np.maximum(right, 0) + 1]:
        raised = np.where(dead, 0, 1 + last - right)
        if (largest << raised <= INT16[1]).all() and (reach << raised <= INT32[1] // 2).all():
            return _columns(np.where(dead, 0, multiplier), right, dead, last, zero, limits)
    return "its weights or sums, raised to a common scale, do not fit"


def _power(exponent: Ints) -> Ints:
    """2 ** exponent, of which a negative one counts as 0."""
    result: Ints = np.int64(1) << np.clip(exponent, 0, 62)
    return result


def _columns(multiplier: Ints, right: Ints, dead: Ints, shift: Ints, zero: int, limits: tuple[int, int]) -> Scaling:
    raised = np.where(dead, 0, 1 + shift - right)
    unit = shift - np.maximum(right, 0)  # h is counted in units of 2**unit
    half = np.where(dead | (right > 0), _power(shift - 1), 0)
    offset = np.where(dead, 0, _power(unit - 1)) + half + (zero << shift)
    columns = {"multiplier": multiplier, "offset": offset}
    if limits[0] < zero:
        columns["below"] = np.where(dead | (right <= 0), 0, _power(unit))
    uniform = bool((shift == shift[0]).all())
    if not uniform:
        columns["shift"] = shift
    return Scaling(_power(raised), columns, int(shift[0]) if uniform else None, limits)


def store(w: Writer, scaling: Scaling, sums: str, target: str) -> None:
    """Scales the variable `sums` and writes it. The channel's columns are variables of their names."""
    offset = w.use(LESS_BELOW_ZERO, "offset", "below", sums) if "below" in scaling.columns else "offset"
    w(f"{sums} = {DSP.call(w, 'high_add', sums, 'multiplier', offset)};")
    if scaling.shift is None:
        value = DSP.call(w, "saturate", w.use(SHIFT, sums, "shift"), of=(8,))
    else:
        value = DSP.call(w, "saturate", sums, of=(8, scaling.shift))
    if scaling.bounds == INT8:
        w(w.use(STORE, target, value))
        return
    w(f"{sums} = {value};")
    low, high = scaling.bounds
    if low > INT8[0]:
        w(w.use(c99.AT_LEAST, sums, str(low)))
    if high < INT8[1]:
        w(w.use(c99.AT_MOST, sums, str(high)))
    w(w.use(STORE, target, sums))

"""The steps of an integer layer normalization that are done once a row: mean, variance and reciprocal deviation; and
the constants that make an output of a normalized value by one product.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.parts.integer_steps import declare, zero
from nnbuild.model.graph import Array
from nnbuild.numeric.layer_norm import POINT, SUMMAND_SHIFT, UNIT, LayerNormScales
from nnbuild.numeric.rounding import Ints, int32s, ints
from nnbuild.ops.integer import quant_of
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site

HIGH, MOST_RIGHT = 32, 54
"""A shift that takes just the upper word, and the largest shift before which a zero point can be added."""


def sizes(site: Site[LayerNorm]) -> tuple[int, int]:
    """(number of vectors, length of each)."""
    count, shape = site.attributes.count, site.shape()
    return prod(shape[:-count]), prod(shape[-count:])


def starts_and_factors(site: Site[LayerNorm]) -> tuple[Ints, Ints]:
    """An output is the start plus the normalized value times the factor, shifted to the right. The start includes half
    a unit and, where it fits, the zero point."""
    _, size = sizes(site)
    multiplier, right = site.attributes.scales(site).output
    factor = ints(site.constant("scale")).reshape(-1) if "scale" in site.constants else np.full(size, UNIT, np.int64)
    summand = ints(site.constant("shift")).reshape(-1) if "shift" in site.constants else np.zeros(size, np.int64)
    start = (summand << SUMMAND_SHIFT) * multiplier + (1 << (right - 1))
    if right <= MOST_RIGHT:
        start = start + (quant_of(site.outputs[0]).zero_point << right)
    return start, factor * multiplier


def constants(site: Site[LayerNorm]) -> Array:
    """[value][lower word of the start, upper word, factor]."""
    start, factor = starts_and_factors(site)
    return int32s(np.stack([start, start >> 32, factor], axis=1).reshape(-1))


def known_mean(site: Site[LayerNorm]) -> int | None:
    """The mean with its fraction bits, where it is not computed."""
    return None if site.attributes.centred else zero(site.inputs[0]) << site.attributes.scales(site).fraction


def mean_and_root(w: Writer, site: Site[LayerNorm], size: int) -> None:
    """Declares the mean and the reciprocal deviation, from the sums of values and of their squares."""
    scales = site.attributes.scales(site)
    mean(w, site, size, scales)
    variance(w, size, scales, known_mean(site))
    root(w, size, scales)


def mean(w: Writer, site: Site[LayerNorm], size: int, scales: LayerNormScales) -> None:
    """The mean of a `sum` with fraction bits; it includes the zero point, so raw values may be subtracted from it."""
    origin = zero(site.inputs[0])
    if not site.attributes.centred:
        declare(w, "mean", str(origin << scales.fraction))
        return
    bits = 8 * np.dtype(site.inputs[0].dtype).itemsize
    narrow = size << (bits + 1 + scales.fraction) < 1 << 31
    kind = "int32_t" if narrow else "int64_t"
    declare(w, "apart", f"(({kind})sum + {-size * origin}) * {1 << scales.fraction}", f"const {kind}")
    w.bill(10)
    divide = _short_quotient if narrow else _quotient
    above, below = (divide(w, f"{size // 2} {sign} apart", size) for sign in "+-")
    declare(w, "mean", f"(int32_t)(apart > 0 ? {above} : -{below}) + {origin << scales.fraction}")


def _quotient(w: Writer, value: str, size: int) -> str:
    """A 64-bit value, which is not negative, divided by a size. Compilers would call a library function."""
    if size & (size - 1) == 0:
        return f"(({value}) >> {size.bit_length() - 1})"
    return w.helper("divide_long", value, str(size), _inverse(size))


def _short_quotient(w: Writer, value: str, size: int) -> str:
    """The same of 32 bits."""
    if size & (size - 1) == 0:
        return f"(({value}) >> {size.bit_length() - 1})"
    return f"(int32_t){w.helper('divide_short', f'(uint32_t)({value})', str(size), _inverse(size))}"


def _inverse(size: int) -> str:
    return f"{(1 << 32) // size}u"


def root(w: Writer, size: int, scales: LayerNormScales) -> None:
    """The reciprocal deviation `root` / 2^`right`, such that a product with it has 16 fraction bits."""
    w(f"variance = {_quotient(w, 'variance', size)} + INT64_C({scales.epsilon});")
    w("int32_t right;")
    w.bill(150)
    declare(w, "pairs", f"(33 - {w.helper('leading_zeros', '(uint32_t)(variance >> 31)')}) / 2")
    w("variance >>= 2 * pairs;")
    declare(w, "root", w.helper("inverse_square_root", "(int32_t)variance", "&right"), "const int64_t")
    w(f"right += {31 - POINT} + pairs;")


def variance(w: Writer, size: int, scales: LayerNormScales, mean: int | None) -> None:
    """Declares the sum of squared distances from the mean, which may be known, with its fraction bits."""
    fraction = scales.fraction
    terms = f"squares * (INT64_C(1) << {2 * fraction})"
    if mean is None:
        terms += f" - (int64_t)sum * mean * {1 << (fraction + 1)} + (int64_t)mean * mean * {size}"
    elif mean:
        terms += f" - sum * INT64_C({mean << (fraction + 1)}) + INT64_C({mean * mean * size})"
    declare(w, "variance", terms, "int64_t")
    w.bill(12)

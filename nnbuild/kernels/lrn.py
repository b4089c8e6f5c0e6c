"""Local response normalization across channels."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES, float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_integer
from nnbuild.kernels.integers import centred, declare, finish, zero
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.numeric.lrn import INDEX, MANTISSA, TOP, LrnScales
from nnbuild.numeric.rounding import limits
from nnbuild.ops.lrn import LRN
from nnbuild.ops.site import Site


def _demand(site: Site[LRN]) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]))


def _neighbours(w: Writer, site: Site[LRN], names: Names, squares: tuple[str, str]) -> Iterator[bool]:
    """Prints the loops over channel `c` of each place with `squares`, a C type and its zero, declared.

    Yields True within the loop over the neighbours `i` of a channel, then False behind it.
    """
    channels, radius = site.shape()[-1], site.attributes.radius
    with w.loop("place", "end", start="begin", trips=prod(site.shape()[:-1])):
        w(f"const {C_TYPES[site.inputs[0].dtype]} *from = {names.inputs[0]} + {product('place', channels)};")
        w(f"{C_TYPES[site.outputs[0].dtype]} *to = {names.outputs[0]} + {product('place', channels)};")
        with w.loop("c", channels):
            w(f"const int32_t first = c > {radius} ? c - {radius} : 0;")
            w(f"const int32_t last = c + {radius} < {channels - 1} ? c + {radius} : {channels - 1};")
            declare(w, "squares", squares[1], squares[0])
            with w.loop("i", "last + 1", start="first", trips=min(2 * radius + 1, channels)):
                yield True
            yield False


def _emit(w: Writer, site: Site[LRN], names: Names) -> None:
    attributes = site.attributes
    base = f"{float_literal(attributes.bias)} + {c99.product(w, float_literal(attributes.alpha), 'squares')}"
    for within in _neighbours(w, site, names, ("float", "0.0f")):
        if within:
            c99.multiply_add(w, "squares", "from[i]", "from[i]")
        else:
            w(w.use(c99.STORE, "to[c]", f"from[c] / {_power(w, base, attributes.beta)}"))


def _power(w: Writer, base: str, exponent: float) -> str:
    """The exponents in use are cheaper, and more exact, without a general power."""
    if exponent == 1.0:
        return f"({base})"
    if exponent == 0.5:
        return w.helper("sqrtf", base)
    if exponent == 0.75:
        w(f"const float root = {w.helper('sqrtf', base)};")
        return c99.product(w, "root", w.helper("sqrtf", "root"))
    return w.helper("powf", base, float_literal(exponent))


def _accepts_integers(site: Site[LRN]) -> str | None:
    if site.attributes.bias < 0 or site.attributes.alpha < 0:
        return "in integers its bias and alpha must not be negative"
    return only_integer(site)


def _demand_integers(site: Site[LRN]) -> Demand:
    scales = site.attributes.scales(site)
    packed: dict[str, Array] = {
        "powers": scales.powers.astype(np.int32),
        "multiplier": scales.multiplier.astype(np.int16),
        "right": scales.right.astype(np.int8),
    }
    return Demand(extent=prod(site.shape()[:-1]), packed=packed)


def _emit_integers(w: Writer, site: Site[LRN], names: Names) -> None:
    """The steps of `numeric.lrn`."""
    x, out, scales = site.inputs[0], site.outputs[0], site.attributes.scales(site)
    for within in _neighbours(w, site, names, ("int64_t", "0")):
        if within:
            declare(w, "near", added("from[i]", -zero(x)), "const int64_t")
            w(w.use(c99.MULTIPLY_ADD, "squares", "near", "near"))
        else:
            _integer_power(w, scales, names.packed["powers"])
            centred(w, "x", "from[c]", zero(x))
            of = [f"{names.packed[name]}[{added('top', -scales.first)}]" for name in ("multiplier", "right")]
            finish(w, "to[c]", w.helper("scale_wide", "(int64_t)x * power", *of), out, limits(out.dtype))


def _integer_power(w: Writer, scales: LrnScales, powers: str) -> None:
    """The total's highest bit as `top`, and the power of its mantissa."""
    total = f"squares * INT64_C({scales.factor}) + INT64_C({scales.base})"
    declare(w, "total", total if scales.base else f"squares > 0 ? {total} : 1", "const int64_t")
    declare(w, "upper", "(uint32_t)(total >> 31)", "const uint32_t")
    high = f"62 - {w.helper('leading_zeros', 'upper')}"
    declare(w, "top", f"upper > 0 ? {high} : 31 - {w.helper('leading_zeros', '(uint32_t)total')}")
    below = MANTISSA - INDEX
    declare(w, "mantissa", f"(int32_t)((total << ({TOP} - top)) >> {TOP - MANTISSA})")
    declare(w, "entry", f"{powers} + ((mantissa >> {below}) & {(1 << INDEX) - 1})", "const int32_t *")
    w.bill(8)
    fall = f"((int64_t)(entry[0] - entry[1]) * (mantissa & {(1 << below) - 1})) >> {below}"
    declare(w, "power", f"entry[0] - (int32_t)({fall})")


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, _accepts_integers, _demand_integers, _emit_integers),
)

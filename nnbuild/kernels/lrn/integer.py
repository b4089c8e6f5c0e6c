"""Local response normalization across channels in integers: the steps of `numeric.lrn`."""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import centred, declare, finish, zero
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.numeric.lrn import INDEX, MANTISSA, TOP, LrnScales
from nnbuild.numeric.rounding import limits
from nnbuild.ops.lrn import LRN
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()


def accepts(site: Site[LRN]) -> str | None:
    attributes = site.attributes
    if attributes.bias < 0 or attributes.alpha < 0:
        return "in integers its bias and alpha must not be negative"
    return only_integer(site)


def demand(site: Site[LRN]) -> Demand:
    scales = site.attributes.scales(site)
    packed: dict[str, Array] = {
        "powers": scales.powers.astype(np.int32),
        "multiplier": scales.multiplier.astype(np.int16),
        "right": scales.right.astype(np.int8),
    }
    return Demand(extent=prod(site.shape()[:-1]), packed=packed)


def emit(w: Writer, site: Site[LRN], names: Names) -> None:
    attributes, x, out = site.attributes, site.inputs[0], site.outputs[0]
    scales = attributes.scales(site)
    places, channels, radius = prod(site.shape()[:-1]), site.shape()[-1], attributes.radius
    with w.loop("place", "end", start="begin", trips=places):
        w(f"const {C_TYPES[x.dtype]} *from = {names.inputs[0]} + {product('place', channels)};")
        w(f"{C_TYPES[out.dtype]} *to = {names.outputs[0]} + {product('place', channels)};")
        with w.loop("c", channels):
            w(f"const int32_t first = c > {radius} ? c - {radius} : 0;")
            w(f"const int32_t last = c + {radius} < {channels - 1} ? c + {radius} : {channels - 1};")
            declare(w, "squares", "0", "int64_t")
            with w.loop("i", "last + 1", start="first", trips=min(2 * radius + 1, channels)):
                declare(w, "near", added("from[i]", -zero(x)), "const int64_t")
                w(w.use(c99.MULTIPLY_ADD, "squares", "near", "near"))
            _power(w, scales, names.packed["powers"])
            centred(w, "x", "from[c]", zero(x))
            of = [f"{names.packed[name]}[{added('top', -scales.first)}]" for name in ("multiplier", "right")]
            finish(w, "to[c]", w.helper("scale_wide", "(int64_t)x * power", *of), out, limits(out.dtype))


def _power(w: Writer, scales: LrnScales, powers: str) -> None:
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

"""Local response normalization across channels."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_any_floats, only_float, only_integer
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import centred, declare, finish, zero
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.lrn import INDEX, MANTISSA, TOP, LrnScales
from nnbuild.numeric.rounding import INT32, limits
from nnbuild.ops.lrn import LRN
from nnbuild.ops.site import Site

TOGETHER = 16
"""Neighbours up to which their addition is unrolled."""


def _places(w: Writer, site: Site[LRN], names: Names) -> AbstractContextManager[None]:
    """The loop over the positions before the channels, with pointers to these."""
    return each_run(w, site, names, prod(site.shape()[:-1]), site.shape()[-1], index="place")


@dataclass(frozen=True)
class _Floats:
    """Writes the squares of a position's channels between zeros, and adds the neighbours of each lane."""

    floats: Vectors

    def accepts(self, site: Site[LRN]) -> str | None:
        channels, beta = site.shape()[-1], site.attributes.beta
        if channels < self.floats.lanes:
            return "its channels do not fill a vector"
        if self.floats.lanes > 1 and beta not in ROOTS:
            return f"a power of {beta} takes no square roots"
        return only_float(site)

    def demand(self, site: Site[LRN]) -> Demand:
        squares = site.shape()[-1] + 2 * site.attributes.radius
        return Demand(extent=prod(site.shape()[:-1]), scratch=4 * squares, overlaps=IN_PLACE)

    def emit(self, w: Writer, site: Site[LRN], names: Names) -> None:
        v, channels, attributes = self.floats, site.shape()[-1], site.attributes
        radius, squares = attributes.radius, names.scratch
        with w.loop("i", radius):
            w(w.use(c99.STORE, f"{squares}[i]", "0.0f"))
            w(w.use(c99.STORE, f"{squares}[{channels + radius} + i]", "0.0f"))
        with _places(w, site, names):
            for c, count in in_vectors(w, v.lanes, channels):
                v.declare(w, "x", v.load(w, f"from + {c}", count))
                v.store(w, f"{squares} + {c} + {radius}", v.use(w, "mul", "x", "x"), count)
            for c, count in in_vectors(w, v.lanes, channels):
                self._around(w, f"{squares} + {c}", 2 * radius, count)
                scaled = v.use(w, "mul", attributes.alpha, "sum")
                v.declare(w, "base", v.use(w, "add", attributes.bias, scaled))
                power = self._power(w, attributes.beta)
                v.store(w, f"to + {c}", v.use(w, "div", v.load(w, f"from + {c}", count), power), count)

    def _around(self, w: Writer, first: str, more: int, count: int) -> None:
        """The sum of the values at `first` and at the `more` places behind it."""
        v = self.floats
        v.declare(w, "sum", v.load(w, first, count))
        if more > TOGETHER:
            with w.loop("near", more + 1, start=1):
                w(f"sum = {v.use(w, 'add', 'sum', v.load(w, f'{first} + near', count))};")
        else:
            for near in range(1, more + 1):
                w(f"sum = {v.use(w, 'add', 'sum', v.load(w, f'{first} + {near}', count))};")

    def _power(self, w: Writer, exponent: float) -> str:
        """A power of the base; usual exponents are cheaper and more accurate without a general power."""
        v = self.floats
        if exponent not in ROOTS:
            return w.helper("powf", "base", float_literal(exponent))
        if exponent == 1.0:
            return "base"
        v.declare(w, "root", v.use(w, "sqrt", "base"))
        return v.use(w, "mul", "root", v.use(w, "sqrt", "root")) if exponent == 0.75 else "root"


ROOTS = (1.0, 0.5, 0.75)
"""Exponents that square roots compute."""


def _accepts_integers(site: Site[LRN]) -> str | None:
    if site.attributes.bias < 0 or site.attributes.alpha < 0:
        return "in integers its bias and alpha must not be negative"
    return only_integer(site)


def _demand_integers(site: Site[LRN]) -> Demand:
    scales = site.attributes.scales(site)
    packed: dict[str, Array] = {"powers": scales.powers.astype(np.int32)}
    if len(scales.right) > 1:
        packed |= {"multiplier": scales.multiplier.astype(np.int16), "right": scales.right.astype(np.int8)}
    return Demand(extent=prod(site.shape()[:-1]), packed=packed)


def _emit_integers(w: Writer, site: Site[LRN], names: Names) -> None:
    """The steps of `numeric.lrn`; from channel to channel a square comes in, and another one leaves."""
    x, out, scales = site.inputs[0], site.outputs[0], site.attributes.scales(site)
    channels, radius = site.shape()[-1], min(site.attributes.radius, site.shape()[-1])
    wide = site.attributes.largest_squares(site) > INT32[1]

    def square(name: str, change: str, place: str) -> None:
        declare(w, name, f"from[{place}] - {zero(x)}")
        w.bill(2)
        w(f"squares {change} {'(int64_t)' if wide else ''}{name} * {name};")

    with _places(w, site, names):
        w(f"{'int64_t' if wide else 'int32_t'} squares = 0;")
        with w.loop("c", radius):
            square("first", "+=", "c")
        with w.loop("c", channels):
            with w.block(f"if (c < {channels - radius})"):
                square("next", "+=", f"c + {radius}")
            _integer_power(w, scales, names.packed["powers"])
            centred(w, "x", "from[c]", zero(x))
            of = [str(numbers[0]) for numbers in (scales.multiplier, scales.right)]
            if len(scales.right) > 1:
                of = [f"{names.packed[name]}[top - {scales.first}]" for name in ("multiplier", "right")]
            finish(w, "to[c]", w.helper("scale_wide", "(int64_t)x * power", *of), out, limits(out.dtype))
            with w.block(f"if (c >= {radius})"):
                square("last", "-=", f"c - {radius}")


def _integer_power(w: Writer, scales: LrnScales, powers: str) -> None:
    """Declares the total's highest bit as `top`, which may be that of all totals, and the power of its mantissa."""
    total = f"squares * INT64_C({scales.factor}) + INT64_C({scales.base})"
    declare(w, "total", total if scales.base else f"squares > 0 ? {total} : 1", "const int64_t")
    if len(scales.right) == 1:
        w(f"const int32_t top = {scales.first};")
    else:
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
    *on_any_floats(_Floats),
    Kernel("integer", PORTABLE, _accepts_integers, _demand_integers, _emit_integers),
)

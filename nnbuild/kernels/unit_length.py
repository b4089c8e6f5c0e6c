"""L2 normalization: the sum of squares, then every value times its reciprocal root."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_int8
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import centred, declare, finish, zero
from nnbuild.kernels.parts.long_sums import summed
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.numeric.rounding import limits
from nnbuild.numeric.unit_length import LARGEST, POINT
from nnbuild.ops.site import Site
from nnbuild.ops.unit_length import TINY, UnitLength


def _demand(site: Site[UnitLength]) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]), overlaps=IN_PLACE)


def _emit(w: Writer, site: Site[UnitLength], names: Names) -> None:
    size = site.shape()[-1]
    with each_run(w, site, names, prod(site.shape()[:-1]), size):
        with summed(w, "squares", size):
            c99.multiply_add(w, "squares", "from[i]", "from[i]")
        least = float_literal(TINY)
        root = w.helper("sqrtf", f"squares > {least} ? squares : {least}")
        w(w.use(c99.LOAD, "share", f"1.0f / {root}"))
        with w.loop("i", size):
            w(w.use(c99.STORE, "to[i]", c99.product(w, "from[i]", "share")))


def _accepts_integers(site: Site[UnitLength]) -> str | None:
    size = site.shape()[-1]
    return only_int8(site) or (
        None if size <= LARGEST else f"a 32-bit sum holds the squares of {LARGEST} values, not of {size}"
    )


def _emit_integers(w: Writer, site: Site[UnitLength], names: Names) -> None:
    x, out, size = site.inputs[0], site.outputs[0], site.shape()[-1]
    with each_run(w, site, names, prod(site.shape()[:-1]), size):
        declare(w, "squares", "0", "int32_t")
        with w.loop("i", size):
            centred(w, "x", "from[i]", zero(x))
            w(w.use(c99.MULTIPLY_ADD, "squares", "x", "x"))
        w("int32_t right;")
        w.bill(60)
        declare(w, "root", w.helper("inverse_square_root", "squares", "&right"), "const int64_t")
        # The products' upper words alone are shifted: values first, by the left part of the shift.
        w(f"right += {31 - POINT - 32};")
        declare(w, "lead", "right < 0 ? (int32_t)1 << -right : 1")
        declare(w, "rest", "right < 0 ? 0 : right")
        declare(w, "half", "(int64_t)1 << (31 + rest)", "const int64_t")
        with w.loop("i", size):
            centred(w, "x", "from[i]", zero(x))
            w.bill(5)
            declare(w, "upper", "(int32_t)((x * lead * root + half) >> 32)")
            finish(w, "to[i]", "(upper >> rest)", out, limits(out.dtype))


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, _accepts_integers, _demand, _emit_integers),
)

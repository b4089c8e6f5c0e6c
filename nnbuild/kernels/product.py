"""Products along the first axis, one factor after the other."""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_integer
from nnbuild.kernels.parts.integer_steps import centred, declare, store, zero
from nnbuild.numeric.product import product_multiplier
from nnbuild.numeric.rounding import limits, reduced_multiplier
from nnbuild.ops.integer import quant_of
from nnbuild.ops.product import Product
from nnbuild.ops.site import Site


def _demand(site: Site[Product]) -> Demand:
    return Demand(extent=prod(site.shape()[1:]))


def _emit(w: Writer, site: Site[Product], names: Names) -> None:
    count, size = site.shape()[0], prod(site.shape()[1:])
    with w.loop("i", "end", start="begin", trips=size):
        w(w.use(c99.LOAD_MUTABLE, "product", f"{names.inputs[0]}[i]"))
        with w.loop("k", count, start=1):
            w(f"product *= {names.inputs[0]}[k * {size} + i];")
            w.bill(2, floats=1)
        w(w.use(c99.STORE, f"{names.outputs[0]}[i]", "product"))


def _emit_integers(w: Writer, site: Site[Product], names: Names) -> None:
    x, out, (count, *rest) = site.inputs[0], site.outputs[0], site.shape()
    size, (low, high) = prod(rest), limits(out.dtype)
    multiplier, shift = product_multiplier(quant_of(x).scale, quant_of(out).scale, count)
    scale = str(int(reduced_multiplier(multiplier))), str(shift)
    with w.loop("i", "end", start="begin", trips=size):
        declare(w, "product", f"{names.inputs[0]}[i] - {zero(x)}", "int32_t")
        with w.loop("k", count, start=1):
            centred(w, "x", f"{names.inputs[0]}[k * {size} + i]", zero(x))
            w(w.use(c99.STORE, "product", w.helper("requantize64", "(int64_t)product * x", *scale)))
        w(w.use(c99.STORE, "product", w.helper("requantize64", "product", *scale)))
        c99.bound(w, (low - zero(out), high - zero(out)), "product")
        store(w, f"{names.outputs[0]}[i]", f"(product + {zero(out)})", out)


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
)

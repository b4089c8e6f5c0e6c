"""PReLU: a slope of its own for whatever is negative."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels import channel_tables
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_integer
from nnbuild.kernels.integers import centred, finish, requantized
from nnbuild.kernels.loops.strided import Loops, Walk, broadcast, contiguous, loops
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.numeric.elementwise import prelu
from nnbuild.numeric.rounding import Ints, ints, limits, saturate
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site


def _loops(site: Site[PReLU]) -> Loops:
    shape = site.shape()
    return loops(shape, Walk(contiguous(shape)), Walk(broadcast(site.constant("slope").shape, shape)))


def _demand(site: Site[PReLU]) -> Demand:
    packed = {"slope": site.constant("slope").reshape(-1)}
    return Demand(extent=_loops(site).extent, packed=packed, overlaps=IN_PLACE)


def _emit(w: Writer, site: Site[PReLU], names: Names) -> None:
    def element(at: list[str]) -> None:
        w(w.use(c99.LOAD, "x", f"{names.inputs[0]}[{at[0]}]"))
        w.bill(5)
        below = c99.product(w, "x", f"{names.packed['slope']}[{at[1]}]")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", f"x >= 0.0f ? x : {below}"))

    _loops(site).nest(w, element)


def _emit_integers(w: Writer, site: Site[PReLU], names: Names) -> None:
    out, scales, zeros = site.outputs[0], site.attributes.scales(site), site.attributes.zeros(site)

    def element(at: list[str]) -> None:
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zeros[0])
        slope = added(f"{names.packed['slope']}[{at[1]}]", -zeros[1])
        below = requantized(w, f"x * ({slope})" if " " in slope else f"x * {slope}", scales.negative)
        w.bill(5)
        value = f"(x >= 0 ? {requantized(w, 'x', scales.positive)} : {below})"
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, limits(out.dtype))

    _loops(site).nest(w, element)


def _results(site: Site[PReLU], x: Ints) -> Ints:
    slopes = ints(site.constant("slope")).reshape(-1)
    values = prelu(x[:, None], slopes, site.attributes.zeros(site), site.attributes.scales(site))
    return saturate(values, *limits("int8"))


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    channel_tables.kernel(_results, _loops),
)

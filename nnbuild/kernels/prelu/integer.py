"""PReLU in integers."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import centred, finish, requantized
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.strided import Walk, broadcast, contiguous, extent, nest
from nnbuild.numeric.rounding import limits
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def _walks(site: Site[PReLU]) -> list[Walk]:
    return [Walk(contiguous(site.shape())), Walk(broadcast(site.constant("slope").shape, site.shape()))]


def demand(site: Site[PReLU]) -> Demand:
    packed = {"slope": site.constant("slope").reshape(-1)}
    return Demand(extent=extent(site.shape(), _walks(site)), packed=packed, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[PReLU], names: Names) -> None:
    attributes, out = site.attributes, site.outputs[0]
    scales, zeros = attributes.scales(site), attributes.zeros(site)

    def element(at: list[str]) -> None:
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zeros[0])
        slope = added(f"{names.packed['slope']}[{at[1]}]", -zeros[1])
        below = requantized(w, f"x * ({slope})" if " " in slope else f"x * {slope}", scales.negative)
        w.bill(5)
        value = f"(x >= 0 ? {requantized(w, 'x', scales.positive)} : {below})"
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, limits(out.dtype))

    nest(w, site.shape(), _walks(site), element)

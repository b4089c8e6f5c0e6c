"""PReLU in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.strided import Walk, broadcast, contiguous, extent, nest
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def _walks(site: Site[PReLU]) -> list[Walk]:
    return [Walk(contiguous(site.shape())), Walk(broadcast(site.constant("slope").shape, site.shape()))]


def demand(site: Site[PReLU]) -> Demand:
    packed = {"slope": site.constant("slope").reshape(-1)}
    return Demand(extent=extent(site.shape(), _walks(site)), packed=packed, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[PReLU], names: Names) -> None:
    def element(at: list[str]) -> None:
        w(w.use(c99.LOAD, "x", f"{names.inputs[0]}[{at[0]}]"))
        below = c99.product(w, "x", f"{names.packed['slope']}[{at[1]}]")
        w.bill(5)
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", f"x >= 0.0f ? x : {below}"))

    nest(w, site.shape(), _walks(site), element)

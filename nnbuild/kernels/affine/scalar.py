"""A factor and a summand a channel, in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.strided import Walk, contiguous, extent, nest
from nnbuild.ops.affine import Affine
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def axis_walks(site: Site[Affine]) -> list[Walk]:
    axis, rank = site.attributes.axis, len(site.shape())
    return [Walk(contiguous(site.shape())), Walk(tuple(int(i == axis) for i in range(rank)))]


def demand(site: Site[Affine]) -> Demand:
    packed = {role: site.constant(role) for role in ("scale", "shift")}
    return Demand(extent=extent(site.shape(), axis_walks(site)), packed=packed, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[Affine], names: Names) -> None:
    def element(at: list[str]) -> None:
        scale, shift = f"{names.packed['scale']}[{at[1]}]", f"{names.packed['shift']}[{at[1]}]"
        scaled = c99.product(w, f"{names.inputs[0]}[{at[0]}]", scale)
        w(w.use(c99.LOAD_MUTABLE, "value", f"{scaled} + {shift}"))
        w.bill(4)
        c99.clamp(w, site.attributes.clamp, "value")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "value"))

    nest(w, site.shape(), axis_walks(site), element)

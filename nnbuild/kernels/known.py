"""Copies a constant to a tensor."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.ops.known import Known
from nnbuild.ops.site import Site


def _accepts(site: Site[Known]) -> str | None:
    kind = site.constant("values").dtype.name
    return None if kind == site.outputs[0].dtype else f"its values are {kind}"


def _demand(site: Site[Known]) -> Demand:
    return Demand(extent=site.constant("values").size, packed={"values": site.constant("values").reshape(-1)})


def _emit(w: Writer, site: Site[Known], names: Names) -> None:
    with w.loop("i", "end", start="begin", trips=site.constant("values").size):
        w.bill(c99.LOAD.cycles)
        w(w.use(c99.STORE, f"{names.outputs[0]}[i]", f"{names.packed['values']}[i]"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

"""A window of rows that moves on in its place, or to another: each index of the axes before the rows is a work item.

Where it writes lies before where it reads, so that going upwards nothing is lost.
"""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, any_format
from nnbuild.kernels.window_loops import product, total
from nnbuild.ops.base import around
from nnbuild.ops.shift import Shift
from nnbuild.ops.site import Site


def _demand(site: Site[Shift]) -> Demand:
    return Demand(extent=around(site.output_shape(), site.attributes.axis)[0])


def _emit(w: Writer, site: Site[Shift], names: Names) -> None:
    axis, (rows, new), (out,) = site.attributes.axis, names.inputs, names.outputs
    before, size, after = around(site.output_shape(), axis)
    whole, fresh = size * after, site.shape(1)[axis] * after
    with w.loop("row", "end", start="begin", trips=before):
        if whole > fresh:
            with w.loop("i", whole - fresh):
                at = total(product("row", whole), "i")
                w.bill(c99.LOAD.cycles)
                w(w.use(c99.STORE, f"{out}[{at}]", f"{rows}[{total(at, str(fresh))}]"))
        with w.loop("i", fresh):
            w.bill(c99.LOAD.cycles)
            to = total(product("row", whole), str(whole - fresh), "i")
            w(w.use(c99.STORE, f"{out}[{to}]", f"{new}[{total(product('row', fresh), 'i')}]"))


VARIANTS = (Kernel("scalar", PORTABLE, any_format, _demand, _emit),)

"""A window of rows that moves on in its place, or to another: each index of the axes before the rows is a work item.

Where it writes lies before where it reads, so that going upwards nothing is lost.
"""

from __future__ import annotations

import numpy as np

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
    """Within one array, so that compilers see a move of memory, which their libraries do by words."""
    axis, (rows, new), (out,) = site.attributes.axis, names.inputs, names.outputs
    before, size, after = around(site.output_shape(), axis)
    whole, fresh = size * after, site.shape(1)[axis] * after
    word = c99.LOAD.cycles + c99.STORE.cycles
    with w.block(f"if ({out} != {rows})"), w.trips(0), w.loop("i", f"end * {whole}", start=f"begin * {whole}", trips=1):
        w(w.use(c99.STORE, f"{out}[i]", f"{rows}[i]"))
    for to, source, start, count in ((f"{out}", out, fresh, whole - fresh), (out, new, 0, fresh)):
        if not count:
            continue
        with w.loop("row", "end", start="begin", trips=before):
            shift = whole - fresh if source == new else 0
            w.bill(word * count * np.dtype(site.outputs[0].dtype).itemsize / 4)
            with w.loop("i", count), w.trips(0):
                at = total(product("row", whole), str(shift), "i")
                taken = total(product("row", fresh if source == new else whole), str(start), "i")
                w(w.use(c99.STORE, f"{to}[{at}]", f"{source}[{taken}]"))


VARIANTS = (Kernel("scalar", PORTABLE, any_format, _demand, _emit),)

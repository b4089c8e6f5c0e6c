"""Tensors joined along an axis, in portable C; each index of the axes before it is one piece of the work."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.window_loops import product, total
from nnbuild.ops.base import around
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[Concatenate]) -> Demand:
    return Demand(extent=around(site.output_shape(), site.attributes.axis)[0])


def emit(w: Writer, site: Site[Concatenate], names: Names) -> None:
    attributes = site.attributes
    before, joined, after = around(site.output_shape(), attributes.axis)
    with w.loop("row", "end", start="begin", trips=before):
        at = 0
        for index, name in enumerate(names.inputs):
            run = site.shape(index)[attributes.axis] * after
            with w.loop("i", run):
                w(w.use(c99.LOAD_MUTABLE, "value", f"{name}[{total(product('row', run), 'i')}]"))
                c99.clamp(w, attributes.clamp, "value")
                place = total(product("row", joined * after), str(at), "i")
                w(w.use(c99.STORE, f"{names.outputs[0]}[{place}]", "value"))
            at += run

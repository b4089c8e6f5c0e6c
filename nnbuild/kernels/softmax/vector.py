"""Softmax over values that lie side by side, in vectors of floats, which stay in registers where they are few."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import vector_softmax
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops.dot import offset
from nnbuild.kernels.softmax import scalar
from nnbuild.kernels.window_loops import product
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

MOST = 64
"""Vectors of one row that are printed one by one."""


def _variant(floats: Vectors) -> Variant:
    def accepts(site: Site[Softmax]) -> str | None:
        _, size, after = scalar.sizes(site)
        if after > 1:
            return "its values do not lie side by side"
        return only_float(site) or (f"its rows are longer than {MOST} vectors" if size > MOST * floats.lanes else None)

    def demand(site: Site[Softmax]) -> Demand:
        return scalar.demand(site)

    def emit(w: Writer, site: Site[Softmax], names: Names) -> None:
        before, size, _ = scalar.sizes(site)
        with w.loop("row", "end", start="begin", trips=before):
            w(f"const float *from = {names.inputs[0]} + {product('row', size)};")
            w(f"float *to = {names.outputs[0]} + {product('row', size)};")
            _row(w, floats, size)

    return Variant(floats.name, frozenset({floats.name}), accepts, demand, emit)


def _row(w: Writer, floats: Vectors, size: int) -> None:
    counts = [min(floats.lanes, size - at) for at in range(0, size, floats.lanes)]
    values = [f"x{i}" for i in range(len(counts))]
    for i, count in enumerate(counts):
        floats.declare(w, f"x{i}", floats.load(w, offset("from", i * floats.lanes), count))
    vector_softmax.row(w, floats, values, counts)
    for i, count in enumerate(counts):
        floats.store(w, offset("to", i * floats.lanes), f"x{i}", count)


VARIANTS = tuple(_variant(floats) for floats in SETS)

"""Softmax over values that lie side by side, in vectors of floats, which stay in registers where they are few."""

from __future__ import annotations

from nnbuild.isa import vector_functions as math
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.softmax import scalar
from nnbuild.kernels.window_loops import product
from nnbuild.ops.site import Site
from nnbuild.writer import Writer

MOST = 64
"""Vectors of one row that are printed one by one."""


def _variant(floats: Vectors) -> Variant:
    def accepts(site: Site) -> str | None:
        _, size, after = scalar.sizes(site)
        if after > 1:
            return "its values do not lie side by side"
        return only_float(site) or (f"its rows are longer than {MOST} vectors" if size > MOST * floats.lanes else None)

    def demand(site: Site) -> Demand:
        return scalar.demand(site)

    def emit(w: Writer, site: Site, names: Names) -> None:
        before, size, _ = scalar.sizes(site)
        with w.loop("row", "end", start="begin", trips=before):
            w(f"const float *from = {names.inputs[0]} + {product('row', size)};")
            w(f"float *to = {names.outputs[0]} + {product('row', size)};")
            _row(w, floats, size)

    return Variant(floats.name, frozenset({floats.name}), accepts, demand, emit)


def _row(w: Writer, floats: Vectors, size: int) -> None:
    """Lanes beyond the end hold minus infinity, whose power is zero."""
    vectors = -(-size // floats.lanes)
    counts = [min(floats.lanes, size - i * floats.lanes) for i in range(vectors)]
    for i, count in enumerate(counts):
        value = floats.load(w, f"from + {i * floats.lanes}" if i else "from", count)
        if count < floats.lanes:
            value = floats.use(w, "add", value, math.filled(floats, "-infinity", count))
        floats.declare(w, f"x{i}", value)
    floats.declare(w, "largest", w.call(math.across(floats, "max"), _all(w, floats, "max", vectors)))
    for i in range(vectors):
        w(f"x{i} = {w.call(math.exp(floats), floats.use(w, 'sub', f'x{i}', 'largest'))};")
    floats.declare(w, "sum", w.call(math.across(floats, "add"), _all(w, floats, "add", vectors)))
    floats.declare(w, "share", floats.use(w, "div", f"{floats.prefix}_set1_ps(1.0f)", "sum"))
    for i, count in enumerate(counts):
        value = floats.use(w, "mul", f"x{i}", "share")
        floats.store(w, f"to + {i * floats.lanes}" if i else "to", value, count)


def _all(w: Writer, floats: Vectors, operation: str, vectors: int) -> str:
    """The vectors of a row, lane by lane in one."""
    if vectors == 1:
        return "x0"
    name = f"all_{operation}"
    floats.declare(w, name, floats.use(w, operation, "x0", "x1"))
    for i in range(2, vectors):
        w(f"{name} = {floats.use(w, operation, name, f'x{i}')};")
    return name


VARIANTS = tuple(_variant(floats) for floats in SETS)

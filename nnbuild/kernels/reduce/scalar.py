"""Mean, sum, maximum and minimum over neighbouring axes, in portable C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.window_loops import product
from nnbuild.ops.base import around
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float

ROWS = {"mean": c99.ADD, "sum": c99.ADD, "max": c99.LARGER, "min": c99.SMALLER}


def demand(site: Site[Reduce]) -> Demand:
    attributes = site.attributes
    before, _, after = around(site.shape(), attributes.axis, attributes.count)
    return Demand(extent=before if before > 1 else after)


def emit(w: Writer, site: Site[Reduce], names: Names) -> None:
    attributes = site.attributes
    _, size, after = around(site.shape(), attributes.axis, attributes.count)
    with places(w, site):
        _one(w, names, attributes.function, size, after)


@contextmanager
def places(w: Writer, site: Site[Reduce]) -> Iterator[None]:
    """Loops over the outputs as `row` and `column`, the outer one over the range asked for."""
    attributes = site.attributes
    before, _, after = around(site.shape(), attributes.axis, attributes.count)
    if before > 1:
        with w.loop("row", "end", start="begin", trips=before), w.loop("column", after):
            yield
    else:
        with w.loop("column", "end", start="begin", trips=after):
            w("const int32_t row = 0;")
            yield


def _one(w: Writer, names: Names, function: str, size: int, after: int) -> None:
    w(f"const float *from = {names.inputs[0]} + {product('row', size * after)} + column;")
    w(w.use(c99.LOAD_MUTABLE, "result", "from[0]"))
    with w.loop("i", size, start=1):
        w(w.use(ROWS[function], "result", f"from[{product('i', after)}]"))
    value = f"result / {size}.0f" if function == "mean" else "result"
    w(w.use(c99.STORE, f"{names.outputs[0]}[{product('row', after)} + column]", value))

"""Softmax in portable C, with the maximum taken off first so that no power overflows."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, Overlap, only_float
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.window_loops import product
from nnbuild.ops.base import around
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

needs: frozenset[str] = frozenset()
accepts = only_float


def sizes(site: Site[Softmax]) -> tuple[int, int, int]:
    attributes = site.attributes
    return around(site.shape(), attributes.axis, attributes.count)


def demand(site: Site[Softmax]) -> Demand:
    return Demand(extent=sizes(site)[0], overlaps=overlaps(site))


def overlaps(site: Site[Softmax]) -> tuple[Overlap, ...]:
    """Where the values of one softmax do not lie together, an output before its input would run over others' inputs."""
    return IN_PLACE if sizes(site)[2] == 1 else ()


def emit(w: Writer, site: Site[Softmax], names: Names) -> None:
    before, size, after = sizes(site)
    with w.loop("row", "end", start="begin", trips=before), w.loop("column", after):
        start = f"{product('row', size * after)} + column"
        w(f"const float *from = {names.inputs[0]} + {start};")
        w(f"float *to = {names.outputs[0]} + {start};")
        place = product("i", after)
        w(w.use(c99.LOAD_MUTABLE, "largest", "from[0]"))
        with w.loop("i", size, start=1):
            w(w.use(c99.LARGER, "largest", f"from[{place}]"))
        w(w.use(c99.LOAD_MUTABLE, "sum", "0.0f"))
        with w.loop("i", size):
            w(w.use(c99.LOAD, "power", w.helper("expf", f"from[{place}] - largest")))
            w(w.use(c99.STORE, f"to[{place}]", "power"))
            w(w.use(c99.ADD, "sum", "power"))
        w(w.use(c99.LOAD, "share", "1.0f / sum"))
        with w.loop("i", size):
            w(w.use(c99.STORE, f"to[{place}]", c99.product(w, f"to[{place}]", "share")))

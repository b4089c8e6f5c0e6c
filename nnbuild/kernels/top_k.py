"""The largest values of a row, each found as the largest of those that rank behind the previous one."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.loops.window_loops import product
from nnbuild.ops.site import Site
from nnbuild.ops.top_k import TopK


def _accepts(site: Site[TopK]) -> str | None:
    values, places = site.outputs
    if places.dtype != "int32":
        return "its indices are not int32"
    return None if values.dtype == site.inputs[0].dtype else "its values have another type than its input"


def _demand(site: Site[TopK]) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]))


def _emit(w: Writer, site: Site[TopK], names: Names) -> None:
    """Keeps no list of those taken: a later one is smaller, or equal with a higher index."""
    *before, size = site.shape()
    count, kind = site.attributes.count, C_TYPES[site.inputs[0].dtype]
    with w.loop("i", "end", start="begin", trips=prod(before)):
        w(f"const {kind} *from = {names.inputs[0]} + {product('i', size)};")
        w(w.use(c99.LOAD_AS, kind, "last", "from[0]"))
        w("int32_t last_at = -1;")
        with w.loop("k", count):
            w(f"{kind} best = from[0];")
            w("int32_t found = -1;")
            with w.loop("j", size):
                w.bill(c99.LARGER.cycles + 3)
                w(w.use(c99.LOAD_AS, f"const {kind}", "x", "from[j]"))
                behind = "k == 0 || x < last || (x == last && j > last_at)"
                with w.block(f"if (({behind}) && (found < 0 || x > best))"):
                    w("best = x;")
                    w("found = j;")
            w("last = best;")
            w("last_at = found;")
            at = f"{product('i', count)} + k"
            w(w.use(c99.STORE, f"{names.outputs[0]}[{at}]", "best"))
            w(w.use(c99.STORE, f"{names.outputs[1]}[{at}]", "found < 0 ? 0 : found"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

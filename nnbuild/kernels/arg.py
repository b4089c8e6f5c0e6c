"""The index of the largest or smallest value along an axis."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import around
from nnbuild.ops.site import Site


def _demand(site: Site[Arg]) -> Demand:
    before, _, after = around(site.shape(), site.attributes.axis)
    return Demand(extent=before * after)


def _accepts(site: Site[Arg]) -> str | None:
    return None if site.outputs[0].dtype == "int32" else "its output is not int32"


def _emit(w: Writer, site: Site[Arg], names: Names) -> None:
    before, size, after = around(site.shape(), site.attributes.axis)
    kind, sign = C_TYPES[site.inputs[0].dtype], ">" if site.attributes.function == "max" else "<"
    if size == 1:
        with w.loop("i", "end", start="begin", trips=before * after):
            w(w.use(c99.STORE, f"{names.outputs[0]}[i]", "0"))
        return
    with w.loop("i", "end", start="begin", trips=before * after):
        w(f"const {kind} *from = {names.inputs[0]} + (i / {after}) * {size * after} + i % {after};")
        w(w.use(c99.LOAD_AS, kind, "best", "from[0]"))
        w("int32_t found = 0;")
        with w.loop("j", size, start=1):
            w.bill(c99.LARGER.cycles + 1)
            value = f"from[j * {after}]"
            with w.block(f"if ({value} {sign} best)"):
                w(f"best = {value};")
                w("found = j;")
        w(w.use(c99.STORE, f"{names.outputs[0]}[i]", "found"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

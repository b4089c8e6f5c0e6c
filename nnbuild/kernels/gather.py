"""Rows selected by indices. A work item is one index at one position before the axis."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.model.graph import Shape
from nnbuild.ops.base import around
from nnbuild.ops.gather import Gather
from nnbuild.ops.site import Site

WITHIN = Row("const int32_t place = chosen < 0 ? 0 : chosen < {0} ? chosen : {1};", 4)


def _sizes(site: Site[Gather]) -> tuple[int, int, int, int]:
    """(size before the axis, of the axis, behind it; number of indices)."""
    table: Shape = site.constant("table").shape if "table" in site.constants else site.shape()
    return *around(table, site.attributes.axis), prod(site.shape(len(site.inputs) - 1))


def _accepts(site: Site[Gather]) -> str | None:
    carried = site.inputs[0] if len(site.inputs) == 2 else site.outputs[0]
    if site.inputs[-1].dtype != "int32":
        return f"its indices are {site.inputs[-1].dtype}, not int32"
    return None if carried.dtype == site.outputs[0].dtype else "its table and its output differ in type"


def _demand(site: Site[Gather]) -> Demand:
    before, _, _, count = _sizes(site)
    packed = {role: constant.data.reshape(-1) for role, constant in site.constants.items()}
    return Demand(extent=before * count, packed=packed)


def _emit(w: Writer, site: Site[Gather], names: Names) -> None:
    before, size, after, count = _sizes(site)
    table, kind = names.packed.get("table", names.inputs[0]), C_TYPES[site.outputs[0].dtype]
    with w.loop("i", "end", start="begin", trips=before * count):
        one = "i" if before == 1 else f"i % {count}"
        w(w.use(c99.LOAD_AS, "const int32_t", "chosen", f"{names.inputs[-1]}[{one}]"))
        w(w.use(WITHIN, str(size), str(size - 1)))
        row = "place" if before == 1 else f"i / {count} * {size} + place"
        w(f"const {kind} *from = {table} + ({row}) * {after};")
        w(f"{kind} *to = {names.outputs[0]} + i * {after};")
        with w.loop("j", after):
            w.bill(c99.LOAD.cycles)
            w(w.use(c99.STORE, "to[j]", "from[j]"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

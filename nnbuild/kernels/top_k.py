"""The largest values of a row.

Few are found one after the other, each as the largest of those that rank behind the previous one. Many are kept in a
heap, with the last in rank on top, which every larger value replaces; then they leave it one by one, the last first.
"""

from __future__ import annotations

from math import log, prod

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.parts.next_ranked import compared, declare_last, declare_next
from nnbuild.ops.site import Site
from nnbuild.ops.top_k import TopK


def _accepts(site: Site[TopK]) -> str | None:
    values, places = site.outputs
    if places.dtype != "int32":
        return "its indices are not int32"
    return None if values.dtype == site.inputs[0].dtype else "its values have another type than its input"


def _accepts_heap(site: Site[TopK]) -> str | None:
    return _accepts(site) or ("one value needs no heap" if site.attributes.count == 1 else None)


def _demand(site: Site[TopK]) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]))


def _emit(w: Writer, site: Site[TopK], names: Names) -> None:
    *before, size = site.shape()
    count, kind = site.attributes.count, C_TYPES[site.inputs[0].dtype]
    with w.loop("i", "end", start="begin", trips=prod(before)):
        w(f"const {kind} *from = {names.inputs[0]} + i * {size};")
        declare_last(w, kind, "from")
        with w.loop("k", count):
            declare_next(w, kind, "from", size)
            at = f"i * {count} + k"
            w(w.use(c99.STORE, f"{names.outputs[0]}[{at}]", "next"))
            w(w.use(c99.STORE, f"{names.outputs[1]}[{at}]", "next_at < 0 ? 0 : next_at"))


LEVEL = 18
"""Instructions of a level that a value sinks, besides a comparison."""
SINK = """\
for (int32_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
    const int32_t next = below + 1;
    const int32_t last = next < count && (values[next] < values[below]
        || (values[next] == values[below] && places[next] > places[below])) ? next : below;

    if (values[last] > value || (values[last] == value && places[last] < place)) break;
    values[at] = values[last];
    places[at] = places[last];
    at = last;
}
values[at] = value;
places[at] = place;"""
"""Puts a value where those below it rank before it: `values` is a heap below `at`, and `places` are their indices."""


def _emit_heap(w: Writer, site: Site[TopK], names: Names) -> None:
    *before, size = site.shape()
    count, kind = site.attributes.count, C_TYPES[site.inputs[0].dtype]
    head = f"void {{name}}({kind} *values, int32_t *places, int32_t count, int32_t at, {kind} value, int32_t place)"
    sink = Instruction(f"sink_{kind}", head, SINK, 0, outlined=True)

    def sunk(count: str, at: str, value: str, place: str, times: float = 1) -> str:
        compared(w, kind, LEVEL, times)
        return f"{w.call(sink, 'values', 'places', count, at, value, place)};"

    with w.loop("i", "end", start="begin", trips=prod(before)):
        w(f"const {kind} *from = {names.inputs[0]} + i * {size};")
        w(f"{kind} *values = {names.outputs[0]} + i * {count};")
        w(f"int32_t *places = {names.outputs[1]} + i * {count};")
        with w.loop("j", count):
            w(w.use(c99.STORE, "values[j]", "from[j]"))
            w(w.use(c99.STORE, "places[j]", "j"))
        with w.loop("j", count // 2):
            w(f"const int32_t at = {count // 2 - 1} - j;")
            w(sunk(str(count), "at", "values[at]", "places[at]", 2))
        larger = count * log(size / count) / max(1, size - count)
        """The share that is expected in a random order."""
        with w.loop("j", size, start=count):
            compared(w, kind)
            with w.block("if (from[j] > values[0])"):
                w(sunk(str(count), "0", "from[j]", "j", larger * count.bit_length()))
        with w.loop("j", count - 1):
            w(f"const int32_t last = {count - 1} - j;")
            w(w.use(c99.LOAD_AS, f"const {kind}", "value", "values[last]"))
            w(w.use(c99.LOAD_AS, "const int32_t", "place", "places[last]"))
            w(w.use(c99.STORE, "values[last]", "values[0]"))
            w(w.use(c99.STORE, "places[last]", "places[0]"))
            w(sunk("last", "0", "value", "place", count.bit_length()))


VARIANTS = (
    Kernel("scalar", PORTABLE, _accepts, _demand, _emit),
    Kernel("heap", PORTABLE, _accepts_heap, _demand, _emit_heap, bounded=False),
)

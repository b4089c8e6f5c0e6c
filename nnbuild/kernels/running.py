"""Running averages and sums: each output is a work item."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import in_vectors
from nnbuild.kernels import reduce
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, Overlap
from nnbuild.kernels.dsp import reduce as dsp_reduce
from nnbuild.kernels.loops.pooling import finish_average
from nnbuild.kernels.loops.window import window_of
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.running import Running
from nnbuild.ops.site import Site

IN_PLACE = (Overlap(output=1),)
"""Each old sum is read before the new one is written there."""
EACH = Row("result += {0} - {1};", 2 * c99.LOAD.cycles + 2)


def _accepts(site: Site[Running]) -> str | None:
    x = site.inputs[2]
    if x.dtype not in ("int8", "int16"):
        return "floats have no running sums"
    size, _ = site.attributes.sizes(site.attributes.whole(site).shape())
    return reduce.too_many(x, size)


def _demand(site: Site[Running]) -> Demand:
    """The new sum may overwrite the old one."""
    return Demand(extent=site.attributes.sizes(site.shape(2))[1], overlaps=IN_PLACE)


def _emit(w: Writer, site: Site[Running], names: Names) -> None:
    held, leaving, new, *others = names.inputs
    size, after = site.attributes.sizes(site.shape(2))
    with w.loop("c", "end", start="begin", trips=after):
        w(w.use(c99.LOAD_AS, "int32_t", "result", f"{held}[c]"))
        with w.loop("i", size):
            at = f"[i * {after} + c]"
            w(w.use(EACH, f"{new}{at}", f"{leaving}{at}"))
        w(w.use(c99.STORE, f"{names.outputs[1]}[c]", "result"))
        for rows, tensor in zip(others, site.inputs[3:], strict=True):
            with w.loop("i", site.attributes.sizes(tensor.shape)[0]):
                w(w.use(c99.ADD, "result", f"{rows}[i * {after} + c]"))
        _finish(w, site.attributes.whole(site), f"{names.outputs[0]}[c]")


def _finish(w: Writer, whole: Site, target: str, result: str = "result") -> None:
    if whole.op.kind == "reduce":
        reduce.finish_sum(w, whole.of(Reduce), result, target)
    else:
        finish_average(w, whole.of(Pool2D), result, target, window_of(whole).inside)


def _accepts_words(site: Site[Running]) -> str | None:
    if refused := _accepts(site):
        return refused
    return "its outputs do not fill words" if _demand(site).extent < dsp_reduce.WORD[site.inputs[2].dtype] else None


def _emit_words(w: Writer, site: Site[Running], names: Names) -> None:
    """A word of neighbouring outputs at a time."""
    held, leaving, new, *others = names.inputs
    size, after = site.attributes.sizes(site.shape(2))
    kind = site.inputs[2].dtype
    sizes = [site.attributes.sizes(tensor.shape)[0] for tensor in site.inputs[3:]]
    w("(void)begin;")
    w("(void)end;")
    for c, count in in_vectors(w, dsp_reduce.WORD[kind], after):
        for k in range(count):
            w(w.use(c99.LOAD_AS, "int32_t", f"result{k}", f"{held}[{c} + {k}]"))
        for sign, rows in (("+", new), ("-", leaving)):
            _take(w, kind, f"{rows} + {c}", sign, size, after, count)
        for k in range(count):
            w(w.use(c99.STORE, f"{names.outputs[1]}[{c} + {k}]", f"result{k}"))
        for rows, more in zip(others, sizes, strict=True):
            _take(w, kind, f"{rows} + {c}", "+", more, after, count)
        for k in w.each(range(count)):
            _finish(w, site.attributes.whole(site), f"{names.outputs[0]}[{c} + {k}]", f"result{k}")


def _take(w: Writer, kind: str, rows: str, sign: str, size: int, after: int, count: int) -> None:
    with w.block(""):
        w(f"const {C_TYPES[kind]} *value = {rows};")
        for k, each in enumerate(dsp_reduce.columns(w, "sum", kind, size, after, count)):
            w.bill(1)
            w(f"result{k} {sign}= {each};")


WORDS = Demand(extent=1, overlaps=IN_PLACE)
VARIANTS = (
    Kernel("scalar", PORTABLE, _accepts, _demand, _emit),
    Kernel("words", frozenset({"armv7em_dsp"}), _accepts_words, lambda site: WORDS, _emit_words),
)

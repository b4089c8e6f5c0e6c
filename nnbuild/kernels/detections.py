"""Boxes of a detector: the best are found one after the other, each decoded when its turn comes, and compared with
those that were kept before. Nothing is sorted, and nothing is stored where an input tells."""

from __future__ import annotations

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float
from nnbuild.kernels.parts.next_ranked import declare_last, declare_next
from nnbuild.ops.detections import Detections
from nnbuild.ops.site import Site

KEPT = 7
"""Numbers of each box that is kept: four corners, its place, its class, its score."""


def _demand(site: Site[Detections]) -> Demand:
    scratch = site.shape()[0] + KEPT * site.attributes.most
    return Demand(extent=1, scratch=4 * scratch, packed={"anchors": site.constant("anchors").reshape(-1)})


def _emit(w: Writer, site: Site[Detections], names: Names) -> None:
    attributes = site.attributes
    w("(void)begin;")
    w("(void)end;")
    w(f"float *kept = {names.scratch} + {site.shape()[0]};")
    w("int32_t found = 0;")
    with w.loop("label", attributes.classes if attributes.each else 1):
        _best(w, site, names)
        _keep(w, site, names, attributes.each or attributes.most)
    with w.loop("k", attributes.most):
        _write(w, site, names)
    w(w.use(c99.STORE, f"{names.outputs[3]}[0]", "(float)found"))


def _scores(site: Site[Detections], names: Names, row: str) -> str:
    """The first score of a class."""
    width = site.shape(1)[1]
    return f"{names.inputs[1]} + {row} * {width} + {width - site.attributes.classes}"


def _best(w: Writer, site: Site[Detections], names: Names) -> None:
    """What each box is ranked by: its score for one class, or the best of all."""
    with w.loop("i", site.shape()[0]):
        w(f"const float *scores = {_scores(site, names, 'i')};")
        w(w.use(c99.LOAD_AS, "float", "best", "scores[label]"))
        if not site.attributes.each:
            with w.loop("j", site.attributes.classes, start=1):
                w(w.use(c99.LOAD, "score", "scores[j]"))
                w(w.use(c99.LARGER_FLOAT, "best", "score"))
        w(w.use(c99.STORE, f"{names.scratch}[i]", "best"))


def _keep(w: Writer, site: Site[Detections], names: Names, most: int) -> None:
    """Takes the boxes in the order of their scores, and keeps those that overlap none kept before."""
    count, attributes = site.shape()[0], site.attributes
    declare_last(w, "float", names.scratch)
    w("int32_t taken = 0;")
    w("int32_t more = 1;")
    with w.loop("turn", count, trips=min(count, 2 * most)), w.block("if (more)"):
        declare_next(w, "float", names.scratch, count, f"x >= {float_literal(attributes.least)} && ")
        with w.block(f"if (next_at < 0 || taken == {most})"):
            w("more = 0;")
        with w.block("else"):
            _decode(w, site, names)
            w("int32_t rank = 0;")
            w("int32_t apart = 1;")
            with w.loop("k", attributes.most), w.block("if (k < found)"):
                _compare(w, attributes)
            with w.block(f"if (rank == {attributes.most})"):
                w("more = 0;")
            with w.block("else if (apart)"):
                w("++taken;")
                _insert(w, attributes)


def _decode(w: Writer, site: Site[Detections], names: Names) -> None:
    w(f"const float *code = {names.inputs[0]} + next_at * {site.shape()[1]};")
    w(f"const float *anchor = {names.packed['anchors']} + next_at * 4;")
    steps = [float_literal(scale) for scale in site.attributes.scales]
    for i, name in enumerate(("y", "x")):
        placed = c99.product(w, f"code[{i}] / {steps[i]}", f"anchor[{i + 2}]")
        w(w.use(c99.LOAD, name, f"{placed} + anchor[{i}]"))
    for i, name in enumerate(("high", "wide")):
        grown = c99.product(w, "0.5f", w.helper("expf", f"code[{i + 2}] / {steps[i + 2]}"))
        w(w.use(c99.LOAD, name, c99.product(w, grown, f"anchor[{i + 2}]")))
    w.bill(0, floats=12)
    w("const float corners[4] = {y - high, x - wide, y + high, x + wide};")


def _compare(w: Writer, attributes: Detections) -> None:
    """Ranks the box behind those that are as good, and finds out whether it overlaps this one."""
    w(f"const float *one = kept + k * {KEPT};")
    w.bill(30, floats=12)
    with w.block("if (one[6] >= next)"):
        w("++rank;")
    for name, i, larger in (("top", 0, ">"), ("left", 1, ">"), ("bottom", 2, "<"), ("right", 3, "<")):
        w(f"const float {name} = one[{i}] {larger} corners[{i}] ? one[{i}] : corners[{i}];")
    for name, box in (("area", "one"), ("own", "corners")):
        w(f"const float {name} = {c99.product(w, f'{box}[2] - {box}[0]', f'{box}[3] - {box}[1]')};")
    both = c99.product(w, "bottom - top", "right - left")
    w(f"const float both = bottom > top && right > left ? {both} : 0.0f;")
    same = " && one[5] == (float)label" if attributes.each else ""
    share = f"both / (area + own - both) > {float_literal(attributes.overlap)}"
    with w.block(f"if (area > 0.0f && own > 0.0f && {share}{same})"):
        w("apart = 0;")


def _insert(w: Writer, attributes: Detections) -> None:
    """Moves what ranks behind it; the last may leave."""
    most = attributes.most
    with w.block(f"if (found < {most})"):
        w("++found;")
    if attributes.each:
        with w.loop("back", most - 1):
            w(f"float *one = kept + ({most - 1} - back) * {KEPT};")
            with w.loop("j", KEPT):
                w(w.use(c99.STORE, "one[j]", f"{most - 1} - back > rank ? one[j - {KEPT}] : one[j]"))
    values = [*(f"corners[{i}]" for i in range(4)), "(float)next_at", "(float)label", "next"]
    with w.loop("k", most):
        w(f"float *one = kept + k * {KEPT};")
        for i, value in enumerate(values):
            w(w.use(c99.STORE, f"one[{i}]", f"k == rank ? {value} : one[{i}]"))


def _write(w: Writer, site: Site[Detections], names: Names) -> None:
    """The corners, classes and scores of one detection, or zeros."""
    attributes, (boxes, labels, scores, _) = site.attributes, names.outputs
    w(f"const float *one = kept + k * {KEPT};")
    w("const int32_t is = k < found;")
    if not attributes.each:
        w("const int32_t row = is ? (int32_t)one[4] : 0;")
        w(f"const float *of = {_scores(site, names, 'row')};")
        declare_last(w, "float", "of")
    with w.loop("l", attributes.labels):
        at = f"k * {attributes.labels} + l" if attributes.labels > 1 else "k"
        for i in range(4):
            w(w.use(c99.STORE, f"{boxes}[({at}) * 4 + {i}]", f"is ? one[{i}] : 0.0f"))
        if attributes.each:
            w(w.use(c99.STORE, f"{labels}[{at}]", "is ? one[5] : 0.0f"))
            w(w.use(c99.STORE, f"{scores}[{at}]", "is ? one[6] : 0.0f"))
        else:
            declare_next(w, "float", "of", attributes.classes)
            w(w.use(c99.STORE, f"{labels}[{at}]", "is ? (float)next_at : 0.0f"))
            w(w.use(c99.STORE, f"{scores}[{at}]", "is ? next : 0.0f"))


VARIANTS = (Kernel("scalar", PORTABLE, only_float, _demand, _emit),)

"""Tensors joined along one axis, in integers; what has another scale than the output is rescaled on the way."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.concatenate.scalar import demand as demand
from nnbuild.kernels.contract import Names, only_integer
from nnbuild.kernels.integers import UNIT, centred, finish, requantized, zero
from nnbuild.kernels.window_loops import product, total
from nnbuild.numeric.elementwise import rescale_multiplier
from nnbuild.numeric.rounding import limits
from nnbuild.ops.base import around
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.integer import bounds, quant_of
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def emit(w: Writer, site: Site[Concatenate], names: Names) -> None:
    attributes, at = site.attributes, 0
    before, joined, after = around(site.output_shape(), attributes.axis)
    within = bounds(attributes.clamp, site.outputs[0])
    with w.loop("row", "end", start="begin", trips=before):
        for index, name in enumerate(names.inputs):
            run = site.shape(index)[attributes.axis] * after
            with w.loop("i", run):
                target = f"{names.outputs[0]}[{total(product('row', joined * after), str(at), 'i')}]"
                _element(w, site, index, f"{name}[{total(product('row', run), 'i')}]", target, within)
            at += run


def _element(w: Writer, site: Site[Concatenate], index: int, source: str, target: str, within: tuple[int, int]) -> None:
    own, out = site.inputs[index], site.outputs[0]
    scale = rescale_multiplier(quant_of(own).scale, quant_of(out).scale)
    if scale == UNIT and zero(own) == zero(out) and within == limits(out.dtype):
        w.bill(c99.LOAD.cycles)
        w(w.use(c99.STORE, target, source))
        return
    centred(w, "x", source, zero(own))
    finish(w, target, requantized(w, "x", scale), out, within)

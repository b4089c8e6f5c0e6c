"""A border around a tensor: each place decides by its first axis whether it lies inside."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, any_format
from nnbuild.kernels.loops.strided import contiguous
from nnbuild.kernels.window_loops import product, total
from nnbuild.numeric.edge import quantize
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site


def _levels(site: Site[Pad]) -> int:
    """Axes that need a loop: the padded ones and those before them; what follows is one run."""
    return max((axis + 1 for axis, pair in enumerate(site.attributes.amounts) if any(pair)), default=1)


def _demand(site: Site[Pad]) -> Demand:
    return Demand(extent=site.output_shape()[0])


def _emit(w: Writer, site: Site[Pad], names: Names) -> None:
    _axis(w, site, names, 0, "0", "0")


def _axis(w: Writer, site: Site[Pad], names: Names, axis: int, to: str, source: str) -> None:
    out, own = contiguous(site.output_shape()), contiguous(site.shape())
    before, after = site.attributes.amounts[axis]
    size, places, run = site.shape()[axis], site.output_shape()[axis], out[axis]
    name = f"i{axis}"
    bounds: tuple[int | str, int | str] = ("begin", "end") if axis == 0 else (0, places)
    with w.loop(name, bounds[1], start=bounds[0], trips=places):
        target = total(to, product(name, run))
        origin = total(source, product(f"{name} - {before}" if before else name, own[axis]))
        inside = [f"{name} >= {before}"] * (before > 0) + [f"{name} < {before + size}"] * (after > 0)
        if not inside:
            _inside(w, site, names, axis, target, origin)
            return
        with w.block(f"if ({' && '.join(inside)})"), w.trips(size / places):
            _inside(w, site, names, axis, target, origin)
        with w.block("else"), w.trips(1 - size / places), w.loop("i", run):
            w(w.use(c99.STORE, f"{names.outputs[0]}[{total(target, 'i')}]", _value(site)))


def _inside(w: Writer, site: Site[Pad], names: Names, axis: int, to: str, source: str) -> None:
    if axis + 1 < _levels(site):
        _axis(w, site, names, axis + 1, to, source)
        return
    with w.loop("i", prod(site.shape()[axis + 1 :])):
        value = f"{names.inputs[0]}[{total(source, 'i')}]"
        w(w.use(c99.STORE, f"{names.outputs[0]}[{total(to, 'i')}]", value))


def _value(site: Site[Pad]) -> str:
    """What the border holds; a quantized border holds the integer that means the value."""
    tensor, value = site.outputs[0], site.attributes.value
    return float_literal(value) if tensor.quant is None else str(quantize(value, *scale_and_limits(tensor)))


VARIANTS = (Kernel("scalar", PORTABLE, any_format, _demand, _emit),)

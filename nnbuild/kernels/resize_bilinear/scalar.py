"""Bilinear upsampling in portable C; the two sources and the weight repeat with the factor."""

from __future__ import annotations

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.window_loops import product
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[ResizeBilinear]) -> Demand:
    return Demand(extent=site.output_shape()[0])


def emit(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    attributes = site.attributes
    height, width, channels = site.shape()
    rows, columns, _ = site.output_shape()
    with w.loop("y", "end", start="begin", trips=rows):
        _source(w, "y", height, attributes.factors[0], attributes.centred)
        with w.loop("x", columns):
            _source(w, "x", width, attributes.factors[1], attributes.centred)
            for row in ("low", "high"):
                for column in ("low", "high"):
                    place = f"({product(f'y_{row}', width)} + x_{column}) * {channels}"
                    w(f"const float *{row}_{column} = {names.inputs[0]} + {place};")
            w(f"float *to = {names.outputs[0]} + ({product('y', columns)} + x) * {channels};")
            with w.loop("c", channels):
                _blend(w, "left", "low_low[c]", "high_low[c]", "y_part")
                _blend(w, "right", "low_high[c]", "high_high[c]", "y_part")
                _blend(w, "value", "left", "right", "x_part")
                w(w.use(c99.STORE, "to[c]", "value"))


def _blend(w: Writer, name: str, first: str, second: str, part: str) -> None:
    w(w.use(c99.LOAD, name, f"{c99.product(w, first, f'1.0f - {part}')} + {c99.product(w, second, part)}"))
    w.bill(4)


def _source(w: Writer, name: str, size: int, factor: int, centred: bool) -> None:
    """Output i has its centre at (i + 1/2) / factor - 1/2 inputs: twice that, in whole numbers, is `twice`/factor.

    Where pixels lie at their corners, its place is i / factor.
    """
    w(f"const int32_t {name}_twice = {c99.added(f'2 * {name}', 1 - factor if centred else 0)};")
    w(f"const int32_t {name}_floor = {name}_twice < 0 ? -1 : {name}_twice / {2 * factor};")
    w(f"const int32_t {name}_low = {name}_floor < 0 ? 0 : {name}_floor;")
    w(f"const int32_t {name}_high = {name}_floor + 1 < {size} ? {name}_floor + 1 : {size - 1};")
    steps = f"(float)({name}_twice - {name}_floor * {2 * factor})"
    distance = c99.product(w, steps, float_literal(1 / (2 * factor)))
    w(f"const float {name}_part = {name}_floor < 0 ? 0.0f : {distance};")
    w.bill(20)

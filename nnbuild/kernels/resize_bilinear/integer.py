"""Bilinear upsampling in integers, in 1024ths of a pixel."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import declare, store
from nnbuild.kernels.window_loops import product
from nnbuild.numeric.resize import BITS, ONE, position
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def demand(site: Site[ResizeBilinear]) -> Demand:
    return Demand(extent=site.output_shape()[0])


def emit(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    attributes = site.attributes
    height, width, channels = site.shape()
    rows, columns, _ = site.output_shape()
    kind = C_TYPES[site.inputs[0].dtype]
    sum_kind = "int32_t" if kind == "int8_t" else "int64_t"
    with w.loop("y", "end", start="begin", trips=rows):
        _source(w, "y", height, attributes.factors[0], attributes.centred)
        with w.loop("x", columns):
            _source(w, "x", width, attributes.factors[1], attributes.centred)
            for row in ("low", "high"):
                for column in ("low", "high"):
                    place = f"({product(f'y_{row}', width)} + x_{column}) * {channels}"
                    w(f"const {kind} *{row}_{column} = {names.inputs[0]} + {place};")
            w(f"{kind} *to = {names.outputs[0]} + ({product('y', columns)} + x) * {channels};")
            with w.loop("c", channels):
                for row in ("low", "high"):
                    across = f"{row}_low[c] * ({ONE} - x_share) + {row}_high[c] * x_share"
                    declare(w, f"{row}_row", across, f"const {sum_kind}")
                w.bill(16)
                declare(w, "total", f"low_row * ({ONE} - y_share) + high_row * y_share", f"const {sum_kind}")
                store(w, "to[c]", w.helper("rounding_shift", "total", str(2 * BITS)), site.outputs[0])


def _source(w: Writer, name: str, size: int, factor: int, centred: bool) -> None:
    """The two inputs around an output and the share of the upper one; before the first centre both are the first."""
    step, start = position(size, factor, centred)
    declare(w, f"{name}_at", added(f"{name} * {step}", start))
    declare(w, f"{name}_low", f"{name}_at < 0 ? 0 : {name}_at / {ONE}")
    declare(w, f"{name}_next", f"({name}_at + {ONE - 1}) / {ONE}")
    declare(w, f"{name}_high", f"{name}_next < {size} ? {name}_next : {size - 1}")
    declare(w, f"{name}_share", f"{name}_at - {name}_low * {ONE}")

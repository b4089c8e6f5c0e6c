"""Bilinear upsampling; the two sources and the weight repeat with the factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nnbuild.base.literals import C_TYPES, float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_integer
from nnbuild.kernels.integers import declare, store
from nnbuild.kernels.window_loops import product
from nnbuild.numeric.resize import BITS, ONE, position
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

Source = Callable[[Writer, str, int, int, bool], None]
"""(writer, axis, its size, factor, whether centred) declares {axis}_low and {axis}_high, an output's two inputs."""


def _demand(site: Site[ResizeBilinear]) -> Demand:
    return Demand(extent=site.output_shape()[0])


@contextmanager
def _corners(w: Writer, site: Site[ResizeBilinear], names: Names, source: Source) -> Iterator[None]:
    """The loops over the outputs `to[c]`, with pointers to the four inputs around them: low_low to high_high."""
    height, width, channels = site.shape()
    rows, columns, _ = site.output_shape()
    kind, (down, along), centred = C_TYPES[site.inputs[0].dtype], site.attributes.factors, site.attributes.centred
    with w.loop("y", "end", start="begin", trips=rows):
        source(w, "y", height, down, centred)
        with w.loop("x", columns):
            source(w, "x", width, along, centred)
            for row in ("low", "high"):
                for column in ("low", "high"):
                    place = f"({product(f'y_{row}', width)} + x_{column}) * {channels}"
                    w(f"const {kind} *{row}_{column} = {names.inputs[0]} + {place};")
            w(f"{kind} *to = {names.outputs[0]} + ({product('y', columns)} + x) * {channels};")
            with w.loop("c", channels):
                yield


def _emit(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    def blend(name: str, first: str, second: str, part: str) -> None:
        w(w.use(c99.LOAD, name, f"{c99.product(w, first, f'1.0f - {part}')} + {c99.product(w, second, part)}"))
        w.bill(4)

    with _corners(w, site, names, _source):
        blend("left", "low_low[c]", "high_low[c]", "y_part")
        blend("right", "low_high[c]", "high_high[c]", "y_part")
        blend("value", "left", "right", "x_part")
        w(w.use(c99.STORE, "to[c]", "value"))


def _source(w: Writer, name: str, size: int, factor: int, centred: bool) -> None:
    """Output i has its centre at (i + 1/2) / factor - 1/2 inputs: twice that, in whole numbers, is `twice`/factor.

    Where pixels lie at their corners, its place is i / factor.
    """
    w(f"const int32_t {name}_twice = {added(f'2 * {name}', 1 - factor if centred else 0)};")
    w(f"const int32_t {name}_floor = {name}_twice < 0 ? -1 : {name}_twice / {2 * factor};")
    w(f"const int32_t {name}_low = {name}_floor < 0 ? 0 : {name}_floor;")
    w(f"const int32_t {name}_high = {name}_floor + 1 < {size} ? {name}_floor + 1 : {size - 1};")
    steps = f"(float)({name}_twice - {name}_floor * {2 * factor})"
    distance = c99.product(w, steps, float_literal(1 / (2 * factor)))
    w(f"const float {name}_part = {name}_floor < 0 ? 0.0f : {distance};")
    w.bill(20)


def _emit_integers(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """In 1024ths of a pixel."""
    kind = "const int32_t" if site.inputs[0].dtype == "int8" else "const int64_t"
    with _corners(w, site, names, _integer_source):
        for row in ("low", "high"):
            declare(w, f"{row}_row", f"{row}_low[c] * ({ONE} - x_share) + {row}_high[c] * x_share", kind)
        w.bill(16)
        declare(w, "total", f"low_row * ({ONE} - y_share) + high_row * y_share", kind)
        store(w, "to[c]", w.helper("rounding_shift", "total", str(2 * BITS)), site.outputs[0])


def _integer_source(w: Writer, name: str, size: int, factor: int, centred: bool) -> None:
    """Also declares the share of the upper input; before the first centre both inputs are the first."""
    step, start = position(size, factor, centred)
    declare(w, f"{name}_at", added(f"{name} * {step}", start))
    declare(w, f"{name}_low", f"{name}_at < 0 ? 0 : {name}_at / {ONE}")
    declare(w, f"{name}_next", f"({name}_at + {ONE - 1}) / {ONE}")
    declare(w, f"{name}_high", f"{name}_next < {size} ? {name}_next : {size - 1}")
    declare(w, f"{name}_share", f"{name}_at - {name}_low * {ONE}")


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
)

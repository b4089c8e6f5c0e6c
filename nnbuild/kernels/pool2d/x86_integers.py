"""Pools of bytes on the vectors of x86."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet
from nnbuild.isa.x86_memory import larger, read_bytes, write_bytes
from nnbuild.isa.x86_scaling import LOW_MULTIPLY_SSE2
from nnbuild.isa.x86_vectors import SSE, Vectors
from nnbuild.kernels.contract import Demand, Names, Variant
from nnbuild.kernels.pool2d.scalar import axes, overlaps
from nnbuild.kernels.window import Axis
from nnbuild.kernels.window_loops import declare_taps, product, row_taps
from nnbuild.kernels.x86_channels import across, refused
from nnbuild.numeric.rounding import rounding_mean
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

DIVISION_BITS = 24


@lru_cache(maxsize=256)
def _inverse(count: int) -> int | None:
    """What (|sum| + count / 2) is multiplied by, to be divided by count in the upper bits; proven on every sum."""
    factor = -(-(1 << DIVISION_BITS) // count)
    sums = np.arange(128 * count + 1)
    products = (sums + count // 2) * factor
    fits = products.max() < 2**32 and np.array_equal(products >> DIVISION_BITS, rounding_mean(sums, count))
    return factor if fits else None


@dataclass(frozen=True)
class Pool:
    """The kernel for one set of instructions."""

    set: IntegerSet

    def accepts(self, site: Site[Pool2D]) -> str | None:
        pool = site.attributes
        if site.dtypes != {"int8"}:
            return "it computes int8 only"
        if pool.function == "average":
            if not all(axis.always_inside for axis in axes(site)):
                return "its averages are over whole windows only"
            if _inverse(pool.window[0] * pool.window[1]) is None:
                return "its windows are too large to divide by one multiplication"
        return refused(self.set.vectors, site.shape()[2])

    def demand(self, site: Site[Pool2D]) -> Demand:
        return Demand(extent=site.output_shape()[0], overlaps=overlaps(site))

    def emit(self, w: Writer, site: Site[Pool2D], names: Names) -> None:
        rows, columns = axes(site)
        channels = site.shape()[2]
        with w.loop("y", "end", start="begin", trips=rows.places):
            w(f"const int32_t top = {rows.position('y')};")
            if not rows.always_inside:
                declare_taps(w, rows, "top", "ky_begin", "ky_end")
            with w.loop("x", columns.places):
                w(f"const int32_t left = {columns.position('x')};")
                if not columns.always_inside:
                    declare_taps(w, columns, "left", "kx_begin", "kx_end")
                place = f"({product('y', columns.places)} + x) * {channels}"
                w(f"int8_t *to = {names.outputs[0]} + {place};")
                across(w, self.set.vectors, channels, lambda real: self._lanes(w, site, names, real))

    def _lanes(self, w: Writer, site: Site[Pool2D], names: Names, real: int) -> None:
        v, pool = self.set.vectors, site.attributes
        rows, columns = axes(site)
        first = v.spelt("set1_epi32", "-128") if pool.function == "max" else v.spelt(f"setzero_si{v.bits}")
        w(f"{v.kind} result = {first};")
        with row_taps(w, rows):
            start = f"({product('(top + ky)', columns.size)} + left) * {site.shape()[2]}"
            w(f"const int8_t *row = {names.inputs[0]} + {start} + c;")
            self._row(w, site, columns, real)
        if pool.function == "average":
            _divide(w, v, rows.kernel * columns.kernel)
        write_bytes(w, v, "result", bounds(pool.clamp, site.outputs[0]), "to + c", real)

    def _row(self, w: Writer, site: Site[Pool2D], columns: Axis, real: int) -> None:
        v = self.set.vectors
        limits = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
        with w.loop("kx", limits[1], start=limits[0], trips=columns.kernel):
            value = read_bytes(w, v, f"row + {product('kx', site.shape()[2])}", real)
            if site.attributes.function == "max":
                w(f"const {v.kind} value = {value};")
                w(f"result = {larger(w, v, 'result', 'value')};")
            else:
                w(f"result = {v.use(w, 'add_epi32', 'result', value)};")


def _divide(w: Writer, v: Vectors, count: int) -> None:
    """The variable `result` by a number, to nearest, halves away from zero: its size, then its sign again."""
    xor = f"xor_si{v.bits}"
    w(f"const {v.kind} sign = {v.use(w, 'srai_epi32', 'result', '31')};")
    size = v.use(w, "sub_epi32", v.use(w, xor, "result", "sign"), "sign")
    lifted = v.use(w, "add_epi32", size, v.spelt("set1_epi32", str(count // 2)))
    factor = v.spelt("set1_epi32", str(_inverse(count)))
    scaled = w.call(LOW_MULTIPLY_SSE2, lifted, factor) if v is SSE else v.use(w, "mullo_epi32", lifted, factor)
    quotient = v.use(w, "srli_epi32", scaled, str(DIVISION_BITS))
    w(f"result = {v.use(w, 'sub_epi32', v.use(w, xor, quotient, 'sign'), 'sign')};")


def _variant(chosen: IntegerSet) -> Variant:
    kernel = Pool(chosen)
    return Variant(f"{chosen.name}_integers", frozenset({chosen.name}), kernel.accepts, kernel.demand, kernel.emit)


VARIANTS = tuple(_variant(chosen) for chosen in SETS)

"""Convolutions and dense layers on Cortex-M4 and M7 for a small program: all of a model share three routines.

A dense layer's row is computed as two equal positions: the second costs time, but a routine for one would cost code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Nest, only_int8, variant
from nnbuild.kernels.dsp import compact
from nnbuild.kernels.dsp.compact import Compact
from nnbuild.kernels.dsp.weights import padded_taps
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.loops.patches import NEEDS
from nnbuild.kernels.overlaps import rows, tiles
from nnbuild.kernels.sums import sums_of
from nnbuild.kernels.window import Weighted, window_of
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

POINTERS = {"k": ("kernel", "int64_t"), "scaling": ("scaling", "int32_t"), "shift": ("shift", "int8_t")}


def _accepts(site: Site[Weighted]) -> str | None:
    refused = only_int8(site)
    if refused:
        return refused
    if site.op.kind == "dense" and site.shape()[-1] % 4:
        return "its inputs are no multiple of 4"
    scaling = compact.scaling_of(site)
    return scaling if isinstance(scaling, str) else None


@dataclass(frozen=True, eq=False)
class Gathered(WindowNest[Compact]):
    """The inputs under two windows are gathered by a routine, group by group."""

    @property
    def taps(self) -> int:
        return 2 * self.lanes.pairs

    def demand(self) -> Demand:
        window, sums = self.window, sums_of(self.site)
        parts = [
            compact.pack(sums, self.lanes, slice(first, first + window.share))
            for first in range(0, window.filters, window.share)
        ]
        packed = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        apart = tiles(self.site, window.rows, window.columns, 2)
        return Demand(
            extent=window.rows.places,
            scratch=-(-(4 * self.taps + 2 * self.taps) // 8) * 8,
            scratch_type="int64",
            packed=packed | {"window": self._numbers()},
            rows=True,
            overlaps=apart if window.groups == 1 else rows(self.site, window.rows),
        )

    def _numbers(self) -> Array:
        """As the gathering routine wants them."""
        window, down, along = self.window, self.window.rows, self.window.columns
        sizes = [down.size, along.size, window.channels, down.kernel, along.kernel, down.dilation, along.dilation]
        return np.array([*sizes, window.depth, quant_of(self.site.inputs[0]).zero_point], np.int16)

    def emit(self, w: Writer, names: Names) -> None:
        window, shape, taps = self.window, self.lanes, self.taps
        places = window.columns.places
        w(f"int64_t *const patch = {names.scratch};")
        w(f"int8_t *const gathered = (int8_t *)(patch + {shape.pairs});")
        for i in range(window.taps, taps):
            w(f"gathered[{i}] = gathered[{taps + i}] = 0;")
        with w.loop("y", "end", start="begin", trips=window.rows.places), w.loop("x", places, step=2):
            w(f"const int32_t next = x + 1 < {places} ? x + 1 : x;")
            w(f"int8_t *to = {names.outputs[0]} + {product(f'y * {places} + x', window.filters)};")
            w.bill(9)
            if window.groups == 1:
                self._group(w, names, names.inputs[0], tuple(names.packed[role] for role, _ in POINTERS.values()))
                return
            for name, (role, kind) in POINTERS.items():
                w(f"const {kind} *{name} = {names.packed[role]};")
            with w.loop("group", window.groups):
                self._group(w, names, f"{names.inputs[0]} + {product('group', window.depth)}", tuple(POINTERS))
                w(f"k += {shape.blocks * shape.pairs};")
                w(f"scaling += {4 * (2 + len(shape.told)) * shape.blocks};")
                w(f"shift += {4 * shape.blocks};")
                w(f"to += {window.share};")

    def _group(self, w: Writer, names: Names, source: str, pointers: tuple[str, ...]) -> None:
        window, taps = self.window, self.taps
        top, place = window.rows.position("y"), names.packed["window"]
        routine = compact.gather_routine()
        buffers = ("gathered", f"gathered + {taps}")
        for buffer, at in zip(buffers, ("x", "next"), strict=True):
            w.bill(compact.gather_cycles(window.rows.kernel * window.columns.kernel, window.depth))
            w(f"{w.call(routine, buffer, source, top, window.columns.position(at), place)};")
        compact.lay_out(w, taps, buffers)
        compact.multiply(w, self.lanes, pointers, ("to", f"to + {product('next - x', window.filters)}"))


@dataclass(frozen=True, eq=False)
class PairedRows(WindowNest[Compact]):
    """A dense layer's rows of inputs, of which a last one without a neighbour is taken twice."""

    def demand(self) -> Demand:
        window = self.window
        return Demand(
            extent=window.rows.places,
            scratch=8 * self.lanes.pairs,
            scratch_type="int64",
            packed=compact.pack(sums_of(self.site), self.lanes, slice(0, window.filters)),
            overlaps=tiles(self.site, window.rows, window.columns, 2),
        )

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        w(f"int64_t *const patch = {names.scratch};")
        with w.loop("row", "end", start="begin", step=2, trips=-(-window.rows.places // 2)):
            w("const int32_t next = row + 1 < end ? row + 1 : row;")
            w.bill(4)
            sources = [f"{names.inputs[0]} + {product(row, window.depth)}" for row in ("row", "next")]
            compact.lay_out(w, window.depth, sources)
            pointers = [names.packed[role] for role, _ in POINTERS.values()]
            to = [f"{names.outputs[0]} + {product(row, window.filters)}" for row in ("row", "next")]
            compact.multiply(w, self.lanes, pointers, to)


def _nest(site: Site[Weighted]) -> Nest:
    window = window_of(site)
    shape = compact.shape_of(site, padded_taps(window.taps) // 2, window.share)
    return (PairedRows if site.op.kind == "dense" else Gathered)(site, shape)


VARIANTS = (variant("compact", NEEDS, _accepts, _nest),)

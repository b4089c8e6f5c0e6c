"""Convolutions and dense layers on Cortex-M4 and M7 for a small program: all layers of a model share one tile, whose
sizes are stored with the weights (`dsp/shared_tile.py`). Inputs are laid out as for the larger tiles; or, for a
convolution, by a shared routine that is slower and shorter.

A dense layer's row is computed as two equal positions: the second costs time, but a routine for one would cost code.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed.unpacked import unpacked
from nnbuild.kernels.contract import Demand, Names, Nest, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp.input_layouts import expand
from nnbuild.kernels.dsp.patches import MOST_LEFT_OVER, NEEDS, Patches, patch_of
from nnbuild.kernels.dsp.shared_tile import Shared, multiply, pack, scaling_of
from nnbuild.kernels.dsp.tile import Tile
from nnbuild.kernels.dsp.weight_layouts import Packed, padded_taps
from nnbuild.kernels.lanes.layer_sums import Sums, sums_of
from nnbuild.kernels.loops.window import Weighted, Window, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import product
from nnbuild.kernels.parts.overlaps import rows, tiles
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


def _packed(window: Window, sums: Sums, shape: Shared) -> Array:
    """Group by group."""
    share = window.share
    return np.concatenate([pack(sums, shape, slice(at, at + share)) for at in range(0, window.filters, share)])


def gather_routine(dtype: str = "int16") -> Instruction:
    """Copies the inputs under one window, with the zero point for padding.

    `window`, of this type, holds rows, columns and channels of the input, the kernel's rows and columns, both
    dilations, the inputs of one tap, and the zero point.
    """
    w = Writer("{prefix}")
    names = ("rows", "columns", "channels", "kernel_rows", "kernel_columns", "step_down", "step_along", "depth", "zero")
    for index, name in enumerate(names):
        w(f"const int32_t {name} = window[{index}];")
    w()
    with _counted(w, "ky", "kernel_rows"):
        w("const int32_t row = top + ky * step_down;")
        w()
        with _counted(w, "kx", "kernel_columns"):
            w("const int32_t column = left + kx * step_along;")
            w()
            with w.block("if (row >= 0 && row < rows && column >= 0 && column < columns)"):
                w("const int8_t *from = in + (row * columns + column) * channels;")
                w("int32_t i = 0;")
                w()
                with w.block("for (; i + 4 <= depth; i += 4)"):
                    w(f"{DSP.call(w, 'write_bytes', 'to + i', DSP.call(w, 'load_bytes', 'from + i', of=(4,)))};")
                with w.block("for (; i < depth; ++i)"):
                    w("to[i] = from[i];")
            with w.block("else"), _counted(w, "i", "depth"):
                w("to[i] = (int8_t)zero;")
            w("to += depth;")
    head = f"void {{name}}(int8_t *to, const int8_t *in, int32_t top, int32_t left, const {dtype}_t *window)"
    return w.routine("compact_gather" if dtype == "int16" else f"compact_gather_{dtype}", head)


def _counted(w: Writer, variable: str, count: str) -> AbstractContextManager[None]:
    return w.loop(variable, count, trips=1)


def gather_cycles(taps: int, depth: int) -> float:
    """The cost of a call."""
    return 40 + taps * (18 + depth // 4 * 6 + depth % 4 * 5)


@dataclass(frozen=True, eq=False)
class GatheredWindows(WindowNest[Shared]):
    """A routine gathers the inputs under two windows, group by group."""

    @property
    def taps(self) -> int:
        return 2 * self.lanes.pairs

    def demand(self) -> Demand:
        window = self.window
        apart = tiles(self.site, window.rows, window.columns, 2)
        return Demand(
            extent=window.rows.places,
            scratch=-(-(4 * self.taps + 2 * self.taps) // 8) * 8,
            scratch_type="int64",
            packed={"kernel": _packed(window, sums_of(self.site), self.lanes), "window": self._numbers()},
            rows=True,
            overlaps=apart if window.groups == 1 else rows(self.site, window.rows),
        )

    def _numbers(self) -> Array:
        """The `window` argument of the gathering routine."""
        window, down, along = self.window, self.window.rows, self.window.columns
        sizes = [down.size, along.size, window.channels, down.kernel, along.kernel, down.dilation, along.dilation]
        sizes += [window.depth, quant_of(self.site.inputs[0]).zero_point]
        return np.array(sizes, np.int16 if max(sizes) <= INT16[1] else np.int32)

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
                self._group(w, names, names.inputs[0], names.packed["kernel"])
                return
            w(f"const int32_t *k = {names.packed['kernel']};")
            with w.loop("group", window.groups):
                self._group(w, names, f"{names.inputs[0]} + {product('group', window.depth)}", "k")
                w(f"k += {shape.words};")
                w(f"to += {window.share};")

    def _group(self, w: Writer, names: Names, source: str, stream: str) -> None:
        window, taps = self.window, self.taps
        top, place = window.rows.position("y"), names.packed["window"]
        routine = gather_routine(str(self._numbers().dtype))
        buffers = ("gathered", f"gathered + {taps}")
        for buffer, at in zip(buffers, ("x", "next"), strict=True):
            gathering = gather_cycles(window.rows.kernel * window.columns.kernel, window.depth)
            w.bill(gathering, gathering / 3)
            w(f"{w.call(routine, buffer, source, top, window.columns.position(at), place)};")
        expand(w, "int8", "patch", buffers, taps, most=1)
        multiply(w, self.lanes, stream, ("to", f"to + {product('next - x', window.filters)}"))


@dataclass(frozen=True, eq=False)
class PairedRows(WindowNest[Shared]):
    """A dense layer's rows of inputs, in pairs; a last single row is taken twice."""

    def demand(self) -> Demand:
        window = self.window
        return Demand(
            extent=window.rows.places,
            scratch=8 * self.lanes.pairs,
            scratch_type="int64",
            packed={"kernel": _packed(window, sums_of(self.site), self.lanes)},
            overlaps=tiles(self.site, window.rows, window.columns, 2),
        )

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        w(f"int64_t *const patch = {names.scratch};")
        with w.loop("row", "end", start="begin", step=2, trips=-(-window.rows.places // 2)):
            w("const int32_t next = row + 1 < end ? row + 1 : row;")
            w.bill(4)
            sources = tuple(f"{names.inputs[0]} + {product(row, window.depth)}" for row in ("row", "next"))
            expand(w, "int8", "patch", sources, window.depth, most=1)
            to = [f"{names.outputs[0]} + {product(row, window.filters)}" for row in ("row", "next")]
            multiply(w, self.lanes, names.packed["kernel"], to)


@dataclass(frozen=True, eq=False)
class LaidOutWindows(Patches):
    """Each convolution has its own code to lay out inputs, as with a tile of its own."""

    @property
    def _shape(self) -> Shared:
        return Shared(self.lanes.scaling, self.lanes.pairs, self.window.share)

    def _packed(self) -> dict[str, Array]:
        return {"kernel": _packed(self.window, self._sums, self._shape)}

    def _channels(self, w: Writer, tile: Tile, names: Names) -> None:
        multiply(w, self._shape, names.packed["kernel"], ("to0", "to1"))

    def _declare(self, w: Writer, tile: Tile, names: Names) -> None:
        w(f"const int32_t *k = {names.packed['kernel']};")

    def _group(self, w: Writer, tile: Tile) -> None:
        multiply(w, self._shape, "k", ("to0", "to1"))
        w(f"k += {self._shape.words};")
        for pointer in ("to0", "to1"):
            w(f"{pointer} += {self.window.share};")


def _accepts(laid_out: bool, site: Site[Weighted]) -> str | None:
    refused = only_int8(site)
    if refused:
        return refused
    if site.op.kind == "dense" and site.shape()[-1] % 4:
        return "its inputs are no multiple of 4"
    if laid_out and len(patch_of(site).left_over()) > MOST_LEFT_OVER:
        return "too few of its inputs are contiguous"
    return reason_of(scaling_of(site))


def _nest(laid_out: bool, site: Site[Weighted]) -> Nest:
    window, scaling = window_of(site), accepted(scaling_of(site))
    if laid_out:
        return LaidOutWindows(site, Tile(Packed(), scaling, patch_of(site).pairs, 2))
    shape = Shared(scaling, padded_taps(window.taps) // 2, window.share)
    return (PairedRows if site.op.kind == "dense" else GatheredWindows)(site, shape)


_COMPACT = variant("compact", NEEDS, partial(_accepts, False), partial(_nest, False))
VARIANTS = (_COMPACT, *unpacked(_COMPACT))
_LAID_OUT = variant("compact_laid_out", NEEDS, partial(_accepts, True), partial(_nest, True))
CONVOLUTIONS = (*VARIANTS, _LAID_OUT, *unpacked(_LAID_OUT))
"""The variants for convolutions."""

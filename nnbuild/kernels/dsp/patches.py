"""Convolutions and dense layers on Cortex-M4 and M7: inputs are laid out once as pairs of 16 bits for all outputs.

The inputs of two windows, or of a dense layer's single row, are laid out together. Any kernel, stride, dilation,
padding and grouping; the scratch is a few bytes per weight of one channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product as combined
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa.c99 import added
from nnbuild.kernels.compressed.unpacked import unpacked
from nnbuild.kernels.contract import Demand, Kernel, Names, Nest, Overlap, accepted, integer_layer, variant
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp import tile_routine
from nnbuild.kernels.dsp.assembly_tile import SHORT
from nnbuild.kernels.dsp.input_layouts import copy, expand
from nnbuild.kernels.dsp.patch_layout import Patch
from nnbuild.kernels.dsp.staged_weights import staged
from nnbuild.kernels.dsp.tile import Tile
from nnbuild.kernels.dsp.weight_layouts import Layout, Packed, Wide, padded_taps
from nnbuild.kernels.lanes.layer_sums import Sums, sums_of
from nnbuild.kernels.loops.window import Weighted, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import in_range, product, total
from nnbuild.kernels.parts.overlaps import SIZES, rows
from nnbuild.kernels.parts.overlaps import tiles as tiles_apart
from nnbuild.kernels.parts.residual import refusal, residual_of
from nnbuild.model.graph import Array
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

NEEDS = frozenset({"armv7em_dsp"})
MOST_LEFT_OVER = 48
"""Inputs that are taken one by one; with more, other kernels are shorter and no slower."""
CLEAR = Row("{0} = 0;", 2)


def patch_of(site: Site[Weighted]) -> Patch:
    return Patch(window_of(site), quant_of(site.inputs[0]).zero_point, site.inputs[0].dtype)


def is_row(site: Site[Weighted]) -> bool:
    """Whether it is a dense layer on a single row of inputs, or a convolution with one window, the whole input."""
    window = window_of(site)
    if site.op.kind == "dense":
        return window.rows.places == 1
    alone = all(axis.places == 1 and axis.pad == 0 for axis in (window.rows, window.columns))
    return alone and window.groups == 1 and not site.tail and window.taps == prod(site.shape())


def tile_of(layout: Layout, site: Site[Weighted], longest: int = tiles.LONGEST, in_ram: bool = False) -> Tile:
    """The tile of a site; a single row of inputs is one position, padded to groups of four."""
    scaling = accepted(tiles.scaling_of(layout, site))
    if is_row(site):
        most = longest if longest == tiles.LONGEST else tiles.SHORT_ROW
        return Tile(layout, scaling, padded_taps(window_of(site).taps) // 2, 1, longest=most, shared=site.shared)
    tile = Tile(layout, scaling, patch_of(site).pairs, 2, residual_of(site), shared=site.shared)
    return replace(tile, longest=longest, in_ram=in_ram)


def _accepts(layout: Layout, longest: int, in_ram: bool, site: Site[Weighted]) -> str | None:
    refused = integer_layer(site) or refusal(site)
    if refused:
        return refused
    if site.constant("kernel").dtype != np.int8 and isinstance(layout, Packed):
        return "its weights do not fit 8 bits"
    if len(patch_of(site).left_over()) > MOST_LEFT_OVER:
        return "too few of its inputs are contiguous"
    scaling = tiles.scaling_of(layout, site)
    if isinstance(scaling, str):
        return scaling
    if in_ram and is_row(site):
        return "it reads its weights only once"
    tile = tile_of(layout, site, longest)
    short = tile.pairs <= (SHORT if isinstance(layout, Packed) else tile.longest)
    return "its code is short already" if longest == tiles.SHORT and not in_ram and short else None


@dataclass(frozen=True, eq=False)
class Patches(WindowNest[Tile]):
    """Two positions at a time."""

    @cached_property
    def patch(self) -> Patch:
        return replace(patch_of(self.site), apart=self.lanes.in_ram)

    @property
    def width(self) -> int:
        """Positions in a row."""
        return self.window.rows.places * self.window.columns.places if self.window.flat else self.window.columns.places

    def demand(self) -> Demand:
        window = self.window
        scratch = self.patch.pairs * 8 + self.patch.band * SIZES[self.patch.dtype]
        return Demand(
            extent=self.width if window.flat else window.rows.places,
            scratch=-(-scratch // 8) * 8,
            scratch_type="int64",
            packed=self._packed(),
            overlaps=(*self._overlaps(), *([Overlap(input=1)] if self.site.tail else [])),
            rows=True,
        )

    def _overlaps(self) -> tuple[Overlap, ...]:
        """A band, or without one and without groups the windows of a tile, is read before its outputs are written."""
        window = self.window
        if self.patch.banded:
            return rows(self.site, window.rows, ahead=window.rows.stride)
        return (
            tiles_apart(self.site, window.rows, window.columns, 2)
            if window.groups == 1
            else rows(self.site, window.rows)
        )

    @property
    def _sums(self) -> Sums:
        """The sums, with weights in the order of the inputs."""
        sums = sums_of(self.site)
        return replace(sums, weights=self.patch.in_order(sums.weights))

    def _packed(self) -> dict[str, Array]:
        return tiles.pack(self.lanes, self._sums, self.patch.dtype, self.window.share)

    def emit(self, w: Writer, names: Names) -> None:
        window, patch = self.window, self.patch
        if patch.pairs:
            w(f"int64_t *const patch = {names.scratch};")
        patch.declare_band(w)
        if window.flat and self._alone:
            w("const int32_t even = end - (end - begin) % 2;")
            if self.width > 1:
                with w.loop("x", "even", start="begin", step=2, trips=self.width // 2):
                    w("const int32_t next = x + 1;")
                    self._pair(w, names)
            with w.block("if (even < end)"):
                w("const int32_t x = even;")
                self._pair(w, names, alone=True)
            return
        if window.flat:
            with w.loop("x", "end", start="begin", step=2, trips=-(-self.width // 2)):
                w("const int32_t next = x + 1 < end ? x + 1 : x;")
                self._pair(w, names)
            return
        places, at_once = window.columns.places, patch.rows_at_once
        with w.loop("y", "end", start="begin", step=at_once, trips=window.rows.places / at_once):
            if at_once == 2:
                w(f"const int32_t places = y + 1 < end ? {2 * places} : {places};")
            patch.fill_band(w, names.inputs[0])
            last = "places" if at_once == 2 else str(places)
            with w.loop("x", last, step=2, trips=-(-at_once * places // 2)):
                w(f"const int32_t next = {f'x + 1 < {last} ? x + 1 : x' if places % 2 else 'x + 1'};")
                self._pair(w, names)

    @property
    def _alone(self) -> bool:
        """Whether the last of an odd number of positions is computed alone, which needs another routine."""
        return self.lanes.in_ram and bool(self.width % 2) and self.window.groups == 1 and not self.lanes.beside

    def _pair(self, w: Writer, names: Names, alone: bool = False) -> None:
        """All channels of positions x and `next`, or of x alone."""
        window, tile = self.window, replace(self.lanes, positions=1) if alone else self.lanes
        kind = tile.scaling.output_type
        row = "0" if window.flat else product("y", window.columns.places * window.filters)
        place, apart = total(row, product("x", window.filters)), product("next - x", window.filters)
        w(f"{kind} *to0 = {names.outputs[0]} + {place};")
        if not alone:
            w(f"{kind} *to1 = to0 + {apart};")
        w.bill(6)
        if tile.beside:
            w(f"const int8_t *beside0 = {names.inputs[1]} + {place};")
            w(f"const int8_t *beside1 = beside0 + {apart};")
            w.bill(5)
        if window.groups == 1:
            self.patch.lay_out(w, names.inputs[0], "", ("a", "b")[: tile.positions])
            self._channels(w, tile, names)
            return
        self._declare(w, tile, names)
        with w.loop("group", window.groups):
            self.patch.lay_out(w, names.inputs[0], product("group", window.depth))
            self._group(w, tile)

    def _channels(self, w: Writer, tile: Tile, names: Names) -> None:
        """All channels of the positions laid out."""
        self._declare(w, tile, names)
        self._group(w, tile)

    def _declare(self, w: Writer, tile: Tile, names: Names) -> None:
        """Declares the pointers to the constants of the first group."""
        tile_routine.declare(w, tile, names)

    def _group(self, w: Writer, tile: Tile) -> None:
        """All channels of a group; advances its pointers."""
        tile_routine.all_runs(w, tile, self.window.share)


@dataclass(frozen=True, eq=False)
class SingleRow(WindowNest[Tile]):
    """A single row of inputs; a work item is a block of outputs."""

    @property
    def dtype(self) -> str:
        return self.site.inputs[0].dtype

    def demand(self) -> Demand:
        depth, outputs, size = self.window.taps, self.window.filters, SIZES[self.dtype]
        gathered = padded_taps(depth) * size if depth % 4 else 0
        return Demand(
            extent=sum(run.count for run in tiles.runs(outputs)),
            scratch=-(-(self.lanes.pairs * 4 + gathered) // 8) * 8,
            scratch_type="int64",
            packed=tiles.pack(self.lanes, sums_of(self.site), self.dtype, outputs),
            overlaps=(Overlap(distance=-depth * size, split_distance=outputs * SIZES[self.site.outputs[0].dtype]),),
        )

    def emit(self, w: Writer, names: Names) -> None:
        self._lay_out(w, names)
        tile, piece, output = self.lanes, 0, 0
        places = dict.fromkeys(tile.arrays.values(), 0)
        for run in tiles.runs(self.window.filters):
            sizes = dict(zip(places, tile.sizes(run.width), strict=True))
            packed = [_from(names.packed[role], places[role] - piece * size, size) for role, size in sizes.items()]
            to = _from(names.outputs[0], output - piece * run.width, run.width)
            with in_range(w, piece, run.count):
                tile_routine.call(w, tile, run, tuple(packed), (to,), "last - first")
            piece += run.count
            places = {role: place + run.count * sizes[role] for role, place in places.items()}
            output += run.count * run.width

    def _lay_out(self, w: Writer, names: Names) -> None:
        """Inputs whose number is no multiple of 4 are first copied to a padded buffer."""
        kind, depth, source = C_TYPES[self.dtype], self.window.taps, names.inputs[0]
        taps = padded_taps(depth)
        w(f"int64_t *const patch = {names.scratch};")
        if depth != taps:
            w(f"{kind} *const gathered = ({kind} *)(patch + {self.lanes.pairs // 2});")
            with w.loop("i", taps):
                w(w.use(CLEAR, "gathered[i]"))
            copy(w, self.dtype, "gathered", source, depth)
            source = "gathered"
        expand(w, self.dtype, "patch", (source,), taps)


def _from(array: str, start: int, step: int) -> str:
    """The address of block `first` of a run."""
    return f"{array} + {added(product('first', step), start)}"


def _nest(layout: Layout, longest: int, in_ram: bool, site: Site[Weighted]) -> Nest:
    return (SingleRow if is_row(site) else Patches)(site, tile_of(layout, site, longest, in_ram))


def variants(fuses: frozenset[str]) -> tuple[Kernel[Weighted], ...]:
    """Variants with unrolled code, with short loops, and with short loops and weights in RAM."""
    found = []
    ways = ((tiles.LONGEST, False, ""), (tiles.SHORT, False, "_short"), (tiles.SHORT, True, "_staged"))
    layouts: tuple[Layout, ...] = (Wide(), Packed())
    for layout, (longest, in_ram, mark) in combined(layouts, ways):
        nest = partial(_nest, layout, longest, in_ram)
        kernel = variant(f"patches_{layout.name}{mark}", NEEDS, partial(_accepts, layout, longest, in_ram), nest, fuses)
        found.append(staged(kernel) if in_ram else kernel)
        if isinstance(layout, Packed) and not in_ram:
            found += unpacked(kernel)
    return tuple(found)

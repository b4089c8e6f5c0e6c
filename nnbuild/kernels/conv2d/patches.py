"""Convolution on Cortex-M4 and M7: the inputs under two windows are laid out once, then all channels read them.

Any kernel, stride, dilation, padding and grouping; the scratch is a few bytes per weight of one channel.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Overlap, Variant, only_integer
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp.beside import FUSES, beside_of, refusal
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.dsp.tile import Tile
from nnbuild.kernels.dsp.weights import Layout, Packed, Wide
from nnbuild.kernels.loops.patches import MOST_LEFT_OVER, Window, declare_band, fill_band, in_order, lay_out, window_of
from nnbuild.kernels.overlaps import rows
from nnbuild.kernels.overlaps import tiles as tiles_apart
from nnbuild.kernels.sums import Sums, sums_of
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

NEEDS = frozenset({"armv7em_dsp"})


def _accepts(layout: Layout, site: Site) -> str | None:
    refused = only_integer(site) or refusal(site)
    if refused:
        return refused
    if site.constant("kernel").dtype != np.int8 and isinstance(layout, Packed):
        return "its weights do not fit 8 bits"
    if len(window_of(site).left_over()) > MOST_LEFT_OVER:
        return "too few of its inputs lie side by side"
    scaling = tiles.scaling_of(layout, site)
    return scaling if isinstance(scaling, str) else None


def _tile(layout: Layout, site: Site) -> Tile:
    scaling = tiles.scaling_of(layout, site)
    assert isinstance(scaling, Scaling)
    return Tile(layout, scaling, window_of(site).pairs, 2, beside_of(site))


def _demand(layout: Layout, site: Site) -> Demand:
    window, sums = window_of(site), sums_of(site)
    size = 2 if window.dtype == "int16" else 1
    scratch = window.pairs * 8 + window.band * size
    return Demand(
        extent=window.width if window.flat else window.rows.places,
        scratch=-(-scratch // 8) * 8,
        scratch_type="int64",
        packed=_packed(_tile(layout, site), window, sums),
        overlaps=(*overlaps_of(site, window), *([Overlap(input=1)] if site.tail else [])),
        rows=True,
    )


def overlaps_of(site: Site, window: Window) -> tuple[Overlap, ...]:
    """A band is read before its row is written; without one, the windows of a tile are, unless by groups."""
    if window.banded:
        return rows(site, window.rows, ahead=window.rows.stride)
    return tiles_apart(site, window.rows, window.columns, 2) if window.groups == 1 else rows(site, window.rows)


def _packed(tile: Tile, window: Window, sums: Sums) -> dict[str, Array]:
    share = window.filters // window.groups
    sums = replace(sums, weights=in_order(window, sums.weights))
    groups = [slice(first, first + share) for first in range(0, window.filters, share)]
    return {"kernel": np.concatenate([tiles.pack(tile, sums, window.dtype, group) for group in groups])}


def _emit(layout: Layout, w: Writer, site: Site, names: Names) -> None:
    window, tile = window_of(site), _tile(layout, site)
    w(f"int64_t *const patch = {names.scratch};")
    declare_band(w, window)
    if window.flat:
        with w.loop("x", "end", start="begin", step=2, trips=window.pair_count):
            w("const int32_t next = x + 1 < end ? x + 1 : x;")
            _pair(w, window, tile, names)
        return
    places, at_once = window.columns.places, window.rows_at_once
    with w.loop("y", "end", start="begin", step=at_once, trips=window.rows.places / at_once):
        if at_once == 2:
            w(f"const int32_t places = y + 1 < end ? {2 * places} : {places};")
        fill_band(w, window, names.inputs[0])
        last = "places" if at_once == 2 else str(places)
        with w.loop("x", last, step=2, trips=-(-at_once * places // 2)):
            w(f"const int32_t next = {f'x + 1 < {last} ? x + 1 : x' if places % 2 else 'x + 1'};")
            _pair(w, window, tile, names)


def _pair(w: Writer, window: Window, tile: Tile, names: Names) -> None:
    """All channels of positions x and `next`."""
    kind = tiles.TYPES[tile.scaling.bits]
    row = "" if window.flat else product("y", window.columns.places * window.filters)
    place = total(*([row] if row else []), product("x", window.filters))
    w(f"{kind} *to0 = {names.outputs[0]} + {place};")
    w(f"{kind} *to1 = to0 + {product('next - x', window.filters)};")
    w.bill(6)
    if tile.beside:
        w(f"const int8_t *beside0 = {names.inputs[1]} + {place};")
        w(f"const int8_t *beside1 = beside0 + {product('next - x', window.filters)};")
        w.bill(5)
    runs = tiles.runs(window.filters // window.groups)
    if window.groups == 1:
        lay_out(w, window, names.inputs[0], "")
        tiles.all_runs(w, tile, runs, names)
        return
    w(f"const int64_t *k = {names.packed['kernel']};")
    with w.loop("group", window.groups):
        lay_out(w, window, names.inputs[0], product("group", window.depth))
        for run in runs:
            tiles.advance(w, tile, run)


def _variant(layout: Layout) -> Variant:
    return Variant(
        f"patches_{layout.name}",
        NEEDS,
        partial(_accepts, layout),
        partial(_demand, layout),
        partial(_emit, layout),
        FUSES,
    )


VARIANTS = (_variant(Wide()), _variant(Packed()))

"""Dense layers on Cortex-M4 and M7: the inputs are laid out as pairs of 16 bits once, then all outputs read them.

Several rows of inputs are taken two at a time, as positions of a convolution are.
"""

from __future__ import annotations

from functools import partial
from math import prod

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, Overlap, Variant, only_integer
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp.inputs import C_TYPE, expand
from nnbuild.kernels.dsp.inputs import copy as copy_inputs
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.dsp.tile import Tile
from nnbuild.kernels.dsp.weights import Layout, Packed, Wide, padded_taps
from nnbuild.kernels.overlaps import SIZES, lead
from nnbuild.kernels.sums import sums_of
from nnbuild.kernels.window_loops import product
from nnbuild.ops.site import Site

NEEDS = frozenset({"armv7em_dsp"})
CLEAR = Row("{0} = 0;", 2)


def _accepts(layout: Layout, site: Site) -> str | None:
    refused = only_integer(site)
    if refused:
        return refused
    scaling = tiles.scaling_of(layout, site)
    return scaling if isinstance(scaling, str) else None


def _tile(layout: Layout, site: Site) -> Tile:
    scaling = tiles.scaling_of(layout, site)
    assert isinstance(scaling, Scaling)
    return Tile(layout, scaling, padded_taps(site.shape()[-1]) // 2, 2 if rows_of(site) > 1 else 1)


def rows_of(site: Site) -> int:
    return prod(site.shape()[:-1])


def _demand(layout: Layout, site: Site) -> Demand:
    tile, sums = _tile(layout, site), sums_of(site)
    depth, outputs = site.constant("kernel").shape
    dtype = site.inputs[0].dtype
    gathered = tile.positions * padded_taps(depth) * (2 if dtype == "int16" else 1) if depth % 4 else 0
    rows = rows_of(site)
    return Demand(
        extent=rows if rows > 1 else sum(run.count for run in tiles.runs(outputs)),
        scratch=-(-(tile.pairs * 4 * tile.positions + gathered) // 8) * 8,
        scratch_type="int64",
        packed={"kernel": tiles.pack(tile, sums, dtype, slice(0, outputs))},
        overlaps=(overlap_of(site),),
    )


def overlap_of(site: Site) -> Overlap:
    """A row's inputs, or two rows', are all read before any of their outputs is written."""
    rows, width = rows_of(site), SIZES[site.inputs[0].dtype]
    into, out = site.shape()[-1] * width, site.output_shape()[-1] * width
    if rows == 1:
        return Overlap(lead=-into, pieces=out)
    return Overlap(lead=lead(rows, lambda row: (row + 1) * out, lambda row: (row + 1) * into))


def _emit(layout: Layout, w: Writer, site: Site, names: Names) -> None:
    tile = _tile(layout, site)
    kind = C_TYPE[site.inputs[0].dtype]
    depth = site.shape()[-1]
    w(f"int64_t *const patch = {names.scratch};")
    if depth % 4:
        w(f"{kind} *const gathered = ({kind} *)(patch + {tile.pairs * tile.positions // 2});")
        with w.loop("i", padded_taps(depth) * tile.positions):
            w(w.use(CLEAR, "gathered[i]"))
    if tile.positions == 1:
        _one_row(w, site, names, tile)
    else:
        _rows_in_pairs(w, site, names, tile)


def _lay_out(w: Writer, site: Site, sources: tuple[str, ...]) -> None:
    """The inputs of a row or two; those whose number is no multiple of 4 by way of buffers that are filled up."""
    dtype, depth = site.inputs[0].dtype, site.shape()[-1]
    taps = padded_taps(depth)
    if depth != taps:
        buffers = ("gathered", f"gathered + {taps}")[: len(sources)]
        for buffer, source in zip(buffers, sources, strict=True):
            copy_inputs(w, dtype, buffer, source, depth)
        sources = buffers
    expand(w, dtype, "patch", sources, taps)


def _one_row(w: Writer, site: Site, names: Names, tile: Tile) -> None:
    """A piece of work is a block of outputs."""
    _lay_out(w, site, (names.inputs[0],))
    piece = weights = output = 0
    for run in tiles.runs(site.output_shape()[-1]):
        size = tile.size(run.width)
        with w.block(""):
            w(f"const int32_t first = begin > {piece} ? begin : {piece};")
            w(f"const int32_t last = end < {piece + run.count} ? end : {piece + run.count};")
            kernel = _from(names.packed["kernel"], weights - piece * size, size)
            to = _from(names.outputs[0], output - piece * run.real, run.real)
            with w.block("if (first < last)"):
                tiles.call(w, tile, run, kernel, (to,), "last - first")
        w.bill(8)
        piece += run.count
        weights += run.count * size
        output += run.count * run.real


def _from(array: str, start: int, step: int) -> str:
    """Where the block `first` of a run begins."""
    return f"{array} + {added(product('first', step), start)}"


def _rows_in_pairs(w: Writer, site: Site, names: Names, tile: Tile) -> None:
    rows, depth, outputs = rows_of(site), site.shape()[-1], site.output_shape()[-1]
    kind = tiles.TYPES[tile.scaling.bits]
    with w.loop("row", "end", start="begin", step=2, trips=-(-rows // 2)):
        w("const int32_t next = row + 1 < end ? row + 1 : row;")
        w(f"{kind} *to0 = {names.outputs[0]} + {product('row', outputs)};")
        w(f"{kind} *to1 = {names.outputs[0]} + {product('next', outputs)};")
        first, second = (f"{names.inputs[0]} + {product(index, depth)}" for index in ("row", "next"))
        _lay_out(w, site, (first, second))
        tiles.all_runs(w, tile, tiles.runs(outputs), names)


VARIANTS = tuple(
    Variant(
        f"patches_{layout.name}", NEEDS, partial(_accepts, layout), partial(_demand, layout), partial(_emit, layout)
    )
    for layout in (Wide(), Packed())
)

"""Convolution in tiles of positions by channels, where only the tiles at an edge are copied.

A tile that reaches over the left or right edge of the input has its inputs copied into scratch, with padding where
there are none, and is then computed as any other one. So there is one way to compute a tile, and little scratch.
Rows above and below the input are left out of the loop over `ky`, or are an edge too where padding counts. All
channels of a tile are computed before the next tile is begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels import overlaps
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.direct import Geometry, geometry
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import even
from nnbuild.kernels.window_loops import declare_taps, product, row_taps, total
from nnbuild.model.graph import Array
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

COPY = Row("{0} = {1};", 6)
UNROLLED = 2
"""Inputs of one turn of the inner loop, where their number divides."""


@dataclass(frozen=True)
class Run:
    """Tiles of one size that follow each other in a row of outputs: from position `first` on, `count` of them."""

    first: int
    pixels: int
    count: int


def tiles(shape: Geometry, registers: int) -> int:
    """The most positions of a tile for which sums, weights and an input have a register each."""
    return max(1, (registers - shape.lanes.vectors - 2) // shape.lanes.vectors)


def runs(shape: Geometry, registers: int) -> list[Run]:
    found, first = [], 0
    for pixels, count in even(shape.columns.places, tiles(shape, registers)):
        found.append(Run(first, pixels, count))
        first += pixels * count
    return found


def window(shape: Geometry, pixels: int) -> int:
    """Columns under a tile."""
    return (pixels - 1) * shape.columns.stride + spread(shape.columns.kernel, shape.columns.dilation)


def _copied(shape: Geometry, parts: list[Run], filled: bool) -> int:
    """Inputs of the widest tile that is copied."""
    widest = max(window(shape, run.pixels) for run in parts)
    inside = shape.columns.always_inside and (not filled or shape.rows.always_inside)
    return 0 if inside else shape.rows.kernel * widest * shape.channels


def demand(
    site: Site[Conv2D], lanes: Lanes, registers: int, weights: Array | None = None, blank: str | None = None
) -> Demand:
    """`weights` are given where the lanes want them otherwise than they are."""
    shape = geometry(site, lanes)
    kernel = site.constant("kernel") if weights is None else weights
    packed = dot.packed(kernel.reshape(-1, shape.filters), lanes, shape.groups)
    kind = site.inputs[0].dtype
    size = _copied(shape, runs(shape, registers), blank is not None) * np.dtype(kind).itemsize
    return Demand(shape.rows.places, size, kind, packed, overlaps.rows(site, shape.rows), rows=True)


def emit(w: Writer, site: Site[Conv2D], names: Names, lanes: Lanes, registers: int, blank: str | None = None) -> None:
    """`blank` is what padding counts as, if not nothing: then rows beyond the input are copied too."""
    shape = geometry(site, lanes)
    with w.loop("y", "end", start="begin", trips=shape.rows.places):
        w(f"const int32_t top = {shape.rows.position('y')};")
        if not shape.rows.always_inside and blank is None:
            declare_taps(w, shape.rows, "top", "ky_begin", "ky_end")
        for run in runs(shape, registers):
            if run.count == 1:
                with w.block(""):
                    _tile(w, shape, names, run, str(run.first), blank)
            else:
                last = run.first + run.pixels * run.count
                with w.loop("x", last, start=run.first, step=run.pixels):
                    _tile(w, shape, names, run, "x", blank)


def _tile(w: Writer, shape: Geometry, names: Names, run: Run, x: str, blank: str | None) -> None:
    """All channels of a tile. Its inputs begin at `first` in `from`, its rows of taps lie `line` apart."""
    columns, size, share = shape.columns, window(shape, run.pixels), _edge_share(shape, run, blank is not None)
    down, start = shape.rows.dilation * shape.row_size, f"{product('top', columns.size)} + left"
    w(f"const int32_t left = {columns.position(x)};")
    w(f"const {shape.lanes.input_type} *from = {names.inputs[0]};")
    w(f"int32_t first = {product(start, shape.channels)};")
    line = str(down)
    if share:
        line = "line"
        w(f"int32_t line = {down};")
        with w.block(f"if ({_beyond(shape, size, blank is not None)})"), w.trips(share):
            _copy(w, shape, names, size, blank)
            w(f"from = {names.scratch};")
            w("first = 0;")
            w(f"line = {size * shape.channels};")
    place = f"({product('y', columns.places)} + {x})"
    w(f"{shape.lanes.output_type} *to = {names.outputs[0]} + {place} * {shape.filters};")
    w(f"const {shape.lanes.weight_type} *taps = {names.packed['kernel']};")
    dot.declare_channels(w, shape.lanes, names.packed)
    if shape.groups > 1:
        with w.loop("group", shape.groups):
            _blocks(w, shape, run, line, blank is not None)
            w(f"first += {shape.depth};")
    else:
        _blocks(w, shape, run, line, blank is not None)


def _beyond(shape: Geometry, size: int, filled: bool) -> str:
    """Whether a tile of so many columns reaches over an edge."""
    last_row = shape.rows.size - spread(shape.rows.kernel, shape.rows.dilation)
    parts = [] if shape.columns.always_inside else [f"left < 0 || left > {shape.columns.size - size}"]
    if filled and not shape.rows.always_inside:
        parts.append(f"top < 0 || top > {last_row}")
    return " || ".join(parts)


def _edge_share(shape: Geometry, run: Run, filled: bool) -> float:
    """The share of a run's tiles that reach over an edge."""
    columns, size = shape.columns, window(shape, run.pixels)
    lefts = [(run.first + run.pixels * i) * columns.stride - columns.pad for i in range(run.count)]
    beside = sum(not 0 <= left <= columns.size - size for left in lefts) / run.count
    above = 1 - len(shape.rows.inside) / shape.rows.places if filled else 0.0
    return beside + (1 - beside) * above


def _copy(w: Writer, shape: Geometry, names: Names, size: int, blank: str | None) -> None:
    """The columns under a tile for every row of taps, or for every real one, with padding beside the input."""
    columns, rows, channels = shape.columns, shape.rows, shape.channels
    w(f"const int32_t before = left < 0 ? {product('-left', channels)} : 0;")
    end = f"{columns.size} - left < {size} ? {product(f'{columns.size} - left', channels)} : {size * channels}"
    w(f"const int32_t real_end = {end};")
    with _rows(w, shape, blank is not None):
        w(f"const int32_t row = first + {product('ky', rows.dilation * shape.row_size)};")
        w(f"{shape.lanes.input_type} *copy = {names.scratch} + {product('ky', size * channels)};")
        last = "real_end"
        if blank is not None and not rows.always_inside:
            w(f"const int32_t line_at = {total('top', product('ky', rows.dilation))};")
            w(f"const int32_t last = line_at >= 0 && line_at < {rows.size} ? real_end : 0;")
            last = "last"
        w("int32_t i = 0;")
        for stop, value, share in (
            (f"before && i < {last}", blank or "0", 0.1),
            (last, f"{names.inputs[0]}[row + i]", 0.8),
            (str(size * channels), blank or "0", 0.1),
        ):
            with w.block(f"for (; i < {stop}; ++i)"), w.trips(share * size * channels):
                w(w.use(COPY, "copy[i]", value))


@contextmanager
def _rows(w: Writer, shape: Geometry, filled: bool) -> Iterator[None]:
    """The loop `ky` over rows of taps."""
    with w.loop("ky", shape.rows.kernel) if filled else row_taps(w, shape.rows, "top"):
        yield


def _blocks(w: Writer, shape: Geometry, run: Run, line: str, filled: bool) -> None:
    for block, count in shape.blocks.classes():
        with w.loop("block", count) if count > 1 else w.block(""):
            _block(w, shape, block, run, line, filled)
            w(f"taps += {shape.taps_size(block)};")
            dot.next_block(w, shape.lanes, block)
            w(f"to += {block.channels};")


def _block(w: Writer, shape: Geometry, block: Block, run: Run, line: str, filled: bool) -> None:
    lanes, columns = shape.lanes, shape.columns
    dot.start(w, lanes, run.pixels, block)
    width = shape.depth * columns.kernel * block.vectors * lanes.lanes
    with _rows(w, shape, filled):
        w(f"const {lanes.input_type} *row = from + (first + {product('ky', int(line) if line.isdigit() else line)});")
        w(f"const {lanes.weight_type} *k = taps + {product('ky', width)};")
        if shape.contiguous:
            _along(w, shape, block, columns.kernel * shape.depth, run)
        else:
            with w.loop("kx", columns.kernel):
                _along(w, shape, block, shape.depth, run)
                w(f"row += {columns.dilation * shape.channels - shape.depth};")
    dot.store(w, lanes, block, [dot.offset("to", pixel * shape.filters) for pixel in range(run.pixels)])


def _along(w: Writer, shape: Geometry, block: Block, count: int, run: Run) -> None:
    """The inner loop: `count` inputs that lie side by side, at each position of the tile."""
    step = shape.columns.stride * shape.channels
    at_once = UNROLLED if count % UNROLLED == 0 else 1
    with w.loop("i", count, step=at_once):
        for part in range(at_once):
            with w.block(""):
                pointers = [dot.offset("row", pixel * step + part) for pixel in range(run.pixels)]
                dot.multiply(w, shape.lanes, block, pointers, dot.offset("k", part * block.vectors * shape.lanes.lanes))
        w(f"row += {at_once};")
        w(f"k += {at_once * block.vectors * shape.lanes.lanes};")

"""Convolution as dot products: the loops, the blocking and the borders, for any ISA's lanes.

For every output row and block of output channels the kernel walks along the row. Where a whole tile of positions
lies inside, all taps are taken; at the left and right border one position is computed with the taps that fall on
real inputs. Rows above and below the input are left out of the loop over `ky`.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels import overlaps
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block, Blocks
from nnbuild.kernels.window_loops import Axis, declare_taps, product, row_taps, total, window_axes
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Geometry:
    rows: Axis
    columns: Axis
    channels: int
    depth: int
    filters: int
    groups: int
    lanes: Lanes

    @property
    def blocks(self) -> Blocks:
        return dot.divide(self.filters // self.groups, self.lanes)

    @property
    def contiguous(self) -> bool:
        """The inputs under one row of taps lie side by side."""
        return self.groups == 1 and self.columns.dilation == 1

    @property
    def row_size(self) -> int:
        return self.columns.size * self.channels

    def taps_size(self, block: Block) -> int:
        """Weights of one block."""
        return self.rows.kernel * self.columns.kernel * self.depth * block.vectors * self.lanes.lanes


def geometry(site: Site[Conv2D], lanes: Lanes) -> Geometry:
    attributes = site.attributes
    rows, columns = window_axes(site)
    depth, filters = site.constant("kernel").shape[2:]
    return Geometry(
        rows,
        columns,
        site.shape()[2],
        depth,
        filters,
        attributes.groups,
        lanes,
    )


def demand(site: Site[Conv2D], lanes: Lanes) -> Demand:
    shape = geometry(site, lanes)
    weights = site.constant("kernel").reshape(-1, shape.filters)
    packed = dot.packed(weights, lanes, shape.groups)
    return Demand(extent=shape.rows.places, packed=packed, overlaps=overlaps.rows(site, shape.rows), rows=True)


def emit(w: Writer, site: Site[Conv2D], names: Names, lanes: Lanes) -> None:
    shape = geometry(site, lanes)
    with w.loop("y", "end", start="begin", trips=shape.rows.places):
        w(f"const int32_t top = {shape.rows.position('y')};")
        if not shape.rows.always_inside:
            declare_taps(w, shape.rows, "top", "ky_begin", "ky_end")
        w(f"const {lanes.input_type} *from = {names.inputs[0]};")
        w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('y', shape.columns.places, shape.filters)};")
        if shape.groups > 1:
            with w.loop("group", shape.groups):
                _blocks(w, shape, names)
                w(f"from += {shape.depth};")
        else:
            _blocks(w, shape, names)


def _blocks(w: Writer, shape: Geometry, names: Names) -> None:
    for block, count in shape.blocks.classes():
        if count > 1:
            with w.loop("block", count):
                _row(w, shape, block, names)
        else:
            _row(w, shape, block, names)


def _row(w: Writer, shape: Geometry, block: Block, names: Names) -> None:
    """One block of channels along one output row."""
    places, inside = shape.columns.places, shape.columns.inside
    pixels = min(shape.lanes.pixels, max(1, len(inside)))
    tiles, singles = divmod(len(inside), pixels)
    singles += places - len(inside)
    with w.block(f"for (int32_t x = 0; x < {places};)"):
        w(f"const int32_t left = {shape.columns.position('x')};")
        if singles == 0:
            with w.trips(tiles):
                _whole_tile(w, shape, block, names, pixels)
        elif tiles == 0:
            with w.trips(singles):
                _border_position(w, shape, block, names)
        else:
            with w.block(f"if ({_within(inside, pixels, places)})"), w.trips(tiles):
                _whole_tile(w, shape, block, names, pixels)
            with w.block("else"), w.trips(singles):
                _border_position(w, shape, block, names)
    w(f"taps += {shape.taps_size(block)};")
    dot.next_block(w, shape.lanes, block)
    w(f"to += {block.channels};")


def _within(inside: range, pixels: int, places: int) -> str:
    low = [f"x >= {inside.start}"] if inside.start > 0 else []
    high = [f"x <= {inside.stop - pixels}"] if inside.stop - pixels < places - 1 else []
    return " && ".join(low + high) or "1"


def _whole_tile(w: Writer, shape: Geometry, block: Block, names: Names, pixels: int) -> None:
    lanes, columns = shape.lanes, shape.columns
    dot.start(w, lanes, pixels, block)
    step = columns.stride * shape.channels
    with row_taps(w, shape.rows, "top"):
        _tap_pointers(w, shape, block, 0)
        if shape.contiguous:
            _along(w, shape, block, columns.kernel * shape.depth, pixels, step)
        else:
            with w.loop("kx", columns.kernel):
                _along(w, shape, block, shape.depth, pixels, step)
                w(f"row += {columns.dilation * shape.channels};")
    dot.store(w, lanes, block, [_output(shape, pixel) for pixel in range(pixels)])
    w(f"x += {pixels};")


def _border_position(w: Writer, shape: Geometry, block: Block, names: Names) -> None:
    lanes, columns = shape.lanes, shape.columns
    first: str | int = 0 if columns.always_inside else "kx_begin"
    last: str | int = columns.kernel if columns.always_inside else "kx_end"
    if not columns.always_inside:
        declare_taps(w, columns, "left", "kx_begin", "kx_end")
    dot.start(w, lanes, 1, block)
    with row_taps(w, shape.rows, "top"):
        _tap_pointers(w, shape, block, first)
        if shape.contiguous:
            w(f"const int32_t run = {product(f'{last} - {first}', shape.depth)};")
            _along(w, shape, block, "run", 1, 0, trips=columns.kernel * shape.depth)
        else:
            with w.loop("kx", last, start=first, trips=columns.kernel):
                _along(w, shape, block, shape.depth, 1, 0)
                w(f"row += {columns.dilation * shape.channels};")
    dot.store(w, lanes, block, [_output(shape, 0)])
    w("x += 1;")


def _tap_pointers(w: Writer, shape: Geometry, block: Block, kx: str | int) -> None:
    """`row` is the input and `k` the weights under the first column tap of row tap `ky`."""
    columns = shape.columns
    line = product("ky", shape.rows.dilation)
    column = total("left", product(kx, columns.dilation))
    line_start = product(f"top + {line}", shape.row_size)
    w(f"const {shape.lanes.input_type} *row = from + {line_start} + {product(column, shape.channels)};")
    width = shape.depth * block.vectors * shape.lanes.lanes
    first = total(product("ky", columns.kernel * width), product(kx, width))
    w(f"const {shape.lanes.weight_type} *k = taps + {first};")


def _along(
    w: Writer, shape: Geometry, block: Block, count: int | str, pixels: int, step: int, trips: float | None = None
) -> None:
    """The inner loop: `count` inputs that lie side by side, at each of `pixels` positions `step` apart."""
    with w.loop("i", count, trips=trips):
        dot.multiply(w, shape.lanes, block, [f"row + {total(str(p * step), 'i')}" for p in range(pixels)], "k")
        w(f"k += {block.vectors * shape.lanes.lanes};")


def _output(shape: Geometry, pixel: int) -> str:
    return f"to + {product(total('x', str(pixel)), shape.filters)}"

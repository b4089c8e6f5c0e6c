"""Convolution in tiles of positions by vectors of channels, for lanes with many registers.

Rows with padding are copied into scratch first, so that no tile has a border at its left or right. Taps above and
below the input are left out of the loop over `ky`, except where a tile covers several rows, as with a pool, or
where the rows are so short that the copy may as well hold them. A convolution of one tap has no rows at all: its
positions are one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes, TileLanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.direct import Geometry, geometry
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import Tile, best_pixels, even, stall
from nnbuild.kernels.vector_tail import beside_name
from nnbuild.kernels.window_loops import Axis, declare_taps, moved, product, total
from nnbuild.model.graph import Array
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

FEW_STEPS = 40
"""Up to so many steps of a tile the rows above and below are copied too, and their loop has fixed bounds."""
NEAR = 96 * 1024
"""Bytes of weights that stay close to the core while all are used for every row."""


@dataclass(frozen=True)
class Layout:
    """Everything that is decided before printing.

    pool: the window of a pool that is computed with it. `flat`: all positions are one line.
    copied: the input is copied, with `left` zeros before and `right` after every row; `above` rows of zeros too.
    """

    shape: Geometry
    pool: Pair
    flat: bool
    copied: bool
    above: bool
    registers: int

    @property
    def left(self) -> int:
        return self.shape.columns.pad if self.copied else 0

    @property
    def width(self) -> int:
        """Positions in a row as it is read."""
        if not self.copied:
            return self.shape.columns.size
        return max(reach(self.shape.columns), self.left + self.shape.columns.size)

    @property
    def row_size(self) -> int:
        return self.width * self.shape.channels

    @property
    def height(self) -> int:
        rows = self.shape.rows
        return max(reach(rows), rows.pad + rows.size) if self.above else rows.size

    @property
    def bounded(self) -> bool:
        """Whether the taps of a row must be counted at run time."""
        return not self.above and not self.shape.rows.always_inside

    @property
    def runs(self) -> int:
        """Runs of inputs that lie side by side, under one row of taps."""
        return 1 if self.shape.contiguous else self.shape.columns.kernel

    @property
    def run(self) -> int:
        return self.shape.depth * (self.shape.columns.kernel if self.shape.contiguous else 1)

    @property
    def run_steps(self) -> int:
        return -(-self.run // self.shape.lanes.depth)

    @property
    def steps(self) -> int:
        return self.shape.rows.kernel * self.runs * self.run_steps

    @property
    def area(self) -> int:
        return self.pool[0] * self.pool[1]

    @property
    def lines(self) -> int:
        return 1 if self.flat else self.shape.rows.places // self.pool[0]

    @property
    def places(self) -> int:
        """Outputs of one line."""
        columns = self.shape.columns.places // self.pool[1]
        return columns * self.shape.rows.places if self.flat else columns

    def tile_of(self, block: Block) -> Tile:
        """In one line, all blocks must divide alike."""
        vectors = self.shape.blocks.classes()[0][0].vectors if self.flat else block.vectors
        pixels = best_pixels(self.places, vectors, self.steps, self.registers, self.area)
        return Tile(pixels, block.vectors, self.area)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """How the one line of a flat convolution divides."""
        return even(self.places, self.tile_of(self.shape.blocks.classes()[0][0]).pixels)

    @property
    def block_first(self) -> bool:
        """Whether a block of channels is computed for all rows before the next one is."""
        return self.steps * self.shape.lanes.depth * self.shape.filters * 4 > NEAR

    def fetches(self, block: Block) -> bool:
        """Whether the weights of the next block are called for while this one is computed."""
        full = self.shape.blocks
        return self.block_first and block == full.full and full.count > 1

    def weights(self, block: Block) -> int:
        return self.steps * self.shape.lanes.depth * block.vectors * self.shape.lanes.lanes


def reach(axis: Axis) -> int:
    """How many inputs, padded ones too, all windows together reach over."""
    return (axis.places - 1) * axis.stride + spread(axis.kernel, axis.dilation)


def layout(site: Site[Conv2D], lanes: Lanes, registers: int, pool: Pair = (1, 1)) -> Layout:
    shape = geometry(site, lanes)
    single = shape.rows.kernel == shape.columns.kernel == 1
    aligned = (shape.depth * (shape.columns.kernel if shape.contiguous else 1)) % lanes.depth == 0
    beyond = not shape.columns.always_inside or not aligned
    plain = single and shape.rows.stride == shape.columns.stride == 1 and pool == (1, 1)
    flat = plain and not beyond and shape.rows.always_inside
    draft = Layout(shape, pool, flat, beyond, False, registers)
    rows_too = not shape.rows.always_inside and (pool[0] > 1 or (beyond and draft.steps <= FEW_STEPS))
    return Layout(shape, pool, flat, beyond or rows_too, rows_too, registers)


def demand(site: Site, plan: Layout) -> Demand:
    size = plan.height * plan.row_size + plan.shape.lanes.depth if plan.copied else 0
    extent = sum(count for _, count in plan.parts) if plan.flat else plan.lines
    lanes = plan.shape.lanes
    assert isinstance(lanes, TileLanes)
    packed = dot.packed(_weights(site, plan), lanes, plan.shape.groups) | dict(lanes.row_constants)
    return Demand(extent=extent, scratch=4 * size, packed=packed)


def _weights(site: Site, plan: Layout) -> Array:
    """[taps, out], with every run filled up to whole steps."""
    kernel = site.constant("kernel")
    runs = kernel.reshape(plan.shape.rows.kernel * plan.runs, plan.run, plan.shape.filters)
    short = plan.run_steps * plan.shape.lanes.depth - plan.run
    filled: Array = np.pad(runs, ((0, 0), (0, short), (0, 0)))
    return filled.reshape(-1, plan.shape.filters)


def emit(w: Writer, names: Names, plan: Layout) -> None:
    if plan.copied:
        copy_rows(w, plan, names)
    if plan.block_first:
        _blocks(w, plan, names, lambda block: _lines(w, plan, lambda size: _tiles(w, plan, block, names, size)))
    else:
        _lines(w, plan, lambda size: _blocks(w, plan, names, lambda block: _tiles(w, plan, block, names, size)))


def _blocks(w: Writer, plan: Layout, names: Names, body: Callable[[Block], None]) -> None:
    """The body for every block of channels; `taps` are its weights and `channel` is its first output channel."""
    shape = plan.shape
    w(f"const {shape.lanes.weight_type} *taps = {names.packed['kernel']};")
    dot.declare_channels(w, shape.lanes, names.packed)
    w("int32_t channel = 0;")
    with w.loop("group", shape.groups) if shape.groups > 1 else nullcontext():
        for block, count in shape.blocks.classes():
            with _repeated(w, "block", count):
                if plan.fetches(block):
                    size = plan.weights(block)
                    w(f"const int32_t ahead = block < {count - 1} ? {size} : 0; /* to the weights of the next block */")
                body(block)
                w(f"taps += {plan.weights(block)};")
                dot.next_block(w, shape.lanes, block)
                w(f"channel += {block.channels};")


@contextmanager
def _repeated(w: Writer, variable: str, count: int) -> Iterator[None]:
    """A loop, or a block of its own where there is one turn only."""
    with w.loop(variable, count) if count > 1 else w.block(""):
        yield


def _lines(w: Writer, plan: Layout, body: Callable[[int | None], None]) -> None:
    """The body for every row of outputs, or for every tile of the one line, whose size it is told."""
    if plan.flat:
        _parts(w, plan, body)
        return
    rows = plan.shape.rows
    with w.loop("y", "end", start="begin", trips=plan.lines):
        scaled = product("y", plan.pool[0] * rows.stride)
        w(f"const int32_t top = {scaled if plan.above or not rows.pad else f'{scaled} - {rows.pad}'};")
        if plan.bounded:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        body(None)


def _parts(w: Writer, plan: Layout, body: Callable[[int | None], None]) -> None:
    tile = place = 0
    for size, count in plan.parts:
        last = tile + count
        start = f"begin > {tile} ? begin : {tile}" if tile else "begin"
        stop = "end" if (size, count) == plan.parts[-1] else f"end && y < {last}"
        with w.loop("y", stop, start=start, trips=count):
            w(f"const int32_t x = {total(product('y', size), str(place - tile * size))};")
            body(size)
        tile, place = last, place + size * count


def _tiles(w: Writer, plan: Layout, block: Block, names: Names, size: int | None) -> None:
    """One line of a block of channels; of the one line of a flat convolution, only the tile at `x`."""
    if size is not None:
        _tile(w, plan, block, names, size, "x")
        return
    place = 0
    for pixels, count in even(plan.places, plan.tile_of(block).pixels):
        if count == 1:
            with w.block(""):
                _tile(w, plan, block, names, pixels, str(place))
        else:
            with w.loop("x", place + pixels * count, start=place, step=pixels):
                _tile(w, plan, block, names, pixels, "x")
        place += pixels * count


def _tile(w: Writer, plan: Layout, block: Block, names: Names, pixels: int, x: str) -> None:
    shape, lanes = plan.shape, plan.shape.lanes
    assert isinstance(lanes, TileLanes)
    windows = [
        [(row, pixel * plan.pool[1] + column) for row in range(plan.pool[0]) for column in range(plan.pool[1])]
        for pixel in range(pixels)
    ]
    positions = [position for window in windows for position in window]
    steps = [
        row * shape.rows.stride * plan.row_size + column * shape.columns.stride * shape.channels
        for row, column in positions
    ]
    dot.start(w, lanes, len(positions), block)
    _multiply(w, plan, block, names, steps, x)
    place = x if plan.flat else total(product("y", plan.places), x)
    w(f"{lanes.output_type} *to = {names.outputs[0]} + {product(place, shape.filters)} + channel;")
    for operand in range(1, len(names.inputs)):
        beside = f"{names.inputs[operand]} + {product(place, shape.filters)} + channel"
        w(f"const {lanes.input_type} *{beside_name(operand)} = {beside};")
    if lanes.together > 1:
        _store_rows(w, plan, lanes, pixels)
    else:
        _store(w, plan, lanes, block, pixels)


def _store(w: Writer, plan: Layout, lanes: TileLanes, block: Block, pixels: int) -> None:
    """Position by position and vector by vector."""
    for pixel in range(pixels):
        for vector in range(block.vectors):
            window = [f"sum{pixel * plan.area + i}{vector}" for i in range(plan.area)]
            channel = vector * lanes.lanes
            for each in window:
                lanes.gather(w, each, str(channel))
            if plan.area > 1:
                lanes.fold(w, window)
            real = min(lanes.lanes, block.channels - channel)
            lanes.store(w, window[0], dot.offset("to", pixel * plan.shape.filters + channel), str(channel), real)


def _store_rows(w: Writer, plan: Layout, lanes: TileLanes, pixels: int) -> None:
    """All channels of several neighbouring positions at once: their outputs lie side by side."""
    for first in range(0, pixels, lanes.together):
        some = range(first, min(first + lanes.together, pixels))
        rows = [[f"sum{pixel * plan.area + i}0" for pixel in some] for i in range(plan.area)]
        for row in rows:
            lanes.gather_row(w, row)
        result, count = rows[0][0], len(some) * plan.shape.filters
        if plan.area > 1:
            lanes.fold(w, [row[0] for row in rows])
        lanes.add_bias(w, result, count)
        lanes.store(w, result, dot.offset("to", first * plan.shape.filters), "0", count)


def _multiply(w: Writer, plan: Layout, block: Block, names: Names, steps: Sequence[int], x: str) -> None:
    """All taps of a tile whose positions lie `steps` apart."""
    shape, rows = plan.shape, plan.shape.rows
    if plan.flat:
        with w.block(""):
            _pointers(w, plan, block, names, product(x, shape.channels), "taps")
            _along(w, plan, block, steps)
        return
    first, last = ("ky_begin", "ky_end") if plan.bounded else ("0", rows.kernel)
    with w.loop("ky", last, start=first, trips=rows.kernel):
        line = product(total("top", product("ky", rows.dilation)), plan.row_size)
        column = product(x, plan.pool[1] * shape.columns.stride * shape.channels)
        width = plan.weights(block) // rows.kernel
        _pointers(w, plan, block, names, total(line, column), f"taps + {product('ky', width)}")
        if plan.runs > 1:
            with w.loop("kx", plan.runs):
                _along(w, plan, block, steps)
                w(f"row += {shape.columns.dilation * shape.channels};")
        else:
            _along(w, plan, block, steps)


def _pointers(w: Writer, plan: Layout, block: Block, names: Names, place: str, weights: str) -> None:
    """`row` is the input under the first tap of the first position, `k` its weights."""
    source = names.scratch if plan.copied else names.inputs[0]
    group = product("group", plan.shape.depth) if plan.shape.groups > 1 else "0"
    w(f"const {plan.shape.lanes.input_type} *row = {source} + {total(place, group)};")
    w(f"const {plan.shape.lanes.weight_type} *k = {weights};")


def _along(w: Writer, plan: Layout, block: Block, steps: Sequence[int]) -> None:
    """A run of inputs that lie side by side."""
    lanes = plan.shape.lanes
    assert isinstance(lanes, TileLanes)
    with w.loop("i", plan.run_steps * lanes.depth, step=lanes.depth):
        pointers = [f"row + {total(str(step), 'i')}" for step in steps]
        dot.multiply(w, lanes, block, pointers, "k")
        w.bill(stall(len(steps), block.vectors))
        if plan.fetches(block):
            for vector in range(block.vectors):
                lanes.fetch(w, f"k + ahead + {vector * lanes.lanes * lanes.depth}")
        w(f"k += {block.vectors * lanes.lanes * lanes.depth};")


def copy_rows(w: Writer, plan: Layout, names: Names, lines: int = 1) -> None:
    """The input rows that the range needs, of so many lines each, with zeros around them."""
    rows, lanes = plan.shape.rows, plan.shape.lanes
    assert isinstance(lanes, TileLanes)
    outputs = plan.pool[0] * lines
    step = outputs * rows.stride
    window = (outputs - 1) * rows.stride + spread(rows.kernel, rows.dilation)
    pad = 0 if plan.above else rows.pad
    first, last = moved(product("begin", step), -pad), moved(product("end", step), window - step - pad)
    w(f"int32_t line = {first};")
    w(f"int32_t last_line = {last};")
    if pad:
        w("if (line < 0) line = 0;")
    if not plan.above:
        w(f"if (last_line > {rows.size}) last_line = {rows.size};")
    size = plan.shape.columns.size * plan.shape.channels
    before = plan.left * plan.shape.channels
    with w.trips(plan.height), w.block("for (; line < last_line; ++line)"):
        w(f"{lanes.input_type} *copy = {names.scratch} + {product('line', plan.row_size)};")
        if plan.above:
            with w.block(f"if (line < {rows.pad} || line >= {rows.pad + rows.size})"), w.trips(0.0):
                lanes.copy(w, "copy", "", plan.row_size)
                w("continue;")
        lanes.copy(w, "copy", "", before)
        real = f"line - {rows.pad}" if plan.above and rows.pad else "line"
        lanes.copy(w, dot.offset("copy", before), f"{names.inputs[0]} + {product(real, size)}", size)
        lanes.copy(w, dot.offset("copy", before + size), "", plan.row_size - before - size)
    if lanes.depth > 1:
        lanes.copy(w, f"{names.scratch} + {product('last_line', plan.row_size)}", "", lanes.depth)

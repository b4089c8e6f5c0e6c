"""Convolution in tiles of positions by vectors of channels, for lanes with many registers.

Padded rows are first copied into scratch, so that no tile has a border at its left or right. The loop over `ky` skips
taps above and below the input, except where a tile covers several rows, as with a pool, or rows are so short that the
copy includes them. A convolution of one tap has no rows: its positions are one line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.vector_epilogue import declare_outputs
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block, Blocks
from nnbuild.kernels.loops.tiling import Tile, best_pixels, stall
from nnbuild.kernels.loops.window import Strip, Window, strips, window_of
from nnbuild.kernels.loops.window_loops import declare_taps, each_strip, repeated
from nnbuild.ops.site import Site

FEW_STEPS = 40
"""Steps of a tile up to which padding rows are copied too, so that the loop has fixed bounds."""
NEAR = 96 * 1024
"""Bytes of weights that stay near the core while all are used for every row."""
FAR_MORE = 2
"""Weights per input from which the work divides by weights rather than by inputs."""


@dataclass(frozen=True, eq=False)
class VectorTiles:
    """`flat`: all positions are one line.

    copied: the input is copied, with zeros around every row; `above`: with rows of zeros too.
    """

    site: Site
    lanes: VectorLanes
    registers: int
    window: Window
    copied: bool
    above: bool

    @property
    def flat(self) -> bool:
        return self.window.flat and not self.copied

    @property
    def width(self) -> int:
        """Positions in a row as read."""
        return self.window.columns.padded if self.copied else self.window.columns.size

    @property
    def row_size(self) -> int:
        return self.width * self.window.channels

    @property
    def height(self) -> int:
        return self.window.rows.padded if self.above else self.window.rows.size

    @property
    def elements(self) -> int:
        """Elements of the copy."""
        return self.height * self.row_size if self.copied else 0

    @property
    def bounded(self) -> bool:
        """Whether the taps of a row must be counted at run time."""
        return not self.above and not self.window.rows.always_inside

    @property
    def run_steps(self) -> int:
        return -(-self.window.run // self.lanes.depth)

    @property
    def steps(self) -> int:
        return self.window.rows.kernel * self.window.runs * self.run_steps

    @property
    def lines(self) -> int:
        return 1 if self.flat else self.window.outputs[0]

    @property
    def places(self) -> int:
        """Outputs of one line."""
        rows, columns = self.window.outputs
        return columns * rows if self.flat else columns

    @cached_property
    def blocks(self) -> Blocks:
        return dot.divide(self.window.share, self.lanes)

    def tile_of(self, block: Block) -> Tile:
        """The tile of a block; on one line, all blocks must divide alike."""
        vectors = self.blocks.classes()[0][0].vectors if self.flat else block.vectors
        loaded = self.lanes.loaded
        pixels = best_pixels(self.places, vectors, self.steps, self.registers, self.window.area, loaded)
        return Tile(pixels, block.vectors, self.window.area)

    def strips(self, block: Block) -> list[Strip]:
        return strips(self.places, self.tile_of(block).pixels)

    @property
    def parts(self) -> list[Strip]:
        """The tiles of a flat convolution's one line."""
        return self.strips(self.blocks.classes()[0][0])

    @property
    def work_items(self) -> int:
        """Work items of a block of channels: its lines, or the tiles of the one line."""
        return sum(part.count for part in self.parts) if self.flat else self.lines

    @property
    def by_block(self) -> bool:
        """Whether work items are ordered by block. Cores then divide the weights, which are larger than the inputs."""
        weights, inputs = self.steps * self.lanes.depth * self.window.filters, self.window.rows.size * self.window.line
        several = self.window.groups == 1 and self.blocks.number > 1
        return self.block_first and several and weights > FAR_MORE * inputs

    @property
    def block_first(self) -> bool:
        """Whether a block of channels is computed for all rows before the next block."""
        return self.steps * self.lanes.depth * self.window.filters * 4 > NEAR

    def fetches(self, block: Block) -> bool:
        """Whether the next block's weights are prefetched while this one is computed."""
        return self.block_first and self.lanes.loaded == 1 and block == self.blocks.full and self.blocks.count > 1

    def weights(self, block: Block) -> int:
        return self.steps * self.lanes.depth * block.vectors * self.lanes.lanes

    def demand(self) -> Demand:
        extent = self.work_items * (self.blocks.number if self.by_block else 1)
        weights = dot.filled(self.site.constant("kernel"), self.window, self.lanes.depth)
        packed = dot.packed(weights, self.lanes, self.window.groups) | self.lanes.row_constants
        beyond = self.lanes.depth * self.lanes.loaded if self.copied else 0  # read by the last step
        return Demand(extent=extent, scratch=4 * (self.elements + beyond), packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        if self.copied:
            self.copy_rows(w, names, between=("0", str(self.lines)) if self.by_block else ("begin", "end"))
        if self.by_block:
            self._some_blocks(w, names)
        elif self.block_first:
            self._each_block(w, names, lambda block: self._lines(w, partial(self._tiles, w, block, names)))
        else:
            self._lines(w, lambda size: self._each_block(w, names, lambda block: self._tiles(w, block, names, size)))

    def _some_blocks(self, w: Writer, names: Names) -> None:
        """The blocks of channels in the range of work items, the first and last perhaps in part."""
        full, each, done = self.blocks.full, self.work_items, 0
        for block, count in self.blocks.classes():
            first, last = f"begin / {each}", f"(end + {each - 1}) / {each}"
            first = f"{first} > {done} ? {first} : {done}" if done else first
            last = f"({last} < {count} ? {last} : {count})" if done + count < self.blocks.number else last
            with w.loop("block", last, start=first, trips=count):
                at = f"block * ({self.weights(full)})"
                w(f"const {self.lanes.weight_type} *taps = {names.packed['kernel']} + {at};")
                width = full.vectors * self.lanes.lanes
                dot.declare_channels(w, self.lanes, names.packed, f" + block * {width}")
                w(f"const int32_t channel = block * {full.channels};")
                w(f"const int32_t done = block * {each};")
                w("const int32_t first = begin > done ? begin - done : 0;")
                w(f"const int32_t last = end - done < {each} ? end - done : {each};")
                w.bill(10)
                if self.fetches(block):
                    self._ahead(w, count, self.weights(block))
                self._lines(w, partial(self._tiles, w, block, names), ("first", "last"))
            done += count

    def _ahead(self, w: Writer, count: int, size: int) -> None:
        w(f"const int32_t ahead = block < {count - 1} ? {size} : 0; /* to the weights of the next block */")

    def _each_block(self, w: Writer, names: Names, body: Callable[[Block], None]) -> None:
        """The body for every block of channels; `taps` points at its weights, `channel` is its first output channel."""
        w(f"const {self.lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, self.lanes, names.packed)
        w("int32_t channel = 0;")
        with repeated(w, "group", self.window.groups):
            for block, count in self.blocks.classes():
                with repeated(w, "block", count, block=True):
                    size = self.weights(block)
                    if self.fetches(block):
                        self._ahead(w, count, size)
                    body(block)
                    w(f"taps += {size};")
                    dot.next_block(w, self.lanes, block)
                    w(f"channel += {block.channels};")

    def _lines(
        self, w: Writer, body: Callable[[int | None], None], between: tuple[str, str] = ("begin", "end")
    ) -> None:
        """The body for every output row, or for every tile of the one line, given its size."""
        if self.flat:
            self._parts(w, body, *between)
            return
        with w.loop("y", between[1], start=between[0], trips=self.lines):
            self.declare_top(w)
            body(None)

    def declare_top(self, w: Writer) -> None:
        """Declares the first input row under an output row, and its real taps."""
        rows = self.window.rows
        w(f"const int32_t top = y * {self.window.row_step} - {0 if self.above else rows.pad};")
        if self.bounded:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")

    def _parts(self, w: Writer, body: Callable[[int | None], None], begin: str, end: str) -> None:
        tile = 0
        for part in self.parts:
            last = tile + part.count
            start = f"{begin} > {tile} ? {begin} : {tile}" if tile else begin
            stop = end if part == self.parts[-1] else f"{end} && y < {last}"
            with w.loop("y", stop, start=start, trips=part.count):
                w(f"const int32_t x = y * {part.size} + {part.place - tile * part.size};")
                body(part.size)
            tile = last

    def _tiles(self, w: Writer, block: Block, names: Names, size: int | None) -> None:
        """One line of a block of channels; in a flat convolution, only the tile at `x`."""
        if size is not None:
            self._tile(w, block, names, size, "x")
            return
        for strip in self.strips(block):
            with each_strip(w, strip) as x:
                self._tile(w, block, names, strip.size, x)

    def _tile(self, w: Writer, block: Block, names: Names, pixels: int, x: str) -> None:
        lanes, filters = self.lanes, self.window.filters
        steps = self.window.positions(pixels, self.row_size)
        dot.start(w, lanes, len(steps), block)
        self._multiply(w, block, names, steps, x)
        dot.settle(w, lanes.floats, "f_settled", len(steps), block)
        place = f"({x if self.flat else f'y * {self.places} + {x}'}) * {filters}"
        declare_outputs(w, lanes.output_type, names, f"{place} + channel")
        if lanes.together > 1:
            self._store_rows(w, pixels)
        else:
            self._store(w, block, pixels)

    def _store(self, w: Writer, block: Block, pixels: int) -> None:
        """Stores position by position, vector by vector."""
        lanes, area = self.lanes, self.window.area
        for pixel in range(pixels):
            for vector in range(block.vectors):
                sums = [f"sum{pixel * area + i}{vector}" for i in range(area)]
                channel = vector * lanes.lanes
                for each in sums:
                    lanes.gather(w, each, str(channel))
                if area > 1:
                    lanes.fold(w, sums)
                real = min(lanes.lanes, block.channels - channel)
                to = f"to + {pixel * self.window.filters + channel}"
                lanes.store(w, sums[0], to, str(channel), real)

    def _store_rows(self, w: Writer, pixels: int) -> None:
        """Stores all channels of several neighbouring positions at once: their outputs are contiguous."""
        lanes, area = self.lanes, self.window.area
        for first in range(0, pixels, lanes.together):
            some = range(first, min(first + lanes.together, pixels))
            rows = [[f"sum{pixel * area + i}0" for pixel in some] for i in range(area)]
            for row in rows:
                lanes.gather_row(w, row)
            result, count = rows[0][0], len(some) * self.window.filters
            if area > 1:
                lanes.fold(w, [row[0] for row in rows])
            lanes.add_bias(w, result, count)
            lanes.store(w, result, f"to + {first * self.window.filters}", "0", count)

    def _multiply(self, w: Writer, block: Block, names: Names, steps: list[int], x: str) -> None:
        """All taps of a tile whose positions lie `steps` apart."""
        window, rows = self.window, self.window.rows
        if self.flat:
            with w.block(""):
                self._pointers(w, names, f"({x}) * {window.channels}", "taps")
                self._along(w, block, steps)
            return
        first, last = ("ky_begin", "ky_end") if self.bounded else ("0", rows.kernel)
        with w.loop("ky", last, start=first, trips=rows.kernel):
            line = f"(top + ky * {rows.dilation}) * {self.row_size}"
            width = self.weights(block) // rows.kernel
            self._pointers(w, names, f"{line} + ({x}) * {window.step}", f"taps + ky * {width}")
            with repeated(w, "kx", window.runs):
                self._along(w, block, steps)
                if window.runs > 1:
                    w(f"row += {window.columns.dilation * window.channels};")

    def _pointers(self, w: Writer, names: Names, place: str, weights: str) -> None:
        """Declares `row`, the input under the first tap of the first position, and `k`, its weights."""
        source = names.scratch if self.copied else names.inputs[0]
        group = "group" if self.window.groups > 1 else "0"
        w(f"const {self.lanes.input_type} *row = {source} + {place} + {group} * {self.window.depth};")
        w(f"const {self.lanes.weight_type} *k = {weights};")

    def _along(self, w: Writer, block: Block, steps: list[int]) -> None:
        """A contiguous run of inputs."""
        lanes, width = self.lanes, self.lanes.lanes * self.lanes.depth
        if lanes.loaded > 1:
            dot.along(w, lanes, block, self.run_steps, lambda i: [f"row + {step} + {i}" for step in steps])
            return
        with w.loop("i", self.run_steps * lanes.depth, step=lanes.depth):
            dot.multiply(w, lanes, block, [f"row + {step} + i" for step in steps], "k")
            w.bill(stall(len(steps), block.vectors))
            if self.fetches(block):
                for vector in range(block.vectors):
                    lanes.fetch(w, f"k + ahead + {vector * width}")
            w(f"k += {block.vectors * width};")

    def copy_rows(self, w: Writer, names: Names, lines: int = 1, between: tuple[str, str] = ("begin", "end")) -> None:
        """Copies the input rows that the range reads, of so many lines each, with zeros around them."""
        window, rows, lanes = self.window, self.window.rows, self.lanes
        step, pad = lines * window.row_step, 0 if self.above else rows.pad
        w(f"int32_t line = {between[0]} * {step} - {pad};")
        w(f"int32_t last_line = ({between[1]}) * {step} + {window.rows_under(lines) - step - pad};")
        if pad:
            w("if (line < 0) line = 0;")
        if not self.above:
            w(f"if (last_line > {rows.size}) last_line = {rows.size};")
        before = window.columns.pad * window.channels
        with w.trips(self.height), w.block("for (; line < last_line; ++line)"):
            w(f"{lanes.input_type} *copy = {names.scratch} + line * {self.row_size};")
            if self.above:
                with w.block(f"if (line < {rows.pad} || line >= {rows.pad + rows.size})"), w.trips(0.0):
                    lanes.copy(w, "copy", "", self.row_size)
                    w("continue;")
            lanes.copy(w, "copy", "", before)
            real = f"line - {rows.pad}" if self.above and rows.pad else "line"
            source = f"{names.inputs[0]} + ({real}) * {window.line}"
            lanes.copy(w, f"copy + {before}", source, window.line)
            lanes.copy(w, f"copy + {before + window.line}", "", self.row_size - before - window.line)
        beyond = lanes.depth * lanes.loaded
        if beyond > 1:
            lanes.copy(w, f"{names.scratch} + last_line * {self.row_size}", "", beyond)


def tiled(site: Site, lanes: VectorLanes, registers: int, nest: type[VectorTiles] = VectorTiles) -> VectorTiles:
    window = window_of(site)
    copied = not window.columns.always_inside or window.run % (lanes.depth * lanes.loaded) > 0
    draft = nest(site, lanes, registers, window, copied, False)
    above = not window.rows.always_inside and (window.pool[0] > 1 or (copied and draft.steps <= FEW_STEPS))
    return nest(site, lanes, registers, window, copied or above, above)

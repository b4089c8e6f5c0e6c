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
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.nest import WindowNest
from nnbuild.kernels.window_loops import declare_taps, each_row, product, repeated, row_taps, taps_range, total


@dataclass(frozen=True, eq=False)
class Direct(WindowNest[Lanes]):
    def demand(self) -> Demand:
        window = self.window
        packed = dot.packed(self.site.constant("kernel").reshape(-1, window.filters), self.lanes, window.groups)
        return Demand(window.rows.places, packed=packed, overlaps=overlaps.rows(self.site, window.rows), rows=True)

    def emit(self, w: Writer, names: Names) -> None:
        window, lanes = self.window, self.lanes
        with each_row(w, window.rows):
            w(f"const {lanes.input_type} *from = {names.inputs[0]};")
            w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
            dot.declare_channels(w, lanes, names.packed)
            w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('y', window.columns.places, window.filters)};")
            with repeated(w, "group", window.groups):
                for block, count in dot.divide(window.share, lanes).classes():
                    with repeated(w, "block", count):
                        self._row(w, block)
                if window.groups > 1:
                    w(f"from += {window.depth};")

    def _row(self, w: Writer, block: Block) -> None:
        """One block of channels along one output row."""
        columns = self.window.columns
        places, inside = columns.places, columns.inside
        pixels = min(self.lanes.pixels, max(1, len(inside)))
        tiles, singles = divmod(len(inside), pixels)
        singles += places - len(inside)
        with w.block(f"for (int32_t x = 0; x < {places};)"):
            w(f"const int32_t left = {columns.position('x')};")
            if singles == 0:
                with w.trips(tiles):
                    self._whole_tile(w, block, pixels)
            elif tiles == 0:
                with w.trips(singles):
                    self._border_position(w, block)
            else:
                with w.block(f"if ({_within(inside, pixels, places)})"), w.trips(tiles):
                    self._whole_tile(w, block, pixels)
                with w.block("else"), w.trips(singles):
                    self._border_position(w, block)
        w(f"taps += {self.window.taps * block.vectors * self.lanes.lanes};")
        dot.next_block(w, self.lanes, block)
        w(f"to += {block.channels};")

    def _whole_tile(self, w: Writer, block: Block, pixels: int) -> None:
        window = self.window
        dot.start(w, self.lanes, pixels, block)
        with row_taps(w, window.rows):
            self._tap_pointers(w, block, 0)
            if window.contiguous:
                self._along(w, block, window.run, pixels)
            else:
                with w.loop("kx", window.runs):
                    self._along(w, block, window.run, pixels)
                    w(f"row += {window.columns.dilation * window.channels};")
        self._store(w, block, pixels)

    def _border_position(self, w: Writer, block: Block) -> None:
        window, columns = self.window, self.window.columns
        first, last = taps_range(columns, "kx")
        if not columns.always_inside:
            declare_taps(w, columns, "left", "kx_begin", "kx_end")
        dot.start(w, self.lanes, 1, block)
        with row_taps(w, window.rows):
            self._tap_pointers(w, block, first)
            if window.contiguous:
                w(f"const int32_t run = {product(f'{last} - {first}', window.depth)};")
                self._along(w, block, "run", 1)
            else:
                with w.loop("kx", last, start=first, trips=columns.kernel):
                    self._along(w, block, window.run, 1)
                    w(f"row += {columns.dilation * window.channels};")
        self._store(w, block, 1)

    def _tap_pointers(self, w: Writer, block: Block, kx: str | int) -> None:
        """`row` is the input and `k` the weights under the first column tap of row tap `ky`."""
        window, columns = self.window, self.window.columns
        line = product("ky", window.rows.dilation)
        column = total("left", product(kx, columns.dilation))
        line_start = product(f"top + {line}", window.line)
        w(f"const {self.lanes.input_type} *row = from + {line_start} + {product(column, window.channels)};")
        width = window.depth * block.vectors * self.lanes.lanes
        first = total(product("ky", columns.kernel * width), product(kx, width))
        w(f"const {self.lanes.weight_type} *k = taps + {first};")

    def _along(self, w: Writer, block: Block, count: int | str, pixels: int) -> None:
        """The inner loop: `count` inputs that lie side by side, at each of neighbouring positions."""
        with w.loop("i", count, trips=self.window.run):
            pointers = [f"row + {total(str(at), 'i')}" for at in self.window.positions(pixels, 0)]
            dot.multiply(w, self.lanes, block, pointers, "k")
            w(f"k += {block.vectors * self.lanes.lanes};")

    def _store(self, w: Writer, block: Block, pixels: int) -> None:
        places = [product(total("x", str(pixel)), self.window.filters) for pixel in range(pixels)]
        dot.store(w, self.lanes, block, [f"to + {place}" for place in places])
        w(f"x += {pixels};")


def _within(inside: range, pixels: int, places: int) -> str:
    low = [f"x >= {inside.start}"] if inside.start > 0 else []
    high = [f"x <= {inside.stop - pixels}"] if inside.stop - pixels < places - 1 else []
    return " && ".join(low + high) or "1"

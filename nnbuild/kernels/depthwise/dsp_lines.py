"""The layout of a depthwise convolution for cores that multiply two pairs of 16-bit numbers at once.

The inputs of one channel are spread into lines of words. A word holds two taps, one below the other, so one instruction
multiplies both; where a tile computes two rows of outputs, the pairs of one are the halves of the other. Lines contain
all padding, so a tile has no borders.

Two rows of inputs are combined before their bytes are widened, so that one instruction widens a word's pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.kernels.contract import Names
from nnbuild.kernels.loops.window import Axis, Window, window_of
from nnbuild.kernels.loops.window_loops import with_last
from nnbuild.model.graph import Array
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

REGISTERS = 14
GROUP = 4
"""Channels whose bytes make one word."""
TURN, FILLED, BORDER = 30, 9, 15
"""Efforts: of a tile or a row of them besides what it multiplies and loads, of a word that is filled, and what is more
where its line has a row outside the image."""
NEARLY = 1.1


@dataclass(frozen=True)
class Use:
    """What one line of a tile adds to one of its output rows: both taps of a word, or one half.

    `product` is the operation of the table.
    """

    row: int
    word: int
    product: str


@dataclass(frozen=True)
class Pairing:
    """The taps of every line, and their weights: (low tap, high tap) by index of the word."""

    words: tuple[tuple[tuple[int, int | None], ...], ...]
    taps: tuple[tuple[Use, ...], ...]


@dataclass(frozen=True)
class LineLayout:
    """Taps are paired along the axis `down`: the rows, or the columns if `turned`.

    band: bytes of lines that are filled before outputs are computed from them, if these suffice for one row of tiles.
    apart: whether words are loaded and stored one by one, which takes more instructions and fewer cycles.
    """

    window: Window
    turned: bool
    band: int
    apart: bool = False

    @property
    def down(self) -> Axis:
        return self.window.columns if self.turned else self.window.rows

    @property
    def across(self) -> Axis:
        return self.window.rows if self.turned else self.window.columns

    @property
    def channels(self) -> int:
        return self.window.channels

    @property
    def multiplier(self) -> int:
        return self.window.filters // self.window.channels

    @property
    def steps(self) -> tuple[int, ...]:
        """The distance of neighbours in memory: inputs down and across, outputs down and across."""
        window = self.window
        reads, writes = [window.line, window.channels], [window.columns.places * window.filters, window.filters]
        return (*reads[::-1], *writes[::-1]) if self.turned else (*reads, *writes)

    @cached_property
    def rows(self) -> int:
        """Output rows in a tile."""
        odd = self.down.dilation == 1 and self.down.stride % 2 == 1
        return 2 if odd and self.down.places > 1 else 1

    @property
    def lines(self) -> int:
        """Lines under a tile."""
        extra = (self.rows - 1) * self.down.stride
        return -(-(self.down.kernel + extra) // 2)

    @property
    def fresh(self) -> int:
        """Lines that the next tile below does not share."""
        return self.rows * self.down.stride // 2 if self.shares else self.lines

    @property
    def shares(self) -> bool:
        return self.down.dilation == 1 and self.rows * self.down.stride % 2 == 0

    @property
    def width(self) -> int:
        """Words of a line: every column under a tap, and all real ones up to the last used."""
        return self.across.padded

    @property
    def bands(self) -> int:
        """Rows of tiles computed from one filling of the lines; all bands have this size."""
        if not self.shares:
            return 1
        fits = (self.band // (4 * GROUP * self.width) - self.lines) // self.fresh + 1
        count = -(-self.tiles // max(1, fits))
        return -(-self.tiles // count)

    @property
    def held(self) -> int:
        """Lines of a channel held at a time."""
        return (self.bands - 1) * self.fresh + self.lines

    @property
    def tiles(self) -> int:
        """Rows of tiles."""
        return -(-self.down.places // self.rows)

    @property
    def filled(self) -> range:
        """The lines of a band that are filled for every group; blank lines of a whole image keep their content."""
        if self.bands < self.tiles:
            return range(self.held)
        real = [line for line in range(self.held) if self._real(2 * line * self.down.dilation)]
        return range(real[0], real[-1] + 1) if real else range(0)

    @property
    def empty(self) -> bool:
        """Whether dilated taps miss all rows of a low image."""
        return not self.filled

    def _real(self, upper: int) -> bool:
        """Whether the line with this upper row, counted from the first padded one, contains a row of the image."""
        rows = (upper - self.down.pad, upper - self.down.pad + self.down.dilation)
        return any(0 <= row < self.down.size for row in rows)

    @property
    def border_lines(self) -> float:
        """The share of filled lines that contain a row outside the image."""
        step = self.rows * self.down.stride
        bands = range(0, self.tiles, self.bands)
        uppers = [tile * step + line * 2 * self.down.dilation for tile in bands for line in self.filled]
        last = self.down.size - self.down.dilation
        outside = [upper for upper in uppers if not 0 <= upper - self.down.pad < last]
        return len(outside) / len(uppers)

    def tile(self, rows: int) -> Pairing:
        """The pairing of a tile of `rows` rows, with the words of a full tile."""
        whole = [[self._pair(line, row) for row in range(self.rows)] for line in range(self.lines)]
        words = tuple(_words(pairs) for pairs in whole)
        taps = tuple(
            tuple(use for row in range(rows) if (use := _use(row, pairs[row], kept)) is not None)
            for pairs, kept in zip(whole, words, strict=True)
        )
        return Pairing(words, taps)

    def _pair(self, line: int, row: int) -> tuple[int | None, int | None]:
        low = 2 * line - row * self.down.stride
        return tuple(tap if 0 <= tap < self.down.kernel else None for tap in (low, low + 1))  # type: ignore[return-value]

    @property
    def in_place(self) -> bool:
        """Whether each channel's outputs may overlap the same channel's inputs that the lines already hold."""
        return self.multiplier == 1 and not (self.turned and self.bands < self.tiles)

    @property
    def widest(self) -> int:
        """As many columns of a tile as registers allow for sums, a row of weights, two words of inputs and pointers."""
        weights = min(self.across.kernel, 4)
        return max(1, (REGISTERS - 5 - weights) // self.rows)

    @property
    def effort(self) -> float:
        """Roughly what a channel takes, in thirds of a multiplication."""
        if self.empty:
            return inf
        tile, across = self.tile(self.rows), self.across
        columns = min(self.widest, across.places)
        tiles = self.tiles * -(-across.places // columns)
        products = sum(map(len, tile.taps)) * across.kernel * self.tiles * across.places
        weights = sum(map(len, tile.words)) * across.kernel
        inputs = self.lines * replace(across, places=columns).covered
        lines = len(self.filled) if self.bands == self.tiles else self.tiles * self.fresh
        fills = lines * self.width * (FILLED + BORDER * self.border_lines)
        return 3 * products + 2 * tiles * (weights + inputs) + TURN * (tiles + self.tiles) + fills


def _words(pairs: list[tuple[int | None, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """The words that hold all taps of a line: first full pairs, then the remaining taps."""
    words: list[tuple[int, int | None]] = [(a, b) for a, b in pairs if a is not None and b is not None]
    for pair in pairs:
        for tap in pair:
            if tap is not None and not any(tap in word for word in words):
                words.append((tap, None))
    return tuple(words)


def _use(row: int, pair: tuple[int | None, int | None], words: tuple[tuple[int, int | None], ...]) -> Use | None:
    low, high = pair
    if low is not None and high is not None:
        return Use(row, words.index((low, high)), "p_dot")
    tap, half = (low, "low") if low is not None else (high, "high")
    if tap is None:
        return None
    word = next(i for i, held in enumerate(words) if tap in held)
    return Use(row, word, f"p_{half}_{'low' if words[word][0] == tap else 'high'}")


def line_layout(site: Site[DepthwiseConv2D], band: int) -> LineLayout:
    """The layout that takes less; one in place if it takes a tenth more at most, or where lines shall be few."""
    shapes = [LineLayout(window_of(site), turned, band) for turned in (False, True)]
    least = min(shape.effort for shape in shapes)
    fitting = [shape for shape in shapes if shape.in_place and (shape.effort <= NEARLY * least or not band)]
    return min(fitting or shapes, key=lambda shape: shape.effort)


def taps_of(site: Site[DepthwiseConv2D], shape: LineLayout) -> Array:
    """The weights as [down, across, channel]."""
    kernel = site.constant("kernel").astype(np.int64)
    kernel = kernel.reshape(*kernel.shape[:2], -1)
    return kernel.transpose(1, 0, 2) if shape.turned else kernel


UNROLLED = 8
"""Columns of a line up to which no loop is needed."""
CHUNK = 4
"""Columns per iteration of the loop."""

Source = Callable[[str, int], str]
"""The address of a byte of the row "upper" or "lower", in a column of a chunk."""


def fill(w: Writer, shape: LineLayout, names: Names, first: str, trips: float) -> None:
    """Fills the lines from `first` on for every channel of the group; the band begins at `tile`."""
    down = shape.down
    whole, rest = divmod(shape.channels, GROUP)
    with w.loop("line", shape.filled.stop, start=first, trips=trips):
        tile = f"tile * {shape.rows * down.stride}"
        start = f"{tile} + line * {2 * down.dilation}"
        w(f"const int32_t upper = {start} - {down.pad};")
        into = f"line * {shape.width} + {shape.across.pad}"
        w(f"int32_t *line_to = {names.scratch} + {into};")
        w.bill(5)
        usual = partial(_line, w, shape, GROUP if whole else rest)
        with_last(w, "group", whole, usual, partial(_line, w, shape, rest) if rest and whole else None)


def _line(w: Writer, shape: LineLayout, count: int) -> None:
    """Fills one line of each of `count` channels. Inside the image both rows have a fixed offset from one pointer."""
    down, borders = shape.down, shape.border_lines
    if not borders:
        _inside(w, shape, count)
        return
    if borders < 1:
        last = down.size - down.dilation
        with w.block(f"if (upper >= 0 && upper < {last})"), w.trips(1 - borders):
            _inside(w, shape, count)
        with w.block("else"), w.trips(borders):
            _border(w, shape, count)
    else:
        _border(w, shape, count)


def _inside(w: Writer, shape: LineLayout, count: int) -> None:
    step, along = shape.steps[0], shape.steps[1]
    w(f"const int8_t *bytes = from + upper * {step};")

    def source(part: str, column: int) -> str:
        return f"bytes + {column * along + (shape.down.dilation * step if part == 'lower' else 0)}"

    size = shape.across.size
    if size <= UNROLLED:
        _columns(w, shape, count, size, source)
        return
    with w.loop("x", size // CHUNK):
        _columns(w, shape, count, CHUNK, source)
        w(w.use(c99.STEP, "bytes", str(CHUNK * along)))
        w(w.use(c99.STEP, "line_to", str(CHUNK)))
    _columns(w, shape, count, size % CHUNK, source)


def _border(w: Writer, shape: LineLayout, count: int) -> None:
    """Reads a row outside the image from `blank`, without advancing."""
    down, step, along = shape.down, shape.steps[0], shape.steps[1]
    w(f"const int32_t lower = upper + {down.dilation};")
    for part in ("upper", "lower"):
        real = f"{part} >= 0 && {part} < {down.size}"
        w(f"const int8_t *{part}_from = {real} ? from + ({part}) * {step} : blank;")
        w(f"const int32_t {part}_step = {real} ? {along} : 0;")
        w.bill(6)
    with w.loop("x", shape.across.size):
        _columns(w, shape, count, 1, lambda part, column: f"{part}_from")
        for part in ("upper", "lower"):
            w(w.use(c99.STEP, f"{part}_from", f"{part}_step"))
        w(w.use(c99.STEP, "line_to", "1"))


def _columns(w: Writer, shape: LineLayout, count: int, columns: int, source: Source) -> None:
    """Fills `columns` columns from `line_to` on, two at a time."""
    for column in w.each(range(0, columns, 2)):
        _pair(w, shape, count, range(column, min(column + 2, columns)), source)


def _pair(w: Writer, shape: LineLayout, count: int, columns: range, source: Source) -> None:
    plane = shape.held * shape.width
    for column in columns:
        for part in ("upper", "lower"):
            w(w.use(c99.READ, f"{part}{column}", DSP.call(w, "load_bytes", source(part, column), of=(count,))))
    for column in columns:
        w(w.use(c99.READ, f"front{column}", DSP.call(w, "p_low_halves", f"upper{column}", f"lower{column}")))
        if count > 2:
            w(w.use(c99.READ, f"back{column}", DSP.call(w, "p_high_halves", f"lower{column}", f"upper{column}")))
    for channel in range(count):
        half, unpack = ("front", "back")[channel // 2], ("p_even_bytes", "p_odd_bytes")[channel % 2]
        words = [DSP.call(w, unpack, f"{half}{column}") for column in columns]
        at = channel * plane + columns[0]
        if shape.apart:
            for place, word in enumerate(words, at):
                w(f"{DSP.call(w, 'write_bytes', f'(int8_t *)(line_to + {place})', word)};")
        elif len(words) == 2:
            w(f"{DSP.call(w, 'store_two', f'line_to + {at}', *words)};")
        else:
            w(w.use(STORE, f"line_to[{at}]", words[0]))

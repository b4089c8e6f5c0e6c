"""Depthwise convolution of bytes with the pairs of 16-bit products of Cortex-M4 and up.

The inputs of four channels at a time are spread into lines of words (see `dsp_lines`); then every channel is computed
in tiles of one or two rows by a few columns. Groups of four channels are independent of each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.kernels.contract import Demand, Names, Overlap, accepted, bytes_layer, reason_of, variant
from nnbuild.kernels.depthwise.dsp_constants import Stream
from nnbuild.kernels.depthwise.dsp_lines import GROUP, LineLayout, Pairing, fill, line_layout
from nnbuild.kernels.dsp.scaling import ANY, Scaling, most_left, result, scaling_by
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window_loops import with_last
from nnbuild.numeric.requant_product import Form
from nnbuild.ops.base import Pair
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

BAND, LEAN = 4096, 0
"""Bytes of lines filled at a time: as many as do no harm, or as few as suffice."""
MOST_TAPS = 64
"""Taps that are unrolled at most, to limit code."""
CALL_CYCLES = 20
OVERLAPPING = Row("const int32_t {0} = {1};", 0, -1)
"""The load is free, but belongs to a run of loads."""
COPIED = 8
"""Words moved per iteration."""


@lru_cache(maxsize=256)
def scaling_of(site: Site[DepthwiseConv2D]) -> Scaling | str:
    forms = [Form(below=None, level=ANY), Form(below=None)]
    return scaling_by(site, lambda _: forms, most_left(sums_of(site).largest_weight))


def overlaps(shape: LineLayout) -> tuple[Overlap, ...]:
    """How far outputs may follow the inputs that the lines already hold."""
    if not shape.in_place:
        return ()
    distance = -shape.down.size * shape.across.size
    for tile in range(shape.bands, shape.tiles, shape.bands):
        line = shape.held - shape.bands * shape.fresh if shape.shares else 0
        row = (tile * shape.rows * shape.down.stride) + 2 * line - shape.down.pad
        if row < shape.down.size:
            written = tile * shape.rows * shape.across.places
            distance = max(distance, written - max(row, 0) * shape.across.size)
    return (Overlap(distance=distance * shape.channels, step=shape.channels),)


@dataclass(frozen=True, eq=False)
class DspPlanes:
    site: Site[DepthwiseConv2D]
    shape: LineLayout
    scaled: Scaling
    stream: Stream

    def demand(self) -> Demand:
        shape = self.shape
        scratch = 4 * (min(GROUP, shape.channels) * shape.held * shape.width + self.stream.scratch)
        in_place = () if self.scaled.results else overlaps(shape)
        return Demand(-(-shape.channels // GROUP), scratch, "int32", self.stream.packed(), in_place)

    def emit(self, w: Writer, names: Names) -> None:
        """Layers of one shape, zero point and limits share a routine."""
        arrays = {role: "weights" if role == "weights" else "constants" for role in names.packed}
        own = Names(("in",), ("out",), arrays)
        body = Writer("{prefix}")
        self._body(body, own)
        w.helpers |= body.helpers
        w.add(body.counts)
        w.bill(CALL_CYCLES, CALL_CYCLES)
        text = str(body)
        pointers = f"const int8_t *in, {self.scaled.output_type} *out, int32_t *scratch, "
        kinds = {"weights": "int8_t", "constants": "int32_t"}
        pointers += ", ".join(f"const {kinds[name]} *{name}" for name in arrays.values())
        size = f"{self.shape.window.rows.size}x{self.shape.window.columns.size}x{self.shape.channels}"
        name = f"planar_{size}_{zlib.crc32(text.encode()):08x}"
        head = f"void {{name}}({pointers}, int32_t begin, int32_t end)"
        routine = body.routine(name, head)
        given = (names.inputs[0], names.outputs[0], names.scratch, *names.packed.values())
        w(f"{w.call(routine, *given, 'begin', 'end')};")

    def _body(self, w: Writer, names: Names) -> None:
        zero = quant_of(self.site.inputs[0]).zero_point
        if self.shape.border_lines:
            w(f"const int8_t blank[{GROUP}] = {{{', '.join([str(zero)] * GROUP)}}};")
        if self.shape.width > self.shape.across.size or len(self.shape.filled) < self.shape.held:
            self._pad(w, names, zero)
        groups = -(-self.shape.channels // GROUP)
        with w.loop("group", "end", start="begin", trips=groups):
            w(f"const int8_t *from = {names.inputs[0]} + group * {GROUP};")
            first = f"group * {GROUP * self.shape.multiplier}"
            w(f"{self.scaled.output_type} *to = {names.outputs[0]} + {first};")
            self.stream.declare(w, names, self._count())
            self._bands(w, names)

    def _count(self) -> str:
        """The number of channels in a group."""
        whole, rest = divmod(self.shape.channels, GROUP)
        if not rest or not whole:
            return str(min(GROUP, self.shape.channels))
        return f"group < {whole} ? {GROUP} : {rest}"

    def _pad(self, w: Writer, names: Names, zero: int) -> None:
        """Writes what all channels share: the columns beside the image and lines outside it."""
        word = (zero & 0xFFFF) | (zero & 0xFFFF) << 16
        signed = word - (1 << 32) if word >= 1 << 31 else word
        places = [
            *range(self.shape.across.pad),
            *range(self.shape.across.pad + self.shape.across.size, self.shape.width),
        ]
        if places:
            with w.loop("line", min(GROUP, self.shape.channels) * self.shape.held):
                w(f"int32_t *padded = {names.scratch} + line * {self.shape.width};")
                for place in places:
                    w(w.use(STORE, f"padded[{place}]", str(signed)))
        blank = [line for line in range(self.shape.held) if line not in self.shape.filled]
        if not blank:
            return
        with w.loop("c", min(GROUP, self.shape.channels)):
            w(f"int32_t *padded = {names.scratch} + c * {self.shape.held * self.shape.width};")
            for line in blank:
                with w.loop("x", self.shape.width):
                    w(w.use(STORE, f"padded[x + {line * self.shape.width}]", str(signed)))

    def _bands(self, w: Writer, names: Names) -> None:
        tiles = self.shape.tiles
        if self.shape.bands == tiles:
            w("const int32_t tile = 0;")
            w(f"const int32_t tiles = {tiles};")
            fill(w, self.shape, names, str(self.shape.filled.start), len(self.shape.filled))
            self._channels(w, names)
            return
        bands = -(-tiles // self.shape.bands)
        shared = self.shape.held - self.shape.bands * self.shape.fresh if self.shape.shares else 0
        with w.loop("tile", tiles, step=self.shape.bands):
            w(f"const int32_t tiles = {tiles} - tile < {self.shape.bands} ? {tiles} - tile : {self.shape.bands};")
            if shared > 0:
                w("int32_t first = 0;")
                with w.block("if (tile > 0)"), w.trips((bands - 1) / bands):
                    self._keep(w, names, shared)
                    w(f"first = {shared};")
                fresh = self.shape.held - shared + shared / bands
                fill(w, self.shape, names, "first", fresh)
            else:
                fill(w, self.shape, names, "0", self.shape.held)
            w(f"{self.scaled.output_type} *const above = to;")
            w("const int32_t *const channel = stream;")
            self._channels(w, names)
            w(f"to = above + {self.shape.bands * self.shape.rows * self.shape.steps[2]};")
            w("stream = channel;")

    def _keep(self, w: Writer, names: Names, shared: int) -> None:
        """Moves the lines that the next tiles also read to the front."""
        words = shared * self.shape.width
        with w.loop("c", min(GROUP, self.shape.channels)):
            w(f"int32_t *kept = {names.scratch} + c * {self.shape.held * self.shape.width};")
            w(f"const int32_t *moved = kept + {self.shape.bands * self.shape.fresh * self.shape.width};")
            with w.loop("i", words // COPIED):
                _copy(w, COPIED)
                w(w.use(c99.STEP, "kept", str(COPIED)))
                w(w.use(c99.STEP, "moved", str(COPIED)))
            _copy(w, words % COPIED)

    def _channels(self, w: Writer, names: Names) -> None:
        w(f"const int32_t channels = {self._count()};")
        with w.loop("c", "channels", trips=self.shape.channels / -(-self.shape.channels // GROUP)):
            if self.shape.multiplier > 1:
                with w.loop("m", self.shape.multiplier):
                    self._channel(w, names)
            else:
                self._channel(w, names)

    def _channel(self, w: Writer, names: Names) -> None:
        """All tiles of one output channel."""
        tiles = self.shape.tiles
        bands = -(-tiles // self.shape.bands)
        w(f"const int32_t *words = {names.scratch} + c * {self.shape.held * self.shape.width};")
        w(f"{self.scaled.output_type} *row = to;")
        with w.loop("y", "tiles", trips=tiles / bands):
            rest = self.shape.down.places % self.shape.rows
            last = partial(self._tiles, w, rest) if rest else None
            with_last(w, "tile + y", tiles - 1, partial(self._tiles, w, self.shape.rows), last)
            w(f"words += {self.shape.fresh * self.shape.width};")
            w(f"row += {self.shape.rows * self.shape.steps[2]};")
        w("to += 1;")
        w(f"stream += {self.stream.size};")

    def _tiles(self, w: Writer, rows: int) -> None:
        """One row of tiles."""
        w("const int32_t *word = words;")
        w(f"{self.scaled.output_type} *pixel = row;")
        for columns, count in _divided(self.shape.across.places, self.shape.widest):
            with w.loop("x", count):
                self._tile(w, rows, columns)
                w(w.use(c99.STEP, "word", str(columns * self.shape.across.stride)))
                w(w.use(c99.STEP, "pixel", str(columns * self.shape.steps[3])))

    def _tile(self, w: Writer, rows: int, columns: int) -> None:
        tile, load = self.shape.tile(rows), loads_overlapping if self.shape.apart else loads
        w(f"const int32_t *k = {DSP.call(w, 'again', 'stream')};")
        w(w.use(c99.READ, "start", "k[0]"))
        started: set[str] = set()
        at = 1
        for line in range(self.shape.lines):
            kernel, count = self.shape.across.kernel, len(tile.words[line])
            passes = [range(count)] if count * kernel <= 4 else [range(i, i + 1) for i in range(count)]
            for words in passes:
                self._pass(w, tile, line, words, columns, at, started)
            at += count * kernel
        names = list(self.scaled.columns)
        load(w, "k", [(name, at + i) for i, name in enumerate(names)])
        for row in range(rows):
            for column in range(columns):
                place = row * self.shape.steps[2] + column * self.shape.steps[3]
                value = result(w, self.scaled, f"sum{row}{column}", {name: name for name in names})
                w(w.use(STORE, f"pixel[{place}]", f"({self.scaled.output_type}){value}"))

    def _pass(
        self, w: Writer, tile: Pairing, line: int, words: range, columns: int, at: int, started: set[str]
    ) -> None:
        """Multiplies some words of weights with one line, whose columns are loaded once each."""
        across, load = self.shape.across, loads_overlapping if self.shape.apart else loads
        uses = [use for use in tile.taps[line] if use.word in words]
        if not uses:
            return
        name = f"l{line}p{words.start}"
        kept = sorted({use.word for use in uses})
        taps = range(across.kernel)
        load(w, "k", [(f"{name}w{word}{tap}", at + word * across.kernel + tap) for word in kept for tap in taps])
        wanted = sorted({c * across.stride + tap * across.dilation for c in range(columns) for tap in taps})
        for group in _adjacent(wanted):
            load(w, "word", [(f"{name}x{offset}", line * self.shape.width + offset) for offset in group])
            for offset in group:
                for column in range(columns):
                    tap, apart = divmod(offset - column * across.stride, across.dilation)
                    if apart or not 0 <= tap < across.kernel:
                        continue
                    for use in uses:
                        sums, weight = f"sum{use.row}{column}", f"{name}w{use.word}{tap}"
                        before = sums if sums in started else "start"
                        value = DSP.call(w, use.product, f"{name}x{offset}", weight, before)
                        w(f"{sums} = {value};" if sums in started else f"int32_t {sums} = {value};")
                        started.add(sums)


def _copy(w: Writer, words: int) -> None:
    for at in w.each(range(0, words - 1, 2)):
        loads(w, "moved", [("one", at), ("two", at + 1)])
        w(f"{DSP.call(w, 'store_two', f'kept + {at}', 'one', 'two')};")
    if words % 2:
        w(w.use(STORE, f"kept[{words - 1}]", f"moved[{words - 1}]"))


def _divided(places: int, most: int) -> list[Pair]:
    """(size, count): tiles of the largest size, then some one smaller, or the remainder."""
    most = min(most, places)
    for smaller in range(most):
        left = places - smaller * (most - 1)
        if left >= 0 and left % most == 0:
            parts = [(most, left // most), (most - 1, smaller)]
            return [part for part in parts if all(part)]
    return [(most, places // most), (places % most, 1)]


def _adjacent(offsets: Sequence[int]) -> list[Sequence[int]]:
    """Adjacent offsets as pairs, which one instruction loads, and the others alone."""
    groups: list[Sequence[int]] = []
    at = 0
    while at < len(offsets):
        count = 2 if at + 1 < len(offsets) and offsets[at + 1] == offsets[at] + 1 else 1
        groups.append(offsets[at : at + count])
        at += count
    return groups


def loads(w: Writer, pointer: str, wanted: Sequence[tuple[str, int]]) -> None:
    """Declares words at offsets from a pointer, loading adjacent ones in pairs."""
    places = dict((place, name) for name, place in wanted)
    for group in _adjacent(sorted(places)):
        source = f"{pointer} + {group[0]}"
        if len(group) == 2:
            w(f"int32_t {places[group[1]]};")
            w(f"const int32_t {places[group[0]]} = {DSP.call(w, 'load_two', source, '&' + places[group[1]])};")
        else:
            w(w.use(c99.READ, places[group[0]], f"{pointer}[{group[0]}]"))


def loads_overlapping(w: Writer, pointer: str, wanted: Sequence[tuple[str, int]]) -> None:
    """Declares them one by one: n loads take n + 1 cycles, while a load of two takes three."""
    for name, place in wanted:
        word = DSP.call(w, "load_bytes", f"(const int8_t *)({pointer} + {place})", of=(4,))
        w(w.use(OVERLAPPING, name, word))
    w.runs(1)


def _accepts(band: int, narrow: bool, site: Site[DepthwiseConv2D]) -> str | None:
    if refused := bytes_layer(site):
        return refused
    shape = line_layout(site, band)
    if shape.empty:
        return "its taps miss all rows of the image"
    if shape.down.kernel * shape.across.kernel > MOST_TAPS:
        return f"it unrolls at most {MOST_TAPS} taps"
    if band < BAND and shape.bands == line_layout(site, BAND).bands:
        return "it would need no less scratch"
    if narrow and site.constant("kernel").dtype != np.int8:
        return "its weights do not fit 8 bits"
    return reason_of(scaling_of(site))


def _nest(band: int, narrow: bool, site: Site[DepthwiseConv2D]) -> DspPlanes:
    shape, scaled = replace(line_layout(site, band), apart=narrow), accepted(scaling_of(site))
    return DspPlanes(site, shape, scaled, Stream(site, shape, scaled, narrow))


VARIANTS = tuple(
    variant(name, frozenset({"armv7em_dsp"}), partial(_accepts, band, narrow), partial(_nest, band, narrow))
    for name, band, narrow in (("planar", BAND, False), ("planar_narrow", BAND, True), ("planar_lean", LEAN, False))
)

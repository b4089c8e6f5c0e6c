"""Convolutions of bytes on Cortex-M0: one multiplication computes an input's products with two channels' weights.

A word holds the weights a + b * 2^16. Two inputs times two such words, added, less 32,769, have one channel's sum of
two products in each half: a's is within -32,512 and 32,768, so adding 32,767 prevents a borrow from the upper half; b's
fits after subtracting 1. Both are added to 32-bit sums, whose starts compensate. Two positions are computed together;
their inputs are widened to words first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.armv6m import SMALL
from nnbuild.kernels.contract import Demand, Names, bytes_layer, variant
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import Axis, Weighted, Window, WindowNest, window_of
from nnbuild.kernels.parts.overlaps import positions
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8, Ints, int32s
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

MOST = 8
"""Pairs of inputs that are unrolled."""
PAIR, TURN = 16, 3
"""Instructions of a pair of inputs of two positions, and of an iteration."""
MOVE = Row("{0} = {1};", 3)
SUM = Row("int32_t {0} = {1} + {2};", 3)


class ChannelLanes(ByteLanes):
    """Sums whose starts compensate what is subtracted and added for every pair of inputs."""

    vectors = 2
    store_cycles = 20

    def __init__(self, site: Site[Weighted], pairs: int) -> None:
        super().__init__(site)
        upper = np.arange(len(self.channels["start"])) % window_of(site).share % 2
        more = self.channels["start"] + np.where(upper, pairs, -32767 * pairs)
        self.channels["start"] = int32s(more)


def divided(taps: int) -> tuple[int, int]:
    """The cheapest division: pairs of inputs with padding, and pairs per iteration."""
    pairs = -(-taps // 2)
    ways = [(more, size) for more in range(pairs, pairs + 4) for size in range(1, MOST + 1) if more % size == 0]
    return min(ways, key=lambda way: way[0] * PAIR + way[0] // way[1] * 2 * TURN)


@dataclass(frozen=True, eq=False)
class TwoChannels(WindowNest[ByteLanes]):
    """beside, more: further operands of the routine that widens inputs, and their declarations. found: the sums, and
    what else is behind the inputs in scratch."""

    stored: ClassVar[str] = "int32"
    beside: ClassVar[tuple[str, ...]] = ()
    more: ClassVar[str] = ""
    found: ClassVar[int] = 4

    @cached_property
    def window(self) -> Window:
        """The window, with rows of one position each where every position reads its own input alone."""
        window, one = window_of(self.site), Axis(1, 1)
        count = window.rows.places * window.columns.places
        flat = Window(Axis(count, count), one, window.channels, window.depth, window.filters, window.groups)
        return flat if window.flat else window

    @property
    def inputs(self) -> int:
        """Of a position, with padding."""
        return 2 * divided(self.window.taps)[0]

    def demand(self) -> Demand:
        window = self.window
        return Demand(
            extent=window.rows.places,
            scratch=4 * (self.sums_at + self.found),
            scratch_type="int32",
            packed={
                **dot.packed(np.zeros((0, window.filters), np.int8), self.lanes, window.groups),
                "kernel": self.kernel(),
            },
            overlaps=positions(self.site, window.rows, window.columns, 0 if window.groups == 1 else 2),
            rows=True,
        )

    def kernel(self) -> Array:
        pairs = self.weights()
        return int32s(pairs[..., 0] + (pairs[..., 1] << 16)).reshape(-1)

    def weights(self) -> Ints:
        """[group, pair of channels, input, channel]; those of padding are 0."""
        window, share = self.window, self.window.share
        weights = np.pad(sums_of(self.site).weights, ((0, self.inputs - window.taps), (0, 0)))
        groups = weights.reshape(len(weights), window.groups, share)
        even = np.pad(groups, ((0, 0), (0, 0), (0, share % 2)))
        found: Ints = even.reshape(len(weights), window.groups, -1, 2).transpose(1, 2, 0, 3)
        return found

    @property
    def sums_at(self) -> int:
        """The offset of sums in scratch, behind the inputs of two positions."""
        return 2 * self.inputs

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        places, taps = window.columns.places, window.taps
        last = f"end * {places}"
        w(f"int32_t *const patch = {names.scratch};")
        w(f"int32_t *const sums = patch + {self.sums_at};")
        for word in range(2 * taps, self.sums_at):
            w(w.use(MOVE, f"patch[{word}]", "0"))
        held = ("y", "x") if places > 1 else ("y",)
        for name in held:
            w(f"int32_t {name} = {'begin' if name == 'y' else 0}, {name}_next = {name};")
        count = window.rows.places * places
        with w.loop("place", last, start=f"begin * {places}", step=2, trips=-(-count // 2)):
            w(f"{self.lanes.output_type} *to0 = {names.outputs[0]} + place * {window.filters};")
            w(f"{self.lanes.output_type} *to1 = place + 1 < {last} ? to0 + {window.filters} : to0;")
            w(f"const {C_TYPES[self.stored]} *k = {names.packed['kernel']};")
            dot.declare_channels(w, self.lanes, names.packed)
            w.bill(10)
            with w.loop("group", window.groups):
                for name in held:
                    w(f"{name}_next = {name};")
                with w.loop("at", 2):
                    w("int32_t *into = patch + at;")
                    self.begin(w)
                    self._lay_out(w, names.inputs[0], f"group * {window.depth}")
                    self._advance(w)
                self._channels(w)
            for name in held:
                w(f"{name} = {name}_next;")

    def _advance(self, w: Writer) -> None:
        """Advances to the next position, if any."""
        places = self.window.columns.places
        w.bill(4)
        if places == 1:
            w("if (y_next + 1 < end) ++y_next;")
            return
        with w.block(f"if (x_next + 1 < {places})"):
            w("++x_next;")
        with w.block("else if (y_next + 1 < end)"):
            w("++y_next;")
            w("x_next = 0;")

    def _lay_out(self, w: Writer, source: str, channel: str) -> None:
        """Widens the inputs under a position, from a channel on."""
        window, rows, columns = self.window, self.window.rows, self.window.columns
        w(f"const int32_t top = {rows.position('y_next')};")
        w(f"const int32_t left = {columns.position('x_next') if columns.places > 1 else -columns.pad};")
        with w.loop("ky", rows.kernel):
            w(f"const int32_t row = top + ky * {rows.dilation};")
            place = f"(row * {columns.size} + left) * {window.channels}"
            w(f"const {self.lanes.input_type} *from = {source} + {place} + {channel};")
            w.bill(6)
            inside = [] if rows.always_inside else [f"row >= 0 && row < {rows.size}"]
            at_once = window.contiguous and columns.kernel <= columns.size
            if not columns.always_inside:
                inside.append(f"left >= 0 && left <= {columns.size - columns.kernel}")
            share = rows.inside_share * columns.inside_share
            if at_once and not inside:
                self._widen(w, "from", window.run)
            elif at_once:
                with w.block(f"if ({' && '.join(inside)})"), w.trips(share):
                    self._widen(w, "from", window.run)
                with w.block("else"), w.trips(1 - share):
                    self._by_columns(w)
            else:
                self._by_columns(w)

    def _by_columns(self, w: Writer) -> None:
        """A row of taps, any of which may be padding."""
        window, rows, columns = self.window, self.window.rows, self.window.columns
        inside = [] if rows.always_inside else [f"row >= 0 && row < {rows.size}"]
        with w.loop("kx", columns.kernel):
            if not columns.always_inside:
                w(f"const int32_t column = left + kx * {columns.dilation};")
                inside.append(f"column >= 0 && column < {columns.size}")
            place = f"from + kx * {columns.dilation * window.channels}"
            if not inside:
                self._widen(w, place, window.depth)
                return
            w.bill(4 * len(inside))
            with w.block(f"if ({' && '.join(inside)})"):
                self._widen(w, place, window.depth)
            with w.block("else"), w.trips(0):
                zero = quant_of(self.site.inputs[0]).zero_point
                with w.loop("i", window.depth):
                    w(w.use(MOVE, "into[2 * i]", str(zero)))
                w(f"into += {2 * window.depth};")

    def _widen(self, w: Writer, source: str, count: int) -> None:
        routine, bill = self.widening(count)
        w.bill(8)
        w.add(bill)
        w(f"into = {w.call(routine, 'into', source, *self.beside)};")

    def _channels(self, w: Writer) -> None:
        for block, count in dot.divide(self.window.share, self.lanes).classes():
            with w.loop("block", count):
                self.multiply(w)
                for position in range(2):
                    for channel in range(block.channels):
                        self.sum(w, position, channel)
                dot.store(w, self.lanes, block, ("to0", "to1"))
                dot.next_block(w, self.lanes, block)
                w.bill(2 + len(self.lanes.channels))
                for to in ("to0", "to1"):
                    w(f"{to} += {block.channels};")

    def begin(self, w: Writer) -> None:
        """Before a position's inputs are widened."""

    def widening(self, count: int) -> tuple[Instruction, OpCounts]:
        """The routine that widens `count` inputs into every second word, and its cost."""
        w = Writer("{prefix}")
        at_once = next(size for size in (4, 3, 2, 1) if count % size == 0)
        with w.loop("i", count // at_once):
            for at in range(at_once):
                self.move(w, at)
            w(f"to += {2 * at_once};")
            w(f"from += {at_once};")
            w.bill(2)
        w("return to;")
        head = f"int32_t *{{name}}(int32_t *to, const {self.lanes.input_type} *from{self.more})"
        return w.routine(f"widen_{count}", head), w.counts

    def move(self, w: Writer, at: int) -> None:
        w(w.use(MOVE, f"to[{2 * at}]", f"from[{at}]"))

    def multiply(self, w: Writer) -> None:
        """The sums of both positions and two channels."""
        pairs, size = divided(self.window.taps)
        w(f"k = {SMALL.call(w, 'two_by_two', 'patch', 'k', f'patch + {self.sums_at}', 'sums', of=(size,))};")
        w.bill(PAIR * pairs + TURN * (pairs // size), products=4 * pairs)

    def sum(self, w: Writer, position: int, channel: int) -> None:
        w(w.use(SUM, f"sum{position}{channel}", f"start[{channel}]", f"sums[{2 * position + channel}]"))


def _refused(site: Site[Weighted]) -> str | None:
    if reason := bytes_layer(site):
        return reason
    if window_of(site).pool != (1, 1):
        return "it computes no pool"
    weights = sums_of(site).weights
    fits = weights.size == 0 or (weights.min() >= INT8[0] and weights.max() <= INT8[1])
    return None if fits else "its weights less their zero point have more than 8 bits"


def _nest(site: Site[Weighted]) -> TwoChannels:
    return TwoChannels(site, ChannelLanes(site, divided(window_of(site).taps)[0]))


VARIANTS = (variant("two_channels", frozenset({"armv6m"}), _refused, _nest),)

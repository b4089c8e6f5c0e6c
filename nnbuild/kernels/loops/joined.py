"""Convolutions on cores that multiply single words: two products by one multiplication.

A word holds an input of two positions, the second 65,536 times. Multiplied by a weight and summed, its lower half is
the first position's sum as long as that fits 16 bits. So products are summed by groups of few taps, as many as the
weights allow. A group's sum S begins with 32,768, so that its upper half is exact, too; with T the sum of all S and H
that of their upper halves, the second position's sum is H, and the first one's is T - 65,536 H.

Four positions are computed together, two channels at a time. Their inputs are laid out once, in the groups' order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.riscv import WORDS
from nnbuild.kernels import overlaps
from nnbuild.kernels.contract import Demand, Kernel, Names, only_int8, variant
from nnbuild.kernels.dsp.scaling import Scaling, scaled
from nnbuild.kernels.small_lanes import scaling_of
from nnbuild.kernels.sums import sums_of
from nnbuild.kernels.window import Axis, Weighted, WindowNest, window_of
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.numeric.groups import grouped
from nnbuild.numeric.rounding import Ints, wrap
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

POSITIONS, CHANNELS = 4, 2
BOUND = 255
"""Of the magnitudes of a group: with inputs of -128 the sum is more than -32,768."""
HALF = 0x8000
LET = Row("const int32_t {0} = {1};", 1, 1)
START = Row("uint32_t {0} = {1};", 1, 1)
SUM = Row("{0} += {1};", 1)
PRODUCT = Row("(uint32_t)({0} * {1})", 1)
COPY = Row("{0} = {1};", 3)
STORE = Row("{0} = (int8_t){1};", 1)
CALL = 14


@lru_cache(maxsize=256)
def groups_of(site: Site[Weighted]) -> tuple[Ints, int]:
    return grouped(sums_of(site).weights, BOUND)


@dataclass(frozen=True, eq=False)
class Joined(WindowNest[Scaling]):
    @cached_property
    def order(self) -> Ints:
        """Of taps."""
        return groups_of(self.site)[0]

    @property
    def size(self) -> int:
        """Of a group."""
        return groups_of(self.site)[1]

    @property
    def taps(self) -> int:
        return self.window.taps

    @property
    def roles(self) -> tuple[str, ...]:
        left = [] if self.left is not None else ["left"]
        return ("total", "upper", *self.lanes.columns, *left)

    @property
    def left(self) -> int | None:
        """What all sums are shifted by, if that is one number."""
        left = self.lanes.left
        return int(left[0]) if (left == left[0]).all() else None

    @property
    def along(self) -> Axis:
        """Positions that are taken one after the other: all of them where each has its own input."""
        window = self.window
        places = window.rows.places * window.columns.places
        return Axis(places, places) if window.flat else window.columns

    @property
    def rows_at_once(self) -> int:
        """Output rows whose positions follow each other, so that few are left over."""
        places = self.window.columns.places
        few = [rows for rows in (1, 2, 4) if rows <= self.window.rows.places] or [1]
        return 1 if self.window.flat else min(few, key=lambda rows: (-(-rows * places // POSITIONS) / rows, rows))

    @property
    def band_rows(self) -> int:
        return self.window.rows.span + (self.rows_at_once - 1) * self.window.rows.stride

    @property
    def band(self) -> int:
        """Bytes of a copy of the rows under some rows of windows, with the padding."""
        return 0 if self.window.inside else self.band_rows * self.window.padded_line

    @property
    def line(self) -> int:
        """Bytes from a row of inputs to the next, where they are taken from."""
        return self.window.padded_line if self.band else self.window.line

    @property
    def offsets(self) -> Array:
        """Where the inputs of a window lie behind its first one, in the order of the groups."""
        window = self.window
        rows = np.arange(window.rows.kernel)[:, None, None] * window.rows.dilation * self.line
        columns = np.arange(window.columns.kernel)[None, :, None] * window.columns.dilation * window.channels
        flat = (rows + columns + np.arange(window.depth)[None, None, :]).reshape(-1)
        return flat[self.order].astype(np.int32)

    def demand(self) -> Demand:
        window = self.window
        if self.band:
            overlap = overlaps.rows(self.site, window.rows, ahead=window.rows.stride)
        elif window.flat:
            overlap = overlaps.tiles(self.site, Axis(1, 1), self.along, POSITIONS)
        else:
            overlap = overlaps.rows(self.site, window.rows)
        return Demand(
            extent=self.along.places if window.flat else window.rows.places,
            scratch=4 * 2 * self.taps + self.band,
            scratch_type="int32",
            packed={"kernel": self._kernel(), "offsets": self.offsets, "scaling": self._scaling()},
            overlaps=overlap,
            rows=True,
            grain=POSITIONS if window.flat else self.rows_at_once,
        )

    def _kernel(self) -> Array:
        """[block][tap][channel]."""
        weights = sums_of(self.site).weights
        blocks = weights[self.order].reshape(self.taps, -1, CHANNELS).transpose(1, 0, 2)
        return blocks.reshape(-1).astype(np.int8)

    def _scaling(self) -> Array:
        scaling = self.lanes
        start = sums_of(self.site).start - scaling.centre
        first = start * (1 + (1 << 16)) - HALF * -(-self.taps // self.size)
        left = [scaling.left] if self.left is None else []
        columns = np.stack([first, start, *scaling.columns.values(), *left], axis=1)
        return wrap(columns.reshape(-1), 32).astype(np.int32)

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        w(f"int32_t *const words = {names.scratch};")
        if window.flat:
            with w.loop("x", "end", start="begin", step=POSITIONS, trips=-(-self.along.places // POSITIONS)):
                self._four(w, names, names.inputs[0], "end", "0")
            return
        if self.band:
            w(f"int8_t *const band = (int8_t *)({names.scratch} + {2 * self.taps});")
            with w.loop("i", self.band):
                w(w.use(COPY, "band[i]", str(quant_of(self.site.inputs[0]).zero_point)))
        places, at_once = window.columns.places, self.rows_at_once
        with w.loop("y", "end", start="begin", step=at_once, trips=window.rows.places / at_once):
            if self.band:
                self._fill(w, names.inputs[0])
                source = "band"
            else:
                source = f"{names.inputs[0]} + {product('y', window.rows.stride * window.line)}"
            last = str(places)
            if at_once > 1:
                w(f"const int32_t last = y + {at_once} <= end ? {at_once * places} : (end - y) * {places};")
                last = "last"
            with w.loop("x", last, step=POSITIONS, trips=-(-at_once * places // POSITIONS)):
                self._four(w, names, source, last, product("y", places * window.filters))

    def _fill(self, w: Writer, source: str) -> None:
        """Copies the rows under a row of windows between the padding."""
        window, rows, columns = self.window, self.window.rows, self.window.columns
        zero, inside = str(quant_of(self.site.inputs[0]).zero_point), rows.inside_share
        with w.loop("ky", self.band_rows):
            w(f"const int32_t row = {rows.position('y')} + ky;")
            line = total(product("ky", window.padded_line), str(columns.pad * window.channels))
            w(f"int8_t *line = band + {line};")
            w.bill(8)
            with w.block(f"if (row >= 0 && row < {rows.size})"), w.trips(inside):
                w(f"const int8_t *from = {source} + {product('row', window.line)};")
                with w.loop("i", columns.taken * window.channels):
                    w(w.use(COPY, "line[i]", "from[i]"))
            with w.block("else"), w.trips(1 - inside), w.loop("i", columns.taken * window.channels):
                w(w.use(COPY, "line[i]", zero))

    def _four(self, w: Writer, names: Names, source: str, last: str, row: str) -> None:
        """All channels of the positions from x on; beyond the last one it is computed again."""
        window = self.window
        step = self.window.step
        w(f"const int8_t *a = {self._window(source, 'x')};")
        w(f"int8_t *to0 = {names.outputs[0]} + {total(row, product('x', window.filters))};")
        whole = last.isdigit() and int(last) % POSITIONS == 0
        for at, name in enumerate("bcd", 1):
            there = "1" if whole else f"(x + {at} < {last})"
            before = f"{chr(ord(name) - 1)} + {product(there, step)}"
            if self.rows_at_once > 1:
                w(f"const int32_t x{at} = x + {at} < {last} ? x + {at} : {f'x{at - 1}' if at > 1 else 'x'};")
                before = self._window(source, f"x{at}")
                w.bill(10)
            w(f"const int8_t *{name} = {before};")
            w(f"int8_t *to{at} = to{at - 1} + {product(there, window.filters)};")
            w.bill(2 if whole else 6)
        w.bill(2 * CALL + 8)
        lay = self._laying(w)
        w(f"{w.call(lay, 'words', names.packed['offsets'], 'a', 'b', 'c', 'd', str(self.taps // self._at_once))};")
        routine = self._routine(w)
        places = ", ".join(f"to{at}" for at in range(POSITIONS))
        blocks = str(window.filters // CHANNELS)
        w(f"{w.call(routine, 'words', names.packed['kernel'], names.packed['scaling'], places, blocks)};")

    def _window(self, source: str, x: str) -> str:
        """Where the inputs of a position begin."""
        if self.rows_at_once == 1:
            return f"{source} + {product(x, self.window.step)}"
        places, down = self.window.columns.places, self.window.rows.stride * self.line
        return f"{source} + {x} / {places} * {down} + {x} % {places} * {self.window.step}"

    @property
    def _at_once(self) -> int:
        return next(size for size in (4, 3, 2, 1) if self.taps % size == 0)

    def _laying(self, outside: Writer) -> Instruction:
        """What lays out the inputs of four positions."""
        w, at_once = Writer("{prefix}"), self._at_once
        with w.loop("i", "count", trips=self.taps / at_once):
            for tap in range(at_once):
                w(w.use(LET, f"at{tap}", f"offsets[{tap}]"))
                for half, (first, second) in enumerate((("a", "b"), ("c", "d"))):
                    value = f"(uint32_t){first}[at{tap}] + ((uint32_t){second}[at{tap}] << 16)"
                    w(f"words[{2 * tap + half}] = (int32_t)({value});")
                    w.bill(7)
            w(f"offsets += {at_once};")
            w(f"words += {2 * at_once};")
            w.bill(2)
        outside.add(w.whole)
        pointers = ", ".join(f"const int8_t *{name}" for name in "abcd")
        head = f"void {{name}}(int32_t *words, const int32_t *offsets, {pointers}, int32_t count)"
        return Instruction(f"join_four_{at_once}", head, str(w), 0, outlined=True)

    def _routine(self, outside: Writer) -> Instruction:
        """The products and outputs of four positions and all channels."""
        w, window = Writer("{prefix}"), self.window
        w(f"const uint32_t half = {WORDS.call(w, 'kept', f'{HALF}U')};")
        with w.loop("block", "blocks", trips=window.filters / CHANNELS):
            self._products(w)
            for channel in range(CHANNELS):
                with w.block(""):
                    self._outputs(w, channel)
            w(f"scaling += {CHANNELS * len(self.roles)};")
            for at in range(POSITIONS):
                w(f"to{at} += {CHANNELS};")
            w.bill(6)
        outside.helpers |= w.helpers
        outside.add(w.whole)
        marks = [str(self.taps), str(self.size), *self.lanes.marks()]
        marks += [f"left{self.left}"] if self.left is not None else []
        outputs = ", ".join(f"int8_t *to{at}" for at in range(POSITIONS))
        head = (
            f"void {{name}}(const int32_t *words, const int8_t *k, const int32_t *scaling, {outputs}, int32_t blocks)"
        )
        name = f"joined_{'_'.join(marks)}"
        return Instruction(name, head, str(w), 0, uses=tuple(w.instructions.values()), outlined=True)

    def _products(self, w: Writer) -> None:
        size = self.size
        count, rest = divmod(self.taps, size)
        tile = [(pair, channel) for pair in range(2) for channel in range(CHANNELS)]
        for pair, channel in tile:
            for name, role in (("total", 0), ("upper", 1)):
                value = f"(uint32_t)scaling[{channel * len(self.roles) + role}]"
                w(w.use(START, f"{name}{pair}{channel}", value))
        w("const int32_t *x = words;")
        with w.loop("i", count // 2):
            self._groups(w, [size, size], tile)
            w.bill(3)
        last = [size] * (count % 2) + [rest] * (rest > 0)
        if last:
            with w.block(""):
                self._groups(w, last, tile)

    def _groups(self, w: Writer, sizes: list[int], tile: list[tuple[int, int]]) -> None:
        for group, size in enumerate(sizes):
            with w.block(""):
                self._group(w, size, sum(sizes[:group]), tile)
        w(f"x += {2 * sum(sizes)};")
        w(f"k += {CHANNELS * sum(sizes)};")

    def _group(self, w: Writer, size: int, first: int, tile: list[tuple[int, int]]) -> None:
        for tap in range(first, first + size):
            with w.block("") if tap > first else w.trips(1):
                for pair in range(2):
                    w(w.use(LET, f"x{pair}", f"x[{2 * tap + pair}]"))
                for channel in range(CHANNELS):
                    w(w.use(LET, f"w{channel}", f"k[{CHANNELS * tap + channel}]"))
                for pair, channel in tile:
                    value = w.use(PRODUCT, f"x{pair}", f"w{channel}")
                    name = f"s{pair}{channel}"
                    w(w.use(SUM, name, value) if tap > first else f"uint32_t {name} = half + {value};")
        for pair, channel in tile:
            w(w.use(SUM, f"total{pair}{channel}", f"s{pair}{channel}"))
            w(w.use(SUM, f"upper{pair}{channel}", f"(uint32_t)((int32_t)s{pair}{channel} >> 16)"))
            w.bill(1)

    def _outputs(self, w: Writer, channel: int) -> None:
        scaling, names = self.lanes, {}
        for role, name in enumerate(self.roles[2:], 2):
            names[name] = name
            w(w.use(LET, name, f"scaling[{channel * len(self.roles) + role}]"))
        left = "left" if self.left is None else str(self.left)
        for position in range(POSITIONS):
            pair, upper = divmod(position, 2)
            total, high = f"total{pair}{channel}", f"upper{pair}{channel}"
            value = high if upper else f"({total} - ({high} << 16))"
            w(f"int32_t y{position} = (int32_t)({value}{f' << {left}' if left != '0' else ''});")
            w.bill(1 if upper else 3)
            scaled(w, scaling, f"y{position}", names, WORDS)
            w(w.use(STORE, f"to{position}[{channel}]", f"y{position}"))


def _refused(site: Site[Weighted]) -> str | None:
    reason = only_int8(site)
    if reason:
        return reason
    window = window_of(site)
    if window.groups > 1:
        return "it takes no groups"
    if window.filters % CHANNELS:
        return "its channels are not even"
    weights = site.constants["kernel"]
    if weights.data.dtype != np.int8 or quant_of(weights).zero_point:
        return "its weights are no bytes about zero"
    return None if window.pool == (1, 1) else "it takes no pool with it"


VARIANTS: tuple[Kernel[Weighted], ...] = (
    variant("joined", frozenset({"rv32im"}), _refused, lambda site: Joined(site, scaling_of(site))),
)

"""The sums and outputs of some positions and all channels: routines of `two_positions`."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.riscv import WORDS
from nnbuild.kernels.dsp.scaling import Scaling, scaled

CHANNELS = 2
TURN = 8
"""Taps per iteration of the loop over groups, at most."""
HALF = 0x8000
START = Row("uint32_t {0} = {1};", 1, 1)
PRODUCT = Row("(uint32_t)({0} * {1})", 1)
COUNTED = {4: "four", 6: "six"}


@dataclass(frozen=True, eq=False)
class Tile:
    """`pairs` of positions; size: taps of a group; left: the common shift of all sums, if there is one."""

    pairs: int
    taps: int
    size: int
    filters: int
    scaling: Scaling
    left: int | None

    @property
    def positions(self) -> int:
        return 2 * self.pairs

    @property
    def roles(self) -> tuple[str, ...]:
        left = [] if self.left is not None else ["left"]
        return ("total", "upper", *self.scaling.columns, *left)

    @property
    def at_once(self) -> int:
        return next(size for size in (4, 3, 2, 1) if self.taps % size == 0)

    def laying(self, outside: Writer) -> Instruction:
        """The routine that lays out the inputs of some positions."""
        w, at_once = Writer("{prefix}"), self.at_once
        with w.loop("i", "count", trips=self.taps / at_once):
            for tap in range(at_once):
                w(w.use(c99.READ, f"at{tap}", f"offsets[{tap}]"))
                for pair in range(self.pairs):
                    low, high = (f"(uint32_t)from{2 * pair + half}[at{tap}]" for half in range(2))
                    w(f"words[{self.pairs * tap + pair}] = (int32_t)({low} + ({high} << 16));")
                    w.bill(7)
            w(f"offsets += {at_once};")
            w(f"words += {self.pairs * at_once};")
            w.bill(2)
        outside.add(w.counts)
        pointers = ", ".join(f"const int8_t *from{at}" for at in range(self.positions))
        head = f"void {{name}}(int32_t *words, const int32_t *offsets, {pointers}, int32_t count)"
        return w.routine(f"join_{COUNTED[self.positions]}_{at_once}", head)

    def routine(self, outside: Writer) -> Instruction:
        """The products and outputs of some positions and all channels."""
        w = Writer("{prefix}")
        w(f"const uint32_t half = {WORDS.call(w, 'kept', f'{HALF}U')};")
        with w.loop("channel", "channels", step=CHANNELS, trips=self.filters / CHANNELS):
            self._products(w)
            self._outputs(w)
            w(f"scaling += {CHANNELS * len(self.roles)};")
            w.bill(2)
        outside.helpers |= w.helpers
        outside.add(w.counts)
        left = [f"left{self.left}"] if self.left is not None else []
        marks = [COUNTED[self.positions], str(self.taps), str(self.size), *self.scaling.marks(), *left]
        constants = "const int32_t *words, const int8_t *k, const int32_t *scaling"
        head = f"void {{name}}({constants}, int8_t *const *to, int32_t channels)"
        name = f"joined_{'_'.join(marks)}"
        return w.routine(name, head)

    def _products(self, w: Writer) -> None:
        size = self.size
        count, rest = divmod(self.taps, size)
        tile = [(pair, channel) for pair in range(self.pairs) for channel in range(CHANNELS)]
        for pair, channel in tile:
            for name, role in (("total", 0), ("upper", 1)):
                value = f"(uint32_t)scaling[{channel * len(self.roles) + role}]"
                w(w.use(START, f"{name}{pair}{channel}", value))
        w("const int32_t *x = words;")
        turn = next(groups for groups in (4, 3, 2, 1) if groups == 1 or (groups * size <= TURN and count % groups < 2))
        with w.loop("i", count // turn):
            self._groups(w, [size] * turn, tile)
            w.bill(3)
        last = [size] * (count % turn) + [rest] * (rest > 0)
        if last:
            with w.block(""):
                self._groups(w, last, tile)

    def _groups(self, w: Writer, sizes: list[int], tile: list[tuple[int, int]]) -> None:
        for group, size in w.each(enumerate(sizes)):
            self._group(w, size, sum(sizes[:group]), tile)
        w(f"x += {self.pairs * sum(sizes)};")
        w(f"k += {CHANNELS * sum(sizes)};")

    def _group(self, w: Writer, size: int, first: int, tile: list[tuple[int, int]]) -> None:
        for tap in range(first, first + size):
            with w.block("") if tap > first else w.trips(1):
                for channel in range(CHANNELS):
                    w(w.use(c99.READ, f"w{channel}", f"k[{CHANNELS * tap + channel}]"))
                for pair, channel in tile:
                    if channel == 0:
                        w(w.use(c99.READ, f"x{pair}", f"x[{self.pairs * tap + pair}]"))
                    value = w.use(PRODUCT, f"x{pair}", f"w{channel}")
                    name = f"s{pair}{channel}"
                    w(w.use(c99.STEP, name, value) if tap > first else f"uint32_t {name} = half + {value};")
        for pair, channel in tile:
            w(w.use(c99.STEP, f"total{pair}{channel}", f"s{pair}{channel}"))
            w(w.use(c99.STEP, f"upper{pair}{channel}", f"(uint32_t)((int32_t)s{pair}{channel} >> 16)"))
            w.bill(1)

    def _outputs(self, w: Writer) -> None:
        names = [{role: f"{role}{channel}" for role in self.roles} for channel in range(CHANNELS)]
        for channel in range(CHANNELS):
            for at, role in enumerate(self.roles[2:], 2):
                w(w.use(c99.READ, names[channel][role], f"scaling[{channel * len(self.roles) + at}]"))
        for position in range(self.positions):
            pair, upper = divmod(position, 2)
            with w.block(""):
                w(f"int8_t *at = to[{position}] + channel;")
                w.bill(2)
                for channel in range(CHANNELS):
                    left = names[channel]["left"] if self.left is None else str(self.left)
                    total, high = f"total{pair}{channel}", f"upper{pair}{channel}"
                    value = high if upper else f"({total} - ({high} << 16))"
                    w(f"int32_t y{channel} = (int32_t)({value}{f' << {left}' if left != '0' else ''});")
                    w.bill(1 if upper else 3)
                    scaled(w, self.scaling, f"y{channel}", names[channel], WORDS)
                    w(w.use(c99.STORE_BYTE, f"at[{channel}]", f"y{channel}"))

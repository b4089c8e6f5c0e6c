"""Layers of words on Cortex-M0: two positions by two channels, or one by four, in as many registers as there are.

Weights are stored plus 128, as loads of signed bytes take two instructions. So every sum exceeds the right one by 128
times the sum of its position's inputs, which is computed as they are widened. Sums may leave 32 bits on the way, but
what remains fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.armv6m import SMALL
from nnbuild.kernels.contract import Demand, Names, variant
from nnbuild.kernels.lanes import word_lanes
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.lanes.word_lanes import ShortWordLanes
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import Weighted, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import product
from nnbuild.kernels.paired_products.single_row import refused_shape
from nnbuild.kernels.paired_products.two_channels import MOST, TwoChannels
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

INPUT, TURN = 12, 3
"""Instructions of an input of two positions, and of an iteration."""
LIFT = 128
CLEAR = Row("{0} = 0;", 3)
ADD = Row("*sum = (int32_t)((uint32_t)*sum + (uint32_t)from[{0}]);", 1)
MOVE = Row("to[{0}] = from[{1}];", 3)
SUM = Row("int32_t {0} = (int32_t)((uint32_t){1} + (uint32_t){2} - (uint32_t){3} * {4}U);", 9)


class PairLanes(ShortWordLanes):
    vectors = 2
    store_cycles = 16


def divided(taps: int) -> tuple[int, int]:
    """The cheapest division: inputs with padding, and inputs per iteration."""
    ways = [(more, size) for more in range(taps, taps + 4) for size in range(1, MOST + 1) if more % size == 0]
    return min(ways, key=lambda way: way[0] * INPUT + way[0] // way[1] * TURN)


@dataclass(frozen=True, eq=False)
class TwoByTwo(TwoChannels):
    stored: ClassVar[str] = "uint8"
    beside: ClassVar[tuple[str, ...]] = ("sums + 4 + at",)
    more: ClassVar[str] = ", int32_t *sum"
    found: ClassVar[int] = 6

    @property
    def inputs(self) -> int:
        return divided(self.window.taps)[0]

    def kernel(self) -> Array:
        return (self.weights() + LIFT).astype(np.uint8).reshape(-1)

    def begin(self, w: Writer) -> None:
        w(w.use(CLEAR, "sums[4 + at]"))

    def move(self, w: Writer, at: int) -> None:
        w(w.use(MOVE, str(2 * at), str(at)))
        w(w.use(ADD, str(at)))

    def multiply(self, w: Writer) -> None:
        inputs, size = divided(self.window.taps)
        w(f"k = {SMALL.call(w, 'two_by_two_words', 'patch', 'k', f'patch + {self.sums_at}', 'sums', of=(size,))};")
        w.bill(INPUT * inputs + TURN * (inputs // size), products=4 * inputs)

    def sum(self, w: Writer, position: int, channel: int) -> None:
        found = f"sums[{2 * position + channel}]", f"sums[{4 + position}]"
        w(w.use(SUM, f"sum{position}{channel}", f"start[{channel}]", *found, str(LIFT)))


def _refused(site: Site[Weighted]) -> str | None:
    return word_lanes.refused(site) or ("it computes no pool" if window_of(site).pool != (1, 1) else None)


ROW_INPUT = 15
"""Instructions of an input and four channels."""
ROW_SUM = Row("int32_t {0} = (int32_t)((uint32_t){1} + (uint32_t){2} - (uint32_t)sums[4] * {3}U);", 6)


class RowLanes(ShortWordLanes):
    store_cycles = 16


@dataclass(frozen=True, eq=False)
class OneByFour(WindowNest[RowLanes]):
    """A single row, whose inputs are read where they are."""

    def demand(self) -> Demand:
        window, lanes = self.window, self.lanes
        weights = sums_of(self.site).weights + LIFT
        whole = np.pad(weights, ((0, 0), (0, -window.filters % lanes.vectors)))
        kernel = whole.reshape(window.taps, -1, lanes.vectors).transpose(1, 0, 2)
        constants = dot.packed(np.zeros((0, window.filters), np.int8), lanes)
        packed = {**constants, "kernel": kernel.astype(np.uint8).reshape(-1)}
        return Demand(extent=dot.divide(window.filters, lanes).number, packed=packed, each=lanes.vectors)

    def emit(self, w: Writer, names: Names) -> None:
        taps = self.window.taps
        w(f"const uint8_t *k = {names.packed['kernel']} + {product('begin', taps * self.lanes.vectors)};")
        w("int32_t sums[5];")
        dot.each_block(w, self.lanes, names, self.window.filters, partial(self._block, w, names.inputs[0]))

    def _block(self, w: Writer, source: str, block: dot.Block) -> None:
        taps = self.window.taps
        size = next(size for size in range(MOST, 0, -1) if taps % size == 0)
        w(f"k = {SMALL.call(w, 'one_by_four', source, 'k', f'{source} + {taps}', 'sums', of=(size,))};")
        w.bill(ROW_INPUT * taps + TURN * (taps // size), products=4 * taps)
        for channel in range(block.channels):
            w(w.use(ROW_SUM, f"sum0{channel}", f"start[{channel}]", f"sums[{channel}]", str(LIFT)))
        dot.store(w, self.lanes, block, ["to"])


def _refused_row(site: Site[Weighted]) -> str | None:
    return word_lanes.refused(site) or refused_shape(site)


NEEDS = frozenset({"armv6m"})
VARIANTS = (
    variant("two_by_two", NEEDS, _refused, lambda site: TwoByTwo(site, PairLanes(site))),
    variant("one_by_four", NEEDS, _refused_row, lambda site: OneByFour(site, RowLanes(site))),
)

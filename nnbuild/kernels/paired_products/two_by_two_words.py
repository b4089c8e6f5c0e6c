"""Layers of words on Cortex-M0: two positions by two channels, in as many registers as products of 32 bits leave.

Weights are stored plus 128, as loads of signed bytes take two instructions. So every sum exceeds the right one by 128
times the sum of its position's inputs, which is computed as they are widened. Sums may leave 32 bits on the way, but
what remains fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.arm import SMALL
from nnbuild.kernels.contract import variant
from nnbuild.kernels.lanes import word_lanes
from nnbuild.kernels.lanes.word_lanes import ShortWordLanes
from nnbuild.kernels.loops.window import Weighted, window_of
from nnbuild.kernels.paired_products.two_channels import MOST, TwoChannels
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

INPUT, TURN = 12, 3
"""Instructions of an input of two positions, and of an iteration."""
LIFT = 128
CLEAR = Row("{0} = 0;", 3)
ADD = Row("*sum += from[{0}];", 1)
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
        w.bill(INPUT * inputs + TURN * (inputs // size))

    def sum(self, w: Writer, position: int, channel: int) -> None:
        found = f"sums[{2 * position + channel}]", f"sums[{4 + position}]"
        w(w.use(SUM, f"sum{position}{channel}", f"start[{channel}]", *found, str(LIFT)))


def _refused(site: Site[Weighted]) -> str | None:
    return word_lanes.refused(site) or ("it computes no pool" if window_of(site).pool != (1, 1) else None)


VARIANTS = (variant("two_by_two", frozenset({"armv6m"}), _refused, lambda site: TwoByTwo(site, PairLanes(site))),)

"""A single row of bytes on Cortex-M0: one multiplication computes two products.

The word of two inputs, x0 + x1 * 2^16, times the word of two weights, w1 + w0 * 2^16, has x0 * w0 + x1 * w1 in its
upper half: at least -32,512 and at most 32,768, so it fits after subtracting 1. The lower x0 * w1 is within 16,384 of
zero; subtracting 32,768 prevents a borrow and also subtracts that 1, which the start of a sum accounts for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.kernels.contract import Demand, Names, Overlap, bytes_layer, only_int8, variant
from nnbuild.kernels.dsp.patches import is_row
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import Weighted, WindowNest
from nnbuild.kernels.parts.overlaps import SIZES
from nnbuild.numeric.rounding import INT8, int32s
from nnbuild.ops.site import Site

AT_ONCE = (4, 2, 1)
"""Pairs of inputs per iteration."""
LOAD = Row("const uint32_t {0} = (uint32_t){1};", 1)
LAY_OUT = Row("pairs[i] = {0} + {1} * 65536;", 9)
ADD = Row("{0} += (int32_t)({1} * {2} - 32768U) >> 16;", 5, products=1)


class RowLanes(ByteLanes):
    """Sums of one row, whose starts include what is subtracted for each pair."""

    store_cycles = 20

    def __init__(self, site: Site[Weighted]) -> None:
        super().__init__(site)
        pairs = -(-len(sums_of(site).weights) // 2)
        self.channels["start"] = (self.channels["start"].astype(np.int64) + pairs).astype(np.int32)


@dataclass(frozen=True, eq=False)
class TwoProducts(WindowNest[RowLanes]):
    @property
    def pairs(self) -> int:
        return -(-self.window.taps // 2)

    def demand(self) -> Demand:
        taps, outputs = self.window.taps, self.window.filters
        weights = np.pad(sums_of(self.site).weights, ((0, taps % 2), (0, 0)))
        packed = dot.packed(int32s(weights[1::2] + (weights[::2] << 16)), self.lanes)
        return Demand(
            extent=dot.divide(outputs, self.lanes).number,
            scratch=4 * self.pairs,
            scratch_type="int32",
            packed=packed,
            overlaps=(Overlap(distance=-taps, split_distance=outputs * SIZES[self.site.outputs[0].dtype]),),
        )

    def emit(self, w: Writer, names: Names) -> None:
        source, taps = names.inputs[0], self.window.taps
        w(f"int32_t *const pairs = {names.scratch};")
        with w.loop("i", taps // 2):
            w(w.use(LAY_OUT, f"{source}[2 * i]", f"{source}[2 * i + 1]"))
        if taps % 2:
            w(f"pairs[{taps // 2}] = {source}[{taps - 1}];")
        w(f"const int32_t *k = {names.packed['kernel']} + begin * {self.pairs * self.lanes.vectors};")
        dot.each_block(w, self.lanes, names, self.window.filters, partial(self._block, w))

    def _block(self, w: Writer, block: dot.Block) -> None:
        dot.start(w, self.lanes, 1, block)
        at_once = next(size for size in AT_ONCE if self.pairs % size == 0)
        w("const int32_t *x = pairs;")
        with w.loop("i", self.pairs // at_once):
            for pair in range(at_once):
                w(w.use(LOAD, f"x{pair}", f"x[{pair}]"))
                for vector in range(block.vectors):
                    w(w.use(LOAD, f"w{pair}{vector}", f"k[{pair * block.vectors + vector}]"))
                    w(w.use(ADD, f"sum0{vector}", f"x{pair}", f"w{pair}{vector}"))
            w(f"x += {at_once};")
            w(f"k += {at_once * block.vectors};")
        dot.store(w, self.lanes, block, ["to"])


def refused_rows(site: Site[Weighted]) -> str | None:
    return only_int8(site) or refused_shape(site)


def refused_shape(site: Site[Weighted]) -> str | None:
    return None if is_row(site) else "it computes one row of outputs, whose window is the whole input"


def _refused(site: Site[Weighted]) -> str | None:
    if reason := bytes_layer(site) or refused_shape(site):
        return reason
    weights = sums_of(site).weights
    fits = weights.size == 0 or (weights.min() >= INT8[0] and weights.max() <= INT8[1])
    return None if fits else "its weights less their zero point have more than 8 bits"


VARIANTS = (variant("two_products", frozenset({"armv6m"}), _refused, lambda site: TwoProducts(site, RowLanes(site))),)

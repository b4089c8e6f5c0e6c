"""Rows of few distinct weights where multiplications are slow, as on a Cortex-M0 with 32 cycles each: inputs are summed
by weight first, and every sum is multiplied once.

A byte combines the weights that several outputs give to an input, so one addition serves them all: two outputs of up to
16 values, or more of fewer. Adding sums over the other outputs' weights gives the first output's sums by weight; once
it is done, sums that differ only in its weight are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.contract import Demand, Names, variant
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import Weighted, WindowNest
from nnbuild.kernels.paired_products.single_row import refused_rows
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.site import Site

BUCKETS, MOST = 256, 16
"""Sums, one per value of a byte, and the distinct weights up to which two outputs share them."""
TOGETHER = (4, 3, 2)
AT_ONCE = (4, 2, 1)
"""Inputs per iteration."""
CLEAR = Row("buckets[{0}] = 0;", 3)
ADD = Row("buckets[k[{0}]] += x[{0}];", 7)
CALL_CYCLES, VALUE_CYCLES, SUM_CYCLES, FOLD_CYCLES = 12, 10, 5, 8
"""Cycles of a routine, of a value, of adding a sum to its value's, and of merging a sum for the next output."""


class BucketLanes(ByteLanes):
    store_cycles = 20

    def __init__(self, site: Site[Weighted]) -> None:
        super().__init__(site)
        self.values = values_of(site)
        count = max(2, len(self.values))
        self.vectors = next((many for many in TOGETHER if count**many <= BUCKETS), 1)


def values_of(site: Site[Weighted]) -> Array:
    return np.unique(sums_of(site).weights)


@dataclass(frozen=True, eq=False)
class Buckets(WindowNest[BucketLanes]):
    def sizes(self, outputs: int) -> list[int]:
        """The number of sums per value of each of `outputs` outputs, at the time of its turn."""
        return [len(self.lanes.values) ** later for later in reversed(range(outputs))]

    def demand(self) -> Demand:
        lanes, taps = self.lanes, self.window.taps
        digits = np.searchsorted(lanes.values, sums_of(self.site).weights)
        blocks, at, parts = dot.divide(self.window.filters, lanes), 0, []
        for block, count in blocks.classes():
            width = block.channels
            each = digits[:, at : at + count * width].reshape(taps, count, width)
            parts.append((each * self.sizes(width)).sum(axis=2).T.reshape(-1))
            at += count * width
        packed = {"kernel": np.concatenate(parts).astype(np.uint8), "values": lanes.values.astype(np.int8)}
        packed |= {name: dot.pack_channels(values, lanes) for name, values in lanes.channels.items()}
        room = len(lanes.values) ** blocks.full.channels if blocks.count else BUCKETS
        return Demand(blocks.number, 4 * room, "int32", packed)

    def emit(self, w: Writer, names: Names) -> None:
        w(f"int32_t *const buckets = {names.scratch};")
        w(f"const uint8_t *k = {names.packed['kernel']} + begin * {self.window.taps};")
        dot.each_block(w, self.lanes, names, self.window.filters, partial(self._block, w, names))

    def _block(self, w: Writer, names: Names, block: dot.Block) -> None:
        values, taps = len(self.lanes.values), self.window.taps
        with w.loop("i", values**block.channels):
            w(w.use(CLEAR, "i"))
        w(f"const int8_t *x = {names.inputs[0]};")
        at_once = next(size for size in AT_ONCE if taps % size == 0)
        with w.loop("i", taps // at_once):
            for index in range(at_once):
                w(w.use(ADD, str(index)))
            w(f"x += {at_once};")
            w(f"k += {at_once};")
            w.bill(2)
        dot.start(w, self.lanes, 1, block)
        for output, size in enumerate(self.sizes(block.channels)):
            w.bill(CALL_CYCLES + values * (VALUE_CYCLES + SUM_CYCLES * size + FOLD_CYCLES * size * (size > 1)))
            w.bill(0, products=values)
            given = ("buckets", names.packed["values"], str(values), str(size))
            w(f"sum0{output} += {w.call(BUCKET_SUM, *given)};")
        dot.store(w, self.lanes, block, ["to"])


def _bucket_sum() -> Instruction:
    w = Writer("{prefix}")
    w("const int32_t *from = buckets;")
    w("int32_t sum = 0;")
    with w.block("for (int32_t left = count; left > 0; --left)"):
        w("int32_t part = 0;")
        with w.block("for (int32_t i = 0; i < size; ++i)"):
            w("part += from[i];")
        w("from += size;")
        w("sum += part * *values;")
        w("values += 1;")
    w("from = buckets + size;")
    with w.block("for (int32_t left = size > 1 ? count - 1 : 0; left > 0; --left)"):
        with w.block("for (int32_t i = 0; i < size; ++i)"):
            w("buckets[i] += from[i];")
        w("from += size;")
    w("return sum;")
    head = "int32_t {name}(int32_t *buckets, const int8_t *values, int32_t count, int32_t size)"
    return w.routine("bucket_sum", head)


BUCKET_SUM = _bucket_sum()


def _refused(site: Site[Weighted]) -> str | None:
    if reason := refused_rows(site):
        return reason
    values = values_of(site) if sparse_weights.distinct(site) <= MOST + 1 else np.zeros(MOST + 1)
    if len(values) > MOST:
        return f"its weights have more than {MOST} values"
    fits = values.size and values[0] >= INT8[0] and values[-1] <= INT8[1]
    return None if fits else "its weights less their zero point have more than 8 bits"


def _nest(site: Site[Weighted]) -> Buckets:
    return Buckets(site, BucketLanes(site))


VARIANTS = (variant("buckets", frozenset({"armv6m"}), _refused, _nest, encoding="buckets"),)

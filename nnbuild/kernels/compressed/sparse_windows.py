"""One row of a dense layer with sparse weights of few distinct values, on sets that look up bytes in registers.

Two outputs share windows of 256 inputs, whose copy is offset to 0 to 255; so the inputs of 64 weights are looked up at
once, whichever of the two outputs they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.encodings.windows import VALUES, WINDOW
from nnbuild.isa.c99 import IntegerLanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.compressed.sparse_rows import ONE
from nnbuild.kernels.contract import Demand, Names, on_nests, only_int8
from nnbuild.kernels.lanes.layer_sums import integer_lanes, sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import WindowNest
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

LIFT = 128
FURTHER = 64
"""Bytes behind the last entry that a set may read."""
AT_ONCE, STEP_CYCLES = 64, 20
"""Entries looked up together, and the cycles of that."""


@dataclass(frozen=True, eq=False)
class SparseWindows(WindowNest[IntegerLanes]):
    v: Vectors

    @property
    def windows(self) -> int:
        return -(-self.window.depth // WINDOW)

    @property
    def pairs(self) -> int:
        return -(-self.window.filters // 2)

    def demand(self) -> Demand:
        found = sparse_weights.windows_of(self.site)
        assert found is not None
        packed = {
            "kernel": np.pad(found.entries, (0, FURTHER)),
            "counts": found.counts,
            "starts": found.starts,
            "values": np.pad(found.table, (0, VALUES - len(found.table))),
        }
        return Demand(self.pairs, self.windows * WINDOW, "int8", packed | dict(self.lanes.channels))

    def emit(self, w: Writer, names: Names) -> None:
        found, width = sparse_weights.windows_of(self.site), 2 * self.windows
        assert found is not None
        depth, packed = self.window.depth, names.packed
        w(f"{self.v.call(w, 'lift', names.scratch, names.inputs[0], str(depth), of=(LIFT,))};")
        with w.loop("i", self.windows * WINDOW, start=depth):
            w(f"{names.scratch}[i] = 0;")
        steps = -(-found.counts.reshape(-1, 2).astype(np.int64).sum(axis=1) // AT_ONCE)
        with w.loop("pair", "end", start="begin", trips=self.pairs):
            w("int32_t found[2] = {0, 0};")
            given = (
                f"{packed['kernel']} + {packed['starts']}[pair]",
                f"{packed['counts']} + pair * {width}",
                packed["values"],
                f"(const uint8_t *){names.scratch}",
                str(self.windows),
                "found",
            )
            w.bill(STEP_CYCLES * float(steps.sum()) / self.pairs)
            w(f"{self.v.call(w, 'sum_of_windows', *given)};")
            if self.window.filters % 2:
                w(f"const int32_t rows = pair < {self.pairs - 1} ? 2 : 1;")
            with w.loop("row", "rows" if self.window.filters % 2 else 2, trips=2):
                w("const int32_t output = 2 * pair + row;")
                dot.declare_channels(w, self.lanes, packed, " + output")
                dot.start(w, self.lanes, 1, ONE)
                w("sum00 += found[row];")
                w(f"{self.lanes.output_type} *to = {names.outputs[0]} + output;")
                w.bill(4)
                dot.store(w, self.lanes, ONE, ["to"])


def _nest(v: Vectors, site: Site[Dense]) -> SparseWindows:
    sums = sums_of(site)
    return SparseWindows(site, integer_lanes(site, 1, sums.start - LIFT * sums.weights.sum(axis=0)), v)


def _refused(site: Site[Dense]) -> str | None:
    reason = only_int8(site) or sparse_weights.refused(site, 1, 1)
    if reason or sparse_weights.distinct(site) > VALUES:
        return reason or f"its weights have more than {VALUES} values"
    return None if sparse_weights.windows_of(site) else "a window of its weights has too many entries"


VARIANTS = (on_nests("windows", "_sparse", _refused, _nest, encoding="windows"),)

"""One row of a dense layer, many of whose inputs are zero: skips these and their weights.

Weights are stored input by input, all or only the nonzero ones; sums wait in scratch. The share of zero inputs comes
from the samples that a model was quantized with; without it no kernel here is considered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import IntegerLanes
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.compressed.sparse_rows import ONE
from nnbuild.kernels.contract import PORTABLE, Demand, Names, only_int8, variant
from nnbuild.kernels.dsp.patches import is_row
from nnbuild.kernels.lanes.layer_sums import integer_lanes
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import WindowNest
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

LET = Row("const int32_t {0} = {1};", 2, 1)
STEP = Row("at += {0};", 2, 1)
WAITING = Row("{0} += {1};", 2, 1)
ADD = Row("sums[{0}] += value * {1};", 5, 2, products=1)
NEXT = Row("sum[{0}] += value * {1};", 5, 2, products=1)
FORWARD = Row("sum += {0}; k += {0};", 2)
FEWEST = 0.45
"""Share of zero inputs from which skipping is considered."""
AT_ONCE = (4, 2, 1)
"""Sums per iteration."""
BRANCH_CYCLES = 3


@dataclass(frozen=True, eq=False)
class Columns(WindowNest[IntegerLanes]):
    """`skips`: skips zero weights, too."""

    skips: bool

    def demand(self) -> Demand:
        packed = {"kernel": self.site.constant("kernel").reshape(-1)}
        if self.skips:
            found = sparse_weights.columns_of(self.site)
            packed = {"starts": found.starts, "steps": found.steps, "kernel": found.values.reshape(-1)}
        return Demand(1, 4 * self.window.filters, "int32", packed | dict(self.lanes.channels))

    def emit(self, w: Writer, names: Names) -> None:
        lanes, outputs = self.lanes, self.window.filters
        w("(void)begin;")
        w("(void)end;")
        w(f"int32_t *const sums = {names.scratch};")
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']};")
        if self.skips:
            starts = C_TYPES[sparse_weights.columns_of(self.site).starts.dtype.name]
            w(f"const {starts} *starts = {names.packed['starts']};")
            w(f"const uint8_t *steps = {names.packed['steps']};")
        with w.loop("output", outputs):
            w(w.use(c99.STORE, "sums[output]", "0"))
        with w.loop("i", self.window.depth):
            w(w.use(LET, "value", f"{names.inputs[0]}[i] - {lanes.input_zero}"))
            (self._some if self.skips else self._all)(w)
        with w.loop("output", outputs):
            dot.declare_channels(w, lanes, names.packed, " + output")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + output;")
            dot.start(w, lanes, 1, ONE)
            w(w.use(WAITING, "sum00", "sums[output]"))
            dot.store(w, lanes, ONE, ["to"])

    @property
    def _kept(self) -> float:
        return 1 - self.site.inputs[0].zeros

    def _all(self, w: Writer) -> None:
        """Adds an input's weights and advances to the next input's."""
        outputs, zero = self.window.filters, self.lanes.weight_zero
        at_once = next(size for size in AT_ONCE if outputs % size == 0)
        with w.block("if (value != 0)"), w.trips(self._kept):
            w("int32_t *sum = sums;")
            with w.loop("o", outputs, step=at_once):
                for index in range(at_once):
                    w(w.use(NEXT, str(index), f"(k[{index}] - {zero})"))
                w(w.use(FORWARD, str(at_once)))
        with w.block("else"):
            w(f"k += {outputs};")
        w.bill(BRANCH_CYCLES)

    def _some(self, w: Writer) -> None:
        found = sparse_weights.columns_of(self.site)
        w("const int32_t count = (int32_t)(starts[1] - starts[0]);")
        with w.block("if (value != 0)"), w.trips(self._kept):
            w("int32_t at = 0;")
            with w.loop("j", "count", trips=len(found.steps) / self.window.depth):
                w(w.use(STEP, "steps[j]"))
                w(w.use(ADD, "at", "k[j]"))
        for pointer, by in (("steps", "count"), ("k", "count"), ("starts", "1")):
            w(f"{pointer} += {by};")
        w.bill(BRANCH_CYCLES + 5, 1)


def _nest(skips: bool, site: Site[Dense]) -> Columns:
    return Columns(site, integer_lanes(site, 1), skips)


def _refused(skips: bool, site: Site[Dense]) -> str | None:
    reason = only_int8(site) or (None if is_row(site) else "it computes one row only")
    if reason or site.inputs[0].zeros < FEWEST:
        return reason or "too few of its inputs are known to be zero"
    return sparse_weights.refused(site, 1, 1) if skips else None


VARIANTS = (
    variant("columns", PORTABLE, partial(_refused, False), partial(_nest, False)),
    variant("sparse_columns", PORTABLE, partial(_refused, True), partial(_nest, True), encoding="blocks"),
)

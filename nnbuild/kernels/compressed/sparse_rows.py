"""One row of a dense layer whose weights are mostly zero: stores and multiplies nonzero blocks only.

The lanes define the size of a block in outputs and neighbouring inputs; a work item is a group of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.encodings import codes
from nnbuild.isa import c99
from nnbuild.isa.c99 import IntegerLanes
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, of_set, only_int8, only_integer, variant
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.lanes.layer_sums import integer_lanes, sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dense_row import SLACK, finish
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.window import WindowNest
from nnbuild.kernels.loops.window_loops import with_last
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

STEP = Row("from += {0};", 3, 1)
ENTRY = Row("const uint8_t {0} = k[i];", 1, 1)
ONE = Block(1, 1)
BLOCKS, RUNS = "blocks", "runs"
"""The ways of storing weights."""
FURTHER = 16
"""Bytes behind the last entry that a set may read."""
BEYOND = 512
"""Bytes behind the last input that a set may read."""
GATHERED = 1.0
"""Cycles of an entry where a row is summed at once."""
SHARED = (4, 2, 1)
"""Outputs that share places, one number at a time."""


@dataclass(frozen=True, eq=False)
class SparseRow(WindowNest[Lanes]):
    @property
    def width(self) -> int:
        return self.lanes.lanes * self.lanes.vectors

    def demand(self) -> Demand:
        lanes, found = self.lanes, sparse_weights.blocks_of(self.site, self.width, self.lanes.depth)
        packed = {"starts": found.starts, "steps": found.steps, "kernel": found.values.reshape(-1)}
        for name, values in lanes.channels.items():
            packed[name] = np.pad(values, (0, -len(values) % self.width))
        if isinstance(lanes, IntegerVectors):
            packed = {name: lanes.arranged(name, values) for name, values in packed.items()}
        scratch = self.window.depth * np.dtype(self._ready).itemsize + SLACK if self._ready else 0
        return Demand(len(found.starts) - 1, scratch, self._ready or "int8", packed)

    @property
    def _ready(self) -> str:
        """The type of the inputs' copy, if the lanes need them in another form."""
        return self.lanes.scratch_type if isinstance(self.lanes, IntegerVectors) else ""

    def emit(self, w: Writer, names: Names) -> None:
        lanes, source = self.lanes, names.inputs[0]
        found = sparse_weights.blocks_of(self.site, self.width, lanes.depth)
        if isinstance(lanes, IntegerVectors):
            lanes.copy(w, names.scratch, source, self.window.depth)
            source = names.scratch
        groups, size = len(found.starts) - 1, self.width * lanes.depth
        kind = C_TYPES[found.starts.dtype.name]
        w(f"const {kind} *starts = {names.packed['starts']} + begin;")
        w(f"const uint8_t *steps = {names.packed['steps']} + starts[0];")
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + (int32_t)starts[0] * {size};")
        w.bill(8, 2)
        with w.loop("group", "end", start="begin", trips=groups):
            dot.declare_channels(w, lanes, names.packed, f" + group * {self.width}")
            w(f"const {lanes.input_type} *from = {source};")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + group * {self.width};")
            w("const int32_t count = (int32_t)(starts[1] - starts[0]);")
            w("starts += 1;")
            w.bill(6, 2)
            self._group(w, len(found.steps) / groups)

    def _group(self, w: Writer, per_group: float) -> None:
        blocks = dot.divide(self.window.filters, self.lanes)
        full = blocks.full
        dot.start(w, self.lanes, 1, full)
        with w.loop("i", "count", trips=per_group):
            w(w.use(STEP, f"*steps * {self.lanes.depth}"))
            dot.multiply(w, self.lanes, full, ["from"], "k")
            w("steps += 1;")
            w(f"k += {self.width * self.lanes.depth};")
            w.bill(2)
        last = partial(self._store, w, blocks.last) if blocks.last else None
        with_last(w, "group", blocks.count, partial(self._store, w, full), last)

    def _store(self, w: Writer, block: Block) -> None:
        if isinstance(self.lanes, IntegerVectors):
            finish(w, self.lanes, block)
        else:
            dot.store(w, self.lanes, block, ["to"])


@dataclass(frozen=True, eq=False)
class SparseCodes(WindowNest[IntegerLanes]):
    """Few distinct numbers: the lower half of a byte counts the zeros before one, the upper half indexes a table.

    Inputs keep their zero point, which the start accounts for. Sets with an operation for it sum a row at once.
    """

    v: Vectors | None = None

    def demand(self) -> Demand:
        found = sparse_weights.runs_of(self.site)
        (lane,) = found.lanes
        zeros = codes.unpacked(lane.zeros, found.width, int(lane.pointers[-1]))
        places = codes.unpacked(lane.codes, found.bits, int(lane.pointers[-1]))
        packed = {
            "starts": lane.pointers,
            "kernel": np.pad((zeros | places << found.width).astype(np.uint8), (0, FURTHER if self.v else 1)),
            "values": np.pad(found.table, (0, (1 << found.width) - len(found.table))),
        }
        scratch = self.window.depth + BEYOND if self.v else 0
        return Demand(len(lane.pointers) - 1, scratch, "int8", packed | dict(self.lanes.channels))

    def emit(self, w: Writer, names: Names) -> None:
        lanes, found, source = self.lanes, sparse_weights.runs_of(self.site), names.inputs[0]
        pointers = found.lanes[0].pointers
        outputs = len(pointers) - 1
        if self.v:
            with w.loop("i", self.window.depth):
                w(w.use(c99.STORE, f"{names.scratch}[i]", f"{source}[i]"))
            source = names.scratch
        w(f"const {C_TYPES[pointers.dtype.name]} *starts = {names.packed['starts']} + begin;")
        w(f"const uint8_t *k = {names.packed['kernel']} + starts[0];")
        w.bill(6, 2)
        with w.loop("output", "end", start="begin", trips=outputs):
            dot.declare_channels(w, lanes, names.packed, " + output")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + output;")
            w("const int32_t count = (int32_t)(starts[1] - starts[0]);")
            w("starts += 1;")
            w.bill(6, 2)
            dot.start(w, lanes, 1, ONE)
            self._row(w, source, names.packed["values"], int(pointers[-1]) / outputs)
            w("k += count;")
            dot.store(w, lanes, ONE, ["to"])

    def _row(self, w: Writer, source: str, values: str, count: float) -> None:
        if self.v:
            w.bill(count * GATHERED)
            w(f"sum00 = {self.v.call(w, 'sum_of_runs', 'k', 'count', values, source, 'sum00')};")
            return
        w(f"const {self.lanes.input_type} *from = {source};")
        with w.loop("i", "count", trips=count):
            w(w.use(ENTRY, "entry"))
            w("from += entry & 15;")
            w.bill(3)
            dot.multiply(w, self.lanes, ONE, ["from"], f"{values} + (entry >> {sparse_weights.WIDTH})")
            w("from += 1;")


def _codes(v: Vectors | None, site: Site[Dense]) -> SparseCodes:
    return SparseCodes(site, integer_lanes(site, 1, sums_of(site).start if v else None), v)


def _refused_codes(v: Vectors | None, site: Site[Dense]) -> str | None:
    reason = (only_int8 if v else only_integer)(site) or sparse_weights.refused(site, 1, 1)
    few = reason or sparse_weights.distinct(site) <= 1 << sparse_weights.WIDTH
    return reason if few else "its weights have more than 16 values"


def _scalar(rows: int, site: Site[Dense]) -> SparseRow:
    return SparseRow(site, integer_lanes(site, rows))


def _vectors(chosen: Vectors, site: Site[Dense]) -> SparseRow:
    return SparseRow(site, integer_layers.lanes_of(chosen, site))


def _refused(rows: int, site: Site[Dense]) -> str | None:
    return only_integer(site) or sparse_weights.refused(site, rows, 1)


def _refused_vectors(chosen: Vectors, site: Site[Dense]) -> str | None:
    return integer_layers.refused(chosen, site) or sparse_weights.refused(site, chosen.lanes, chosen.depth)


def on_set(chosen: Vectors) -> list[Kernel[Dense]]:
    """The outputs in a vector share places."""
    found = [of_set(chosen, "_sparse", _refused_vectors, _vectors, encoding=BLOCKS)]
    if "sum_of_runs" in chosen.spellings:
        found.append(of_set(chosen, "_sparse_codes", _refused_codes, _codes, encoding=RUNS))
    return found


def _by(rows: int) -> Kernel[Dense]:
    return variant(f"sparse_by_{rows}", PORTABLE, partial(_refused, rows), partial(_scalar, rows), encoding=BLOCKS)


VARIANTS = (
    *map(_by, SHARED),
    variant("sparse_codes", PORTABLE, partial(_refused_codes, None), partial(_codes, None), encoding=RUNS),
)

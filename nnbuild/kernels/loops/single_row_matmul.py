"""Matrix products of bytes in vectors whose left matrix is a single row, which does not repay packing the right one.

Where columns are contiguous, these are the rows of inputs of a layer with one filter, the left row. Elsewhere lanes are
neighbouring columns, which meet a number of the left row, or a pair of them, repeated in all lanes. Bytes of the right
matrix are widened where they are, the last vector overlapping the one before; only what is shorter than a vector is
copied first. The left row is prepared less its zero point, the right one's is taken off by the sum of the left row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import LOAD_AS, STEP
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names, Nest
from nnbuild.kernels.lanes.tap_vectors import GROUP, TapVectors
from nnbuild.kernels.loops import dot, summed_tiles
from nnbuild.kernels.loops.padded_tiles import UNROLLED
from nnbuild.kernels.loops.summed_tiles import SummedTiles
from nnbuild.kernels.loops.vector_matmul import MOVE, VectorMatmul, each_matrix, lanes_of_bytes, sizes, stand_in
from nnbuild.ops.integer import quant_of
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

SLACK = 256
"""Bytes behind copies that the last vectors may touch."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InPlace(TapVectors):
    """Bytes of the right matrix keep its zero point, whose effect on all sums is `offset`."""

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        super().start(w, accumulator, channel)
        self.combine(w, "add", accumulator, self.v.call(w, "each", "offset"))


def declare_offset(w: Writer, row: str, count: int, zero: int) -> None:
    """What the zero point of the right matrix adds to each sum with a prepared row."""
    w(w.use(LOAD_AS, "int32_t", "offset", "0"))
    if zero:
        with w.loop("i", count):
            w(w.use(STEP, "offset", f"{row}[i]"))
        w(f"offset *= {-zero};")


class TilesInPlace(SummedTiles):
    """The last vector of inputs ends with them; its weights begin with zeros for those of the one before."""

    @property
    def strip(self) -> int:
        return self.window.outputs[0]

    def demand(self) -> Demand:
        return replace(super().demand(), scratch=0, scratch_type="int16")

    def emit(self, w: Writer, names: Names) -> None:
        super().emit(w, replace(names, scratch=names.inputs[0]))

    def _copy(self, w: Writer, names: Names) -> None:
        pass

    def _sum(self, w: Writer, inputs: str, names: list[str]) -> None:
        for name in names:
            self.lanes.clear(w, name)
        w(f"const {self.lanes.weight_type} *k = {self.lanes.late_pointer(w, 'taps')};")
        for i, some in in_vectors(w, self.width, self.window.run, "i", unrolled=UNROLLED):
            self._multiply(w, f"{inputs} + {i if some == self.width else str(self.window.run - self.width)}", 0)
            w(f"k += {self.width};")


class TurnedRow(VectorMatmul):
    """The right matrix, whose rows are the columns, times the left row: its site has exchanged inputs."""

    def demand(self) -> Demand:
        plain = super().demand()
        return replace(plain, scratch=plain.scratch + SLACK)

    def emit(self, w: Writer, names: Names) -> None:
        super().emit(w, replace(names, inputs=names.inputs[::-1]))

    def _lay_out(self, w: Writer) -> None:
        """The left row in whole vectors, with zeros before or behind its last numbers."""
        assert isinstance(self.lanes, IntegerVectors)
        lanes, in_place = centred(self.lanes, self.site), isinstance(self.inner, TilesInPlace)
        depth, width = sizes(self.site)[2], lanes.lanes * lanes.depth
        rest = depth % width
        whole = depth - rest
        if whole:
            lanes.copy(w, "columns", "columns_in", whole)
        if rest:
            lanes.fill(w, f"columns + {whole}", width)
            place = whole + (width - rest if in_place else 0)
            lanes.copy(w, f"columns + {place}", f"columns_in + {whole}", rest)
        if in_place:
            declare_offset(w, "columns", whole + (width if rest else 0), quant_of(self.site.inputs[0]).zero_point)


@dataclass(frozen=True, eq=False)
class RepeatedRow:
    site: Site[MatMul]
    lanes: TapVectors

    @property
    def steps(self) -> int:
        """Numbers of the prepared left row."""
        depth, together = sizes(self.site)[2], self.lanes.depth
        return -(-depth // together) * together

    @property
    def group(self) -> int:
        """Columns whose sums are in registers together; not more than there are, but for those of a vector."""
        filled = self.lanes.lanes * self.lanes.depth
        return min(self.lanes.group * self.lanes.lanes, max(1, sizes(self.site)[3] // filled) * filled)

    @property
    def in_place(self) -> bool:
        return isinstance(self.lanes, InPlace)

    def demand(self) -> Demand:
        count, _, depth, columns = sizes(self.site)
        packed = {name: self.lanes.arranged(name, values) for name, values in self.lanes.channels.items()}
        copied = 0 if self.in_place else depth * columns
        return Demand(count, 2 * (self.steps + copied) + SLACK, "int16", packed)

    def emit(self, w: Writer, names: Names) -> None:
        _, _, depth, columns = sizes(self.site)
        lanes, right = self.lanes, centred(self.lanes, self.site)
        w(f"int16_t *const row = {names.scratch};")
        dot.declare_channels(w, lanes, names.packed)
        with each_matrix(w, self.site, names) as (left, rows, out):
            lanes.copy(w, "row", left, depth)
            if self.steps > depth:
                w(w.use(MOVE, f"row[{depth}]", "0"))
            if self.in_place:
                declare_offset(w, "row", depth, right.zero)
            else:
                w(f"int16_t *const rows = row + {self.steps};")
                right.copy(w, "rows", rows, depth * columns)
                rows = "rows"
            for at, count in in_vectors(w, self.group, columns, "j"):
                if self.in_place and count < self.group:
                    count += -count % (lanes.lanes * lanes.depth)
                    at = str(columns - count)
                self._group(w, f"{rows} + {at}", count, f"{out} + {at}")

    def _group(self, w: Writer, rows: str, count: int, to: str) -> None:
        _, _, depth, columns = sizes(self.site)
        lanes, filled = self.lanes, self.lanes.lanes * self.lanes.depth
        vectors = -(-count // filled) * lanes.depth
        for vector in range(vectors):
            lanes.start(w, f"sum{vector}", str(vector * lanes.lanes))
        w(f"const {lanes.weight_type} *k = {rows};")
        for i, some in in_vectors(w, lanes.depth, depth, "i"):
            lines = [f"k + {line * columns}" for line in range(some)]
            self._step(w, i, [*lines, *lines[:1] * (lanes.depth - some)], vectors)
            w(f"k += {some * columns};")
        for vector in w.each(range(vectors)):
            lanes.prepare(w, str(vector * lanes.lanes))
            lanes.scale(w, f"sum{vector}")
        lanes.store_group(w, [f"sum{vector}" for vector in range(vectors)], to, count)

    def _step(self, w: Writer, i: str, lines: list[str], vectors: int) -> None:
        """Numbers of the left row from `i` on, times as many lines of the right matrix."""
        lanes, v = self.lanes, self.lanes.v
        lanes.inputs(w, "by", f"row + {i}")
        for first in range(0, vectors, lanes.depth):
            names = [f"{name}{first}" for name in "ab"[: lanes.depth]]
            for name, line in zip(names, lines, strict=True):
                lanes.weights(w, name, f"{line} + {first * lanes.lanes}")
            for which in range(lanes.depth):
                x = names[0]
                if lanes.depth > 1:
                    x = f"x{first + which}"
                    v.let(w, "words", x, v.call(w, "mix", *names, of=(lanes.depth, which, lanes.block)))
                lanes.multiply(w, f"sum{first + which}", "by", x)


def centred(lanes: IntegerVectors, site: Site[MatMul]) -> IntegerVectors:
    """The lanes that copy numbers of the second input less their zero point."""
    return replace(lanes, zero=quant_of(site.inputs[1]).zero_point, input_type="int16_t")


def nest(v: Vectors, site: Site[MatMul]) -> Nest:
    if site.attributes.turned:
        return _turned(v, site)
    lanes = lanes_of_bytes(v, site, GROUP * v.lanes)
    if sizes(site)[3] < lanes.lanes * lanes.depth:
        return RepeatedRow(site, as_kind(TapVectors, lanes, times=1))
    return RepeatedRow(site, as_kind(InPlace, replace(lanes, weight_type="int8_t"), times=1))


def _turned(v: Vectors, site: Site[MatMul]) -> TurnedRow:
    (out,), columns = site.outputs, sizes(site)[3]
    exchanged = replace(out, shape=(*out.shape[:-2], columns, 1))
    site = replace(site, inputs=site.inputs[::-1], outputs=(exchanged,))
    lanes, kind = lanes_of_bytes(v, site, 1), SummedTiles
    if sizes(site)[2] >= lanes.lanes * lanes.depth:
        lanes, kind = as_kind(InPlace, replace(lanes, input_type="int8_t"), times=1), TilesInPlace
    inner = summed_tiles.tiled(kind, stand_in(site), lanes)
    return TurnedRow(site, inner, inner.lanes)

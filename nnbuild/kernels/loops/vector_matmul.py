"""Matrix products of two tensors in vectors: the right one is packed in scratch like weights, then the loops of a dense
layer compute the rows of the left one.

A stand-in site tells these loops the sizes; only the number of its weights matters. Integers are widened to 16 bits
less their zero point, so any two 8-bit numbers may be multiplied. A work item is a matrix, packed first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa.integer_channels import integer_vectors
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.integer_ops import READY
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names, Nest
from nnbuild.kernels.lanes.layer_sums import float_lanes, layer_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.padded_tiles import padded
from nnbuild.kernels.loops.tiling import best_vectors
from nnbuild.kernels.loops.vector_tiles import tiled
from nnbuild.kernels.loops.window_loops import repeated
from nnbuild.model.graph import Constant, Op, Quant, Tensor
from nnbuild.numeric.requant import General
from nnbuild.numeric.requant_line import Lines, lines
from nnbuild.numeric.rounding import limits
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

MOVE = Row("{0} = {1};", 1.5)


def sizes(site: Site[MatMul]) -> tuple[int, int, int, int]:
    """(matrices, rows of the left matrix, depth, columns of the right one)."""
    *before, rows, depth = site.shape()
    return prod(before), rows, depth, site.output_shape()[-1]


@contextmanager
def each_matrix(w: Writer, site: Site[MatMul], names: Names) -> Iterator[tuple[str, str, str]]:
    """The loop over the products: yields the places of the left matrix, the right one and the result."""
    count, rows, depth, columns = sizes(site)
    ends = zip((*names.inputs, *names.outputs), (rows * depth, depth * columns, rows * columns), strict=True)
    left, right, out = (f"{name} + matrix * {size}" for name, size in ends)
    with w.loop("matrix", "end", start="begin", trips=count):
        yield left, right, out


def literals(scaling: General) -> list[str]:
    """The numbers of all sums' one scale, as a function takes them."""
    firsts = [values[0] for values in scaling.constants.values()]
    return [f"INT64_C({value})" if value.itemsize == 8 else str(value) for value in firsts]


def stand_in(site: Site[MatMul]) -> Site[Dense]:
    """A dense layer of the sizes of one matrix product."""
    (*_, rows, depth), columns = site.shape(), site.output_shape()[-1]
    x, out = site.inputs[0], site.outputs[0]
    kind = "float32" if x.dtype == "float32" else "int8"
    quant = None if x.dtype == "float32" else Quant((quant_of(site.inputs[1]).scale,))
    return Site(
        Op(site.op.name, Dense(), (x.name,), (out.name,), {"kernel": "kernel"}, site.op.layer),
        (Tensor(x.name, (rows, depth), x.dtype, x.quant),),
        (Tensor(out.name, (rows, columns), out.dtype, out.quant),),
        {"kernel": Constant("kernel", np.zeros((depth, columns), kind), quant)},
    )


@dataclass(frozen=True, eq=False)
class VectorMatmul:
    site: Site[MatMul]
    inner: Nest
    lanes: VectorLanes | IntegerVectors

    def demand(self) -> Demand:
        plain = self.inner.demand()
        packed = dict(plain.packed)
        laid_out = len(packed.pop("kernel")) * np.dtype(plain.scratch_type).itemsize
        return replace(plain, extent=sizes(self.site)[0], scratch=self._before(plain) + laid_out, packed=packed)

    def _before(self, plain: Demand) -> int:
        """Bytes of scratch that the loops use themselves."""
        return -(-plain.scratch // 64) * 64

    def emit(self, w: Writer, names: Names) -> None:
        plain = self.inner.demand()
        first = self._before(plain) // np.dtype(plain.scratch_type).itemsize
        w(f"{C_TYPES[plain.scratch_type]} *const columns = {names.scratch} + {first};")
        with each_matrix(w, self.site, names) as (left, right, out):
            kind = C_TYPES[self.site.inputs[0].dtype]
            w(f"const {kind} *const rows_in = {left};")
            w(f"const {kind} *const columns_in = {right};")
            w(f"{kind} *const rows_out = {out};")
            self._lay_out(w)
            inner = Names(("rows_in",), ("rows_out",), {**names.packed, "kernel": "columns"}, names.scratch)
            with w.loop("begin", 1), w.loop("end", plain.extent + 1, start=plain.extent):
                self.inner.emit(w, inner)

    def _lay_out(self, w: Writer) -> None:
        """Packs the right matrix as blocks of [depth / lane's depth][lane][lane's depth]."""
        _, _, depth, columns = sizes(self.site)
        channel = place = 0
        for block, times in dot.divide(columns, self.lanes).classes():
            width = block.vectors * self.lanes.lanes
            steps = -(-depth // self.lanes.depth)
            size = steps * width * self.lanes.depth
            with repeated(w, "block", times, block=True):
                by = "block" if times > 1 else "0"
                at = f"{channel} + ({by}) * {block.channels}"
                w(f"const {self._kind} *source = columns_in + {f'({at}) * {depth}' if self.turned else at};")
                w(f"{self.lanes.weight_type} *laid = columns + {place} + ({by}) * {size};")
                (self._floats if isinstance(self.lanes, VectorLanes) else self._words)(w, block, width)
            channel, place = channel + times * block.channels, place + times * size

    @property
    def _kind(self) -> str:
        return C_TYPES[self.site.inputs[1].dtype]

    @property
    def turned(self) -> bool:
        return self.site.attributes.turned

    def _floats(self, w: Writer, block: Block, width: int) -> None:
        assert isinstance(self.lanes, VectorLanes)
        _, _, depth, columns = sizes(self.site)
        v = self.lanes.floats
        if self.turned:
            with self._each_channel(w, block) as (place, channel), w.loop("i", depth):
                w(w.use(MOVE, f"laid[i * {width} + {channel}]", f"source[{place} + i]"))
            if block.channels < width:
                with w.loop("i", depth), w.loop("j", width, start=block.channels):
                    w(w.use(MOVE, f"laid[i * {width} + j]", "0.0f"))
            return
        with w.loop("i", depth):
            for at, count in in_vectors(w, v.lanes, block.channels, "j", unrolled=8):
                value = v.load(w, f"source + i * {columns} + {at}", count)
                v.store(w, f"laid + i * {width} + {at}", value, v.lanes)

    def _words(self, w: Writer, block: Block, width: int) -> None:
        _, _, depth, columns = sizes(self.site)
        less = -quant_of(self.site.inputs[1]).zero_point
        with self._each_channel(w, block) as (place, channel):
            together, step = self.lanes.depth, 1 if self.turned else columns
            whole, rest = divmod(depth, together)
            with w.loop("i", whole):
                for one in range(together):
                    source = f"{place} + i * {together * step} + {one * step}"
                    to = f"i * {together * width} + {self._word(channel, one)}"
                    w(w.use(MOVE, f"laid[{to}]", f"(int16_t)(source[{source}] + {less})"))
            if rest:
                first, second = (f"{whole * 2 * width} + {self._word(channel, one)}" for one in range(2))
                source = f"{place} + {2 * whole * step}"
                w(w.use(MOVE, f"laid[{first}]", f"(int16_t)(source[{source}] + {less})"))
                w(w.use(MOVE, f"laid[{second}]", "0"))

    def _word(self, channel: str, one: int) -> str:
        """The place of a channel's first or second number in a step's weights."""
        assert isinstance(self.lanes, IntegerVectors)
        if not self.lanes.of_words:
            return f"({channel}) * {self.lanes.depth} + {one}"
        lanes = self.lanes.lanes
        return f"({channel} / {lanes}) * {2 * lanes} + {channel} % {lanes} + {one * lanes}"

    @contextmanager
    def _each_channel(self, w: Writer, block: Block) -> Iterator[tuple[str, str]]:
        """(index of its first number, its name)."""
        with w.loop("channel", block.channels):
            yield f"channel * {sizes(self.site)[2]}" if self.turned else "channel", "channel"


def floats(v: Vectors, site: Site[MatMul]) -> VectorMatmul:
    dense, registers = stand_in(site), v.tile_registers
    lanes = float_lanes(v, dense)
    needed = -(-site.output_shape()[-1] // lanes.lanes)
    held = lanes.holding(best_vectors(site.shape()[-2], [needed], site.shape()[-1], registers))
    nest = tiled(dense, held, registers)
    return VectorMatmul(site, nest, nest.lanes)


def _lines(site: Site[MatMul]) -> Lines | None:
    return lines(layer_of(site))


def refused_bytes(site: Site[MatMul]) -> str | None:
    return None if _lines(site) else "its scaled sums may need more than 64 bits"


def lanes_of_bytes(v: Vectors, site: Site[MatMul], columns: int) -> IntegerVectors:
    """Lanes with constants for so many columns; the numbers of both matrices are prepared as words."""
    found, out = _lines(site), site.outputs[0]
    assert found is not None
    lines = Lines(found.numbers * columns, found.shifted)
    weights, zero = np.zeros((1, columns), np.int8), quant_of(site.inputs[0]).zero_point
    spare = int(v.sparing)  # a register for the clamped outputs beside the constants of scaling
    words = replace(v, depth=min(v.depth, 2), lift=0, reach=0, registers=v.registers - spare)
    plain = integer_vectors(words, out.dtype, zero, limits(out.dtype), weights, -lines.of("centre"), lines)
    return replace(plain, input_type=READY[2], weight_type=READY[2])


def of_bytes(v: Vectors, site: Site[MatMul]) -> VectorMatmul:
    nest = padded(stand_in(site), lanes_of_bytes(v, site, site.output_shape()[-1]))
    return VectorMatmul(site, nest, nest.lanes)

"""One row of a dense layer whose weights are mostly zero, with the pairs of 16-bit products of Cortex-M4 and up.

Blocks of `rows` outputs by `depth` inputs follow each other with the step to each; an iteration takes four, or one
where groups have few. Blocks two inputs deep read a pair of inputs that were widened once; others read two bytes of the
original inputs. Two outputs share a word of weights, as in the dense kernels (`Packed`); for a single output a word
holds the four weights of two pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.encodings.blocks import Blocks
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.contract import Demand, Kernel, Names, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp.input_layouts import natural
from nnbuild.kernels.dsp.patches import NEEDS
from nnbuild.kernels.dsp.scaling import Scaling, chosen, plain_form, scaled
from nnbuild.kernels.dsp.tile import scaling_of as packed_scaling
from nnbuild.kernels.dsp.weight_layouts import Packed, add_pair, padded_taps, words
from nnbuild.kernels.lanes.layer_sums import layer_of, sums_of
from nnbuild.kernels.loops.window import WindowNest
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, int32s
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

LAYOUT = Packed()
BYTE = Row("const int32_t {0} = *{1};", 1, 1)
TURN_CYCLES, GROUP_CYCLES, CALL_CYCLES = 3, 14, 20
"""Cycles of an iteration; of a group, with its stack accesses; of a call."""


@dataclass(frozen=True)
class Shape:
    """rows: outputs of a block; depth: its inputs; turn: blocks per iteration."""

    rows: int
    depth: int
    turn: int

    @property
    def name(self) -> str:
        return f"sparse_{self.rows}x{self.depth}" + ("_short" if self.turn * self.depth == 2 else "")

    @property
    def unit(self) -> int:
        """The unit of steps between inputs: bytes where an iteration reads its steps from one word, else inputs."""
        return self.depth * (2 if self.depth == 2 and self.turn == 4 else 1)

    @property
    def pairs(self) -> int:
        """Pairs of inputs per iteration."""
        return self.turn * self.depth // 2

    @property
    def words(self) -> int:
        """Words of weights per iteration."""
        return self.turn * self.depth * self.rows // 4


SHAPES = (
    Shape(4, 2, 4),
    Shape(4, 2, 1),
    Shape(4, 1, 4),
    Shape(4, 1, 2),
    Shape(2, 2, 4),
    Shape(2, 1, 4),
    Shape(1, 1, 4),
)


@lru_cache(maxsize=256)
def scaling_of(rows: int, site: Site[Dense]) -> Scaling | str:
    if rows > 1:
        return packed_scaling(LAYOUT, site)
    layer, count = layer_of(site), len(sums_of(site).start)
    return chosen(layer, [plain_form(layer)], np.zeros(count, np.int64), np.full(count, INT32[1]), 8)


def pack(shape: Shape, found: Blocks) -> Array:
    """The weights of every pair of inputs: words of two outputs each, or of two pairs of one output."""
    values = found.values.astype(np.int64)
    values = values.reshape(-1, 2, shape.rows) if shape.depth == 1 else values.transpose(0, 2, 1)
    if shape.rows > 1:
        return int32s(words(256 * values[:, :, 1::2] + values[:, :, 0::2])).reshape(-1)
    fours = values.reshape(-1, 4)[:, [0, 2, 1, 3]] & 0xFF
    return int32s((fours << np.arange(0, 32, 8)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class SparsePairs(WindowNest[Shape]):
    @cached_property
    def scaling(self) -> Scaling:
        return accepted(scaling_of(self.lanes.rows, self.site))

    @property
    def blocks(self) -> Blocks:
        shape = self.lanes
        return sparse_weights.blocks_of(self.site, shape.rows, shape.depth, shape.unit, shape.turn)

    @property
    def places(self) -> int:
        """Inputs that are widened."""
        return padded_taps(self.window.depth) if self.lanes.depth == 2 else 0

    def demand(self) -> Demand:
        found = self.blocks
        packed = {
            "starts": found.starts,
            "steps": found.steps,
            "kernel": pack(self.lanes, found),
            "scaling": self._group_constants(),
        }
        return Demand(len(found.starts) - 1, 2 * self.places, "int16", packed)

    def _group_constants(self) -> Array:
        """For every group the starts of its sums, then its scaling constants."""
        rows, scaling = self.lanes.rows, self.scaling
        start = sums_of(self.site).start - scaling.centre
        columns = np.stack([start, *scaling.columns.values()], axis=1)
        each = np.pad(columns, ((0, -len(start) % rows), (0, 0))).reshape(-1, rows, columns.shape[1])
        if rows > 1:
            each[:, :, 0] = LAYOUT.start(each[:, :, 0].reshape(-1), scaling).reshape(-1, rows)
        return int32s(each.transpose(0, 2, 1)).reshape(-1)

    def emit(self, w: Writer, names: Names) -> None:
        shape, found, source = self.lanes, self.blocks, names.inputs[0]
        if self.places:
            natural(w, names.scratch, source, self.window.depth)
            source = names.scratch
        whole, rest = divmod(self.window.filters, shape.rows)
        per_group = len(found.steps) / (whole + (rest > 0))
        self._call(w, names, source, shape.rows, f"end < {whole} ? end : {whole}" if rest else "end", per_group, whole)
        if rest:
            with w.block(f"if (end > {whole})"):
                self._call(w, names, source, rest, "end", per_group, 1)

    def _call(self, w: Writer, names: Names, source: str, real: int, end: str, per_group: float, times: int) -> None:
        """The call for full groups, or for the last group, in which only `real` outputs exist."""
        if not times:
            return
        shape, first = self.lanes, "begin"
        if real < shape.rows:
            whole = self.window.filters // shape.rows
            first = f"begin > {whole} ? begin : {whole}" if whole else "begin"
        routine, bill = _routine(w, shape, self.scaling, C_TYPES[self.blocks.starts.dtype.name], real, per_group)
        constants = shape.rows * (1 + len(self.scaling.columns))
        w.bill(CALL_CYCLES)
        w.add(bill.times(times))
        w.reads(sum(part.nbytes for part in self.blocks.parts.values()) * times / (len(self.blocks.starts) - 1))
        packed = names.packed
        with w.block(""):
            w(f"const int32_t first = {first};")
            w(f"const int32_t last = {end};")
            w(f"const {C_TYPES[self.blocks.starts.dtype.name]} *const starts = {packed['starts']} + first;")
            k = f"{packed['kernel']} + (int32_t)starts[0] / {shape.turn} * {shape.words}"
            to = f"{names.outputs[0]} + first * {shape.rows}"
            others = f"{packed['steps']} + starts[0]", k, "starts", f"{packed['scaling']} + first * {constants}", to
            w(f"{w.call(routine, source, *others, 'last - first')};")


def _routine(
    outside: Writer, shape: Shape, scaling: Scaling, kind: str, real: int, blocks: float
) -> tuple[Instruction, OpCounts]:
    """The routine for a number of groups, and the cost of one."""
    w = Writer("{prefix}")
    with w.loop("group", "groups", trips=1):
        _group(w, shape, scaling, real, blocks)
    name = "_".join([shape.name, str(real), kind.removesuffix("_t"), *scaling.marks()])
    inputs = "int16_t" if shape.depth == 2 else "int8_t"
    head = (
        f"void {{name}}(const {inputs} *from, const uint8_t *steps, const int32_t *k, const {kind} *starts, "
        "const int32_t *scaling, int8_t *to, int32_t groups)"
    )
    outside.helpers |= w.helpers
    return w.routine(name, head), w.counts


def _group(w: Writer, shape: Shape, scaling: Scaling, real: int, blocks: float) -> None:
    for row in range(shape.rows):
        w(f"int32_t sum0{row} = scaling[{row}];")
    w(f"const {'int16_t' if shape.depth == 2 else 'int8_t'} *x = from;")
    w.bill(shape.rows + 1, shape.rows)
    head = f"for (int32_t left = (int32_t)(starts[1] - starts[0]); left > 0; left -= {shape.turn})"
    with w.block(head), w.trips(blocks / shape.turn):
        _turn(w, shape)
        w.bill(TURN_CYCLES)
    if shape.rows > 1:
        LAYOUT.finish(w, shape.rows, 1, scaling)
    elif scaling.doubled:
        w("sum00 *= 2;")
    for row in range(real):
        names = {role: f"{role}{row}" for role in scaling.columns}
        for index, name in enumerate(names.values()):
            w(f"const int32_t {name} = scaling[{shape.rows * (1 + index) + row}];")
            w.bill(1, 1)
        scaled(w, scaling, f"sum0{row}", names)
        w(w.use(c99.STORE_BYTE, f"to[{row}]", f"sum0{row}"))
    w(f"scaling += {shape.rows * (1 + len(scaling.columns))};")
    w(f"to += {shape.rows};")
    w("starts += 1;")
    w.bill(GROUP_CYCLES, 4)


def _turn(w: Writer, shape: Shape) -> None:
    if shape.turn == 4:
        w(w.use(c99.LET, "apart", DSP.call(w, "load_bytes", "(const int8_t *)steps", of=(4,))))
    w(f"steps += {shape.turn};")
    inputs = list(_inputs(w, shape))
    if shape.rows == 1:
        w(w.use(c99.LET, "four", "k[0]"))
        w.bill(1, 1)
        for half, pair in zip(("even", "odd"), inputs, strict=True):
            weights = DSP.call(w, f"p_{half}_bytes", "four")
            w(f"sum00 = {DSP.call(w, 'p_dot', pair, weights, 'sum00')};")
    w(f"k += {shape.words};")
    w.bill(1)


def _inputs(w: Writer, shape: Shape) -> Iterator[str]:
    """The input pairs of an iteration; those of several outputs are multiplied at once."""
    size = 2 if shape.depth == 2 else 1
    for pair in range(shape.pairs):
        for place in range(2 // shape.depth):
            at = pair * (2 // shape.depth) + place
            if shape.turn == 4:
                w(f"x = {DSP.call(w, f'p_step{8 * size}', 'x', 'apart', of=(at,))};")
            else:
                w(f"x += steps[{at - shape.turn}];")
                w.bill(2, 1)
            if shape.depth == 1:
                w(w.use(BYTE, f"x{at}", "x"))
        if shape.depth == 2:
            w(w.use(c99.LET, f"x{pair}", DSP.call(w, "p_load", "x")))
            both = f"x{pair}"
        else:
            both = f"both{pair}"
            w(w.use(c99.LET, both, DSP.call(w, "p_low_halves", f"x{2 * pair}", f"x{2 * pair + 1}")))
        if shape.rows > 1:
            _multiply(w, shape, pair, both)
        yield both


def _multiply(w: Writer, shape: Shape, pair: int, x: str) -> None:
    names = [f"w{pair}_{index}" for index in range(shape.rows // 2)]
    if len(names) == 2:
        w(f"int32_t {names[1]};")
        w(w.use(c99.LET, names[0], DSP.call(w, "load_two", f"k + {2 * pair}", f"&{names[1]}")))
    else:
        w(w.use(c99.LET, names[0], f"k[{pair}]"))
        w.bill(1, 1)
    add_pair(w, LAYOUT, pair, [x], shape.rows, names)


def _refused(shape: Shape, site: Site[Dense]) -> str | None:
    reason = only_int8(site) or sparse_weights.refused(site, shape.rows, shape.depth)
    return reason or reason_of(scaling_of(shape.rows, site))


def _kernel(shape: Shape) -> Kernel[Dense]:
    return variant(
        shape.name, NEEDS, partial(_refused, shape), lambda site: SparsePairs(site, shape), encoding="blocks"
    )


VARIANTS = tuple(map(_kernel, SHAPES))

"""Weights of 4 bits, or of few distinct values, for the pairs of 16-bit products of Cortex-M4 and up.

A routine computes the sums of all outputs into scratch, from inputs widened to 16 bits. Four bits: a word has the
weights of eight inputs, each plus 8, so that masking leaves pairs; eight times the sum of all inputs is subtracted. Few
values: a byte selects the two weights of a pair of inputs from a table of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Writer
from nnbuild.encodings.codes import packed
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed.sparse_dsp_rows import scaling_of
from nnbuild.kernels.contract import Demand, Kernel, Names, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp.input_layouts import natural
from nnbuild.kernels.dsp.patches import NEEDS, is_row
from nnbuild.kernels.dsp.scaling import Scaling, scaled
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import WindowNest
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import int32s
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

EIGHT = 8
"""Inputs per iteration."""
CODES = 16
ROWS = (4, 2, 1)
"""Sums of a block, which share loads of inputs."""
MOST_ROWS = 8
"""The same where a table gives the weights: its address takes one register for all."""
CALL_CYCLES, LOOP_CYCLES = 25, 3


def padded_to_eights(size: int) -> int:
    return -(-size // EIGHT)


@dataclass(frozen=True)
class Code:
    """How weights are stored: in four bits, or as indices into a table of pairs."""

    table: bool

    @property
    def name(self) -> str:
        return "codebook" if self.table else "int4"

    def block_of(self, count: int) -> int:
        """Sums of a block, for `count` outputs."""
        return MOST_ROWS if self.table and count % MOST_ROWS == 0 else next(rows for rows in ROWS if count % rows == 0)

    def refused(self, weights: Array) -> str | None:
        if weights.dtype.kind != "i":
            return "its weights are not integers"
        if self.table:
            few = len(_values(weights)) <= CODES
            return None if few else f"its weights have more than {CODES} values"
        fits = weights.size and weights.min() >= -EIGHT and weights.max() < EIGHT
        return None if fits else "its weights have more than 4 bits"

    def packed(self, name: str, matrix: Array, rows: int) -> dict[str, Array]:
        """A matrix [inputs, outputs] of full blocks as [block][eight inputs][output]."""
        filled = np.pad(matrix.astype(np.int64), ((0, -len(matrix) % EIGHT), (0, 0)))
        each = filled.reshape(-1, EIGHT, filled.shape[1] // rows, rows).transpose(2, 0, 3, 1)
        if not self.table:
            return {name: packed(each[..., [0, 2, 4, 6, 1, 3, 5, 7]] + EIGHT, 4).view(np.int32)}
        values = _values(matrix)
        at = np.searchsorted(values, each).reshape(-1, 2)
        first, second = np.repeat(values, len(values)), np.tile(values, len(values))
        return {
            name: (at[:, 0] * len(values) + at[:, 1]).astype(np.uint8),
            f"{name}_table": int32s((first & 0xFFFF) | (second & 0xFFFF) << 16),
        }

    def call(
        self, w: Writer, names: Names, role: str, source: str, sums: str, size: int, count: int, some: str = ""
    ) -> None:
        """Prints the call for `count` sums over `size` inputs, or for their blocks from `begin` to `end`."""
        rows, turns = self.block_of(count), padded_to_eights(size)
        routine, bill = self._routine(rows, turns)
        w.bill(CALL_CYCLES)
        w.add(bill.times(count / rows))
        w.reads(count * turns * 4)
        words = rows * turns * (4 if self.table else 1)
        k, start = names.packed[role], names.packed[f"{role}_start"]
        if some:
            k, start = f"{k} + begin * {words}", f"{start} + begin * {rows}"
        table = [names.packed[f"{role}_table"]] if self.table else []
        w(f"{w.call(routine, source, k, *table, start, sums, str(turns), some or str(count // rows))};")

    def _routine(self, rows: int, turns: int) -> tuple[Instruction, OpCounts]:
        """The routine, and the cost of a block."""
        w, at_once = Writer("{prefix}"), next(size for size in (4, 2, 1) if turns % size == 0)
        if not self.table:
            self._total(w)
        before = w.counts
        with w.loop("block", "blocks", trips=1):
            for row in range(rows):
                w(w.use(c99.LOAD_AS, "int32_t", f"sum{row}", f"start[{row}]{'' if self.table else ' - less'}"))
            w("const int16_t *x = from;")
            w.bill(1)
            with w.block(f"for (int32_t left = eights; left > 0; left -= {at_once})"), w.trips(turns / at_once):
                for _ in w.each(range(at_once)):
                    (self._decode_by_table if self.table else self._masked)(w, rows)
                    w(f"x += {EIGHT};")
                w.bill(LOOP_CYCLES)
            for row in range(rows):
                w(w.use(c99.STORE, f"sums[{row}]", f"sum{row}"))
            w(f"start += {rows};")
            w(f"sums += {rows};")
            w.bill(2)
        kind, table = ("uint8_t", "const int32_t *table, ") if self.table else ("int32_t", "")
        head = (
            f"void {{name}}(const int16_t *from, const {kind} *k, {table}const int32_t *start, int32_t *sums, "
            "int32_t eights, int32_t blocks)"
        )
        name = f"{self.name}_sums_{rows}_by_{EIGHT * at_once}"
        made = w.routine(name, head)
        return made, replace(w.counts, instructions=w.counts.instructions - before.instructions)

    def _total(self, w: Writer) -> None:
        """Declares eight times the sum of all inputs."""
        w("int32_t less = 0;")
        with w.block("for (int32_t i = 0; i < 8 * eights; i += 2)"):
            total = DSP.call(w, "p_dot", DSP.call(w, "p_load", "from + i"), str(EIGHT * 0x10001), "less")
            w(f"less = {total};")

    def _inputs(self, w: Writer, at: int) -> tuple[str, str]:
        w(f"int32_t x{at + 1};")
        place = f"x + {2 * at}"
        w(w.use(c99.LET, f"x{at}", DSP.call(w, "p_load_two", place, f"&x{at + 1}")))
        return f"x{at}", f"x{at + 1}"

    def _masked(self, w: Writer, rows: int) -> None:
        pairs = [*self._inputs(w, 0), *self._inputs(w, 2)]
        for row in range(rows):
            w(w.use(c99.READ, f"k{row}", f"k[{row}]"))
            for index, pair in enumerate(pairs):
                weights = (
                    DSP.call(w, "masked_right", str(0x000F000F), f"k{row}", of=(4 * index,))
                    if index
                    else (f"(k{row} & {0x000F000F})")
                )
                w.bill(int(index == 0))
                w(f"sum{row} = {DSP.call(w, 'p_dot', pair, weights, f'sum{row}')};")
        w(f"k += {rows};")
        w.bill(1)

    def _decode_by_table(self, w: Writer, rows: int) -> None:
        for half in w.each(range(2)):
            pairs = self._inputs(w, 2 * half)
            for row in range(rows):
                for index, pair in enumerate(pairs):
                    w.bill(2, 2)
                    weights = f"table[k[{4 * row + 2 * half + index}]]"
                    w(f"sum{row} = {DSP.call(w, 'p_dot', pair, weights, f'sum{row}')};")
        w(f"k += {4 * rows};")
        w.bill(1)


def _values(weights: Array) -> Array:
    """The distinct weights, and the zero used for padding."""
    return np.unique(np.append(np.flatnonzero(np.bincount(weights.reshape(-1).astype(np.int64) + 32768)) - 32768, 0))


@dataclass(frozen=True, eq=False)
class NarrowRow(WindowNest[Code]):
    """The single row of inputs of a dense layer."""

    @property
    def scaling(self) -> Scaling:
        return accepted(scaling_of(1, self.site))

    @property
    def outputs(self) -> int:
        """Outputs, padded to full blocks."""
        return -(-self.window.filters // ROWS[0]) * ROWS[0]

    @property
    def rows(self) -> int:
        return self.lanes.block_of(self.outputs)

    def demand(self) -> Demand:
        matrix, missing = self.site.constant("kernel"), self.outputs - self.window.filters
        start = sums_of(self.site).start - self.scaling.centre
        columns = np.stack(list(self.scaling.columns.values()), axis=1)
        packed = {
            **self.lanes.packed("kernel", np.pad(matrix, ((0, 0), (0, missing))), self.rows),
            "kernel_start": np.pad(start, (0, missing)).astype(np.int32),
            "scaling": int32s(columns),
        }
        inputs = padded_to_eights(self.window.depth) * EIGHT
        return Demand(
            self.outputs // self.rows,
            2 * inputs + 4 * self.outputs,
            "int16",
            {role: part.reshape(-1) for role, part in packed.items()},
        )

    def emit(self, w: Writer, names: Names) -> None:
        depth, scaling = self.window.depth, self.scaling
        inputs = padded_to_eights(depth) * EIGHT
        natural(w, names.scratch, names.inputs[0], depth)
        for at in range(-(-depth // 4) * 4, inputs):
            w(w.use(c99.STORE, f"{names.scratch}[{at}]", "0"))
        w(f"int32_t *sums = (int32_t *)({names.scratch} + {inputs});")
        self.lanes.call(w, names, "kernel", names.scratch, "sums", depth, self.outputs, "end - begin")
        filters, width, columns = self.window.filters, self.rows, len(scaling.columns)
        w(f"const int32_t *scaling = {names.packed['scaling']} + begin * {width * columns};")
        w(f"const int32_t first = begin * {width};")
        last = f"end * {width}"
        w(f"const int32_t last = {f'{last} < {filters} ? {last} : {filters}' if filters % width else last};")
        w.bill(6)
        with w.loop("output", "last", start="first", trips=filters):
            w(w.use(c99.LOAD_AS, "int32_t", "value", "sums[output - first]"))
            if scaling.doubled:
                w("value *= 2;")
            for index, name in enumerate(scaling.columns):
                w(w.use(c99.READ, name, f"scaling[{index}]"))
            scaled(w, scaling, "value", {name: name for name in scaling.columns})
            w(w.use(c99.STORE, f"{names.outputs[0]}[output]", "(int8_t)value"))
            w(f"scaling += {len(scaling.columns)};")
            w.bill(1)


def _refused(code: Code, site: Site[Dense]) -> str | None:
    reason = only_int8(site)
    if reason or not is_row(site):
        return reason or "it computes one row only"
    kernel = site.constants["kernel"]
    if quant_of(kernel).zero_point != 0:
        return "its weights have a zero point"
    return code.refused(kernel.data) or reason_of(scaling_of(1, site))


def _kernel(code: Code) -> Kernel[Dense]:
    return variant(code.name, NEEDS, partial(_refused, code), lambda site: NarrowRow(site, code), encoding=code.name)


VARIANTS: Sequence[Kernel[Dense]] = tuple(_kernel(Code(table)) for table in (False, True))

"""Matrix products of a single row of bytes on Cortex-M4 and M7: the row is laid out as words of two numbers; those of
the right matrix are read once, so they are multiplied where they are.

Four columns at a time share the row. Where columns are contiguous, a word of one gives two pairs of its numbers;
elsewhere a word has a number of each column. A work item is a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import added
from nnbuild.isa.vectors import in_vectors
from nnbuild.kernels.contract import Demand, Names, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp.matmul import scaling_of
from nnbuild.kernels.dsp.patches import NEEDS
from nnbuild.kernels.dsp.scaling import Scaling, scaled
from nnbuild.kernels.loops.vector_matmul import MOVE, each_matrix, sizes
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.integer_steps import computed, zero
from nnbuild.numeric.rounding import wrap
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

TOGETHER = 4
"""Columns at a time, and numbers of the row."""


def _accepts(site: Site[MatMul]) -> str | None:
    several = None if site.shape()[-2] == 1 else "it computes a single row"
    return only_int8(site) or several or reason_of(scaling_of(site))


@dataclass(frozen=True, eq=False)
class SingleRow:
    site: Site[MatMul]

    @cached_property
    def scaling(self) -> Scaling:
        return accepted(scaling_of(self.site))

    @property
    def turned(self) -> bool:
        return self.site.attributes.turned

    def demand(self) -> Demand:
        count, _, depth, _ = sizes(self.site)
        return Demand(count, scratch=2 * (depth + -depth % TOGETHER), scratch_type="int16")

    def emit(self, w: Writer, names: Names) -> None:
        _, _, depth, columns = sizes(self.site)
        w(f"int16_t *const row = {names.scratch};")
        with each_matrix(w, self.site, names) as (left, right, out):
            w(f"const int8_t *const from = {left};")
            w(f"const int8_t *const with = {right};")
            w(f"int8_t *const to = {out};")
            self._lay_out(w)
            for j, some in in_vectors(w, TOGETHER, columns, "j"):
                for column in range(some):
                    w(w.use(c99.LOAD_AS, "int32_t", f"sum{column}", "start"))
                w(f"const int8_t *k = {total('with', product(j, depth if self.turned else 1))};")
                w("const int16_t *pairs = row;")
                for _, numbers in in_vectors(w, TOGETHER, depth, "i"):
                    (self._of_columns if self.turned else self._of_rows)(w, numbers, some)
                self._store(w, j, some)

    def _lay_out(self, w: Writer) -> None:
        """The row less its zero point, in the order of pairs, and where all sums start."""
        order = (0, 2, 1, 3) if self.turned else range(TOGETHER)
        left, right = (zero(tensor) for tensor in self.site.inputs)
        factor, centre = int(self.scaling.factor[0]), int(self.scaling.centre[0])
        w("int32_t start = 0;")
        for i, numbers in in_vectors(w, TOGETHER, sizes(self.site)[2], "i"):
            for at, place in enumerate(order):
                value = "0"
                if place < numbers:
                    value = added(f"from[{total(i, str(place))}]", -left)
                    if right:
                        w(w.use(c99.STEP, "start", value))
                w(w.use(MOVE, f"row[{total(i, str(at))}]", f"(int16_t)({product(f'({value})', factor)})"))
        w(f"start = {added(product('start', -right * factor) if right else '0', -centre * factor)};")

    def _of_columns(self, w: Writer, numbers: int, some: int) -> None:
        depth, halves = sizes(self.site)[2], ("even", "odd")
        for at, half in enumerate(halves):
            computed(w, half, DSP.call(w, "p_load", total("pairs", str(2 * at))))
        for column in range(some):
            word, name = f"word{column}", f"sum{column}"
            computed(w, word, DSP.call(w, "load_bytes", total("k", str(column * depth)), of=(numbers,)))
            for half in halves:
                w(f"{name} = {DSP.call(w, 'p_dot', half, DSP.call(w, f'p_{half}_bytes', word), name)};")
        w(f"k += {numbers};")
        w(f"pairs += {TOGETHER};")
        w.bill(1)

    def _of_rows(self, w: Writer, numbers: int, some: int) -> None:
        columns, halves = sizes(self.site)[3], ("low", "high")
        for at in range(0, numbers, 2):
            computed(w, f"x{at}", DSP.call(w, "p_load", total("pairs", str(at))))
        for line in range(numbers):
            word, pair = f"word{line}", (f"even{line}", f"odd{line}")
            computed(w, word, DSP.call(w, "load_bytes", total("k", str(line * columns)), of=(some,)))
            for half in pair[:some]:
                computed(w, half, DSP.call(w, f"p_{half[:-1]}_bytes", word))
            for column in range(some):
                row, name = f"p_{halves[column // 2]}_{halves[line % 2]}", f"sum{column}"
                w(f"{name} = {DSP.call(w, row, pair[column % 2], f'x{line - line % 2}', name)};")
        w(f"k += {numbers * columns};")
        w(f"pairs += {TOGETHER};")
        w.bill(1)

    def _store(self, w: Writer, j: str, some: int) -> None:
        values = {name: str(int(wrap(column, 32)[0])) for name, column in self.scaling.columns.items()}
        for column in range(some):
            scaled(w, self.scaling, f"sum{column}", values)
            w(w.use(c99.STORE_BYTE, f"to[{total(j, str(column))}]", f"sum{column}"))


VARIANTS = (variant("single_row", NEEDS, _accepts, SingleRow),)

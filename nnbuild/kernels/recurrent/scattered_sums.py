"""The weighted sums of recurrent layers with unstructured sparsity, input by input, on Cortex-M4 and up.

All sums wait in memory. The weights of every nonzero input are consecutive, each with the distance to the next sum: a
sum has few inputs, but an input many sums, so loops start less often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed.sparse_weights import DENSE, filled_share
from nnbuild.kernels.contract import Names
from nnbuild.kernels.recurrent.integer_cells import Part, both_products
from nnbuild.kernels.recurrent.sparse_sums import CALL_CYCLES, LOOP_CYCLES, Form, WaitingSums
from nnbuild.model.graph import Array
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site

TURN = 4
"""Weights per iteration."""
ADD = Row("sums[at] = {0};", 1)
COLUMN_CYCLES = 10
BY_INPUT = Form(False, 1, TURN)


@dataclass(frozen=True)
class ScatteredSums(WaitingSums):
    form: Form = BY_INPUT

    def accepts(self, site: Site[Recurrent]) -> str | None:
        if reason := super().accepts(site):
            return reason
        for products in both_products(site):
            if filled_share(products.weights, 1, 1) > DENSE:
                return "too few of its weights are zero"
            if self.form.counts(products.weights.shape[1]) is None:
                return "it has too many units"
        return None

    def matrix(self, name: str, matrix: Array, count: int) -> dict[str, Array]:
        stored, found = self.form.stored(name, np.ascontiguousarray(matrix.T), count)
        return stored | {name: found.values}

    def compute(self, w: Writer, names: Names, part: Part, source: str, units: int) -> None:
        outputs = len(part.sums) * units
        routine, bill = self._routine(part.products, outputs)
        w.bill(CALL_CYCLES)
        w.bill(2 * outputs, outputs)
        w.add(bill.times(part.size))
        given = [names.packed[f"{part.name}{what}"] for what in ("_counts", "_steps", "", "_start")]
        w(f"{w.call(routine, source, *given, f'{part.name}_sums', str(part.size), str(outputs))};")

    def _routine(self, products: Products, outputs: int) -> tuple[Instruction, OpCounts]:
        """The routine, and the cost of an input."""
        w = Writer("{prefix}")
        self._begun(w)
        before = w.counts
        with w.block("for (; inputs > 0; --inputs)"):
            w("const int32_t x = *from;")
            w("int32_t left = *counts;")
            w("from += 1;")
            w("counts += 1;")
            w.bill(COLUMN_CYCLES, 2)
            with w.block("if (x == 0)"):
                w(f"steps += {TURN} * left;")
                w(f"k += {TURN} * left;")
            with w.block("else"):
                w("const int32_t low = x & 0xffff, high = (int32_t)((uint32_t)x << 16);")
                w("int32_t at = 0;")
                turns = filled_share(products.weights, 1, 1) * outputs / TURN + (TURN - 1) / (2 * TURN)
                with w.block("for (; left > 0; --left)"), w.trips(turns):
                    self._turn(w)
                    w.bill(LOOP_CYCLES)
        kind = f"{self.form.counts(outputs)}_t"
        head = (
            f"void {{name}}(const int16_t *from, const {kind} *counts, const uint8_t *steps, const int8_t *k, "
            "const int32_t *start, int32_t *sums, int32_t inputs, int32_t outputs)"
        )
        name = f"scattered_sums_{kind.removesuffix('_t')}"
        made = w.routine(name, head)
        return made, replace(w.counts, instructions=w.counts.instructions - before.instructions)

    @staticmethod
    def _begun(w: Writer) -> None:
        """Initializes all sums, two at a time."""
        w("int32_t *to = sums;")
        with w.block("for (int32_t left = outputs >> 1; left > 0; --left)"):
            w("int32_t second;")
            w(w.use(c99.LET, "first", DSP.call(w, "load_two", "start", "&second")))
            w(f"{DSP.call(w, 'store_two', 'to', 'first', 'second')};")
            w("start += 2;")
            w("to += 2;")
        with w.block("if ((outputs & 1) != 0)"):
            w("to[0] = start[0];")

    @staticmethod
    def _turn(w: Writer) -> None:
        w(w.use(c99.LET, "apart", DSP.call(w, "load_bytes", "(const int8_t *)steps", of=(4,))))
        w(w.use(c99.LET, "four", DSP.call(w, "load_bytes", "k", of=(4,))))
        w(f"steps += {TURN};")
        w(f"k += {TURN};")
        for index in range(TURN):
            half = f"{('even', 'odd')[index % 2]}"
            if index < 2:
                w(w.use(c99.LET, half, DSP.call(w, f"p_{half}_bytes", "four")))
            w(f"at = {DSP.call(w, 'p_add_byte', 'at', 'apart', of=(index,))};")
            w(w.use(c99.READ, f"sum{index}", "sums[at]"))
            w(w.use(ADD, DSP.call(w, "p_dot", "low" if index < 2 else "high", half, f"sum{index}")))

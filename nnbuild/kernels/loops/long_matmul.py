"""Matrix products of two 16-bit tensors by totals of 64 bits: on sets that sum across their lanes, and by pairs.

Rows of the left matrix and columns of the right one are copied where they do not fill blocks or are not contiguous. A
work item is a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops.vector_matmul import MOVE, sizes
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

WIDTH, TOGETHER, UNROLLED = 8, 2, 4
"""Words of a block, columns at a time, and blocks of a row up to which there is no loop over them."""


@dataclass(frozen=True, eq=False)
class LongMatmul:
    v: Vectors
    site: Site[MatMul]

    @property
    def stride(self) -> int:
        """The depth up to whole blocks."""
        depth = sizes(self.site)[2]
        return depth + -depth % WIDTH

    @property
    def copied(self) -> tuple[int, int]:
        """The copied rows of the left matrix, and columns of the right one."""
        _, rows, depth, columns = sizes(self.site)
        fills = self.stride == depth
        return 0 if fills else rows, 0 if fills and self.site.attributes.turned else columns

    def demand(self) -> Demand:
        return Demand(extent=sizes(self.site)[0], scratch=2 * self.stride * sum(self.copied), scratch_type="int16")

    def emit(self, w: Writer, names: Names) -> None:
        count, rows, depth, columns = sizes(self.site)
        copied_rows, copied_columns = self.copied
        with w.loop("matrix", "end", start="begin", trips=count):
            w(f"const int16_t *left = {total(names.inputs[0], product('matrix', rows * depth))};")
            w(f"const int16_t *right = {total(names.inputs[1], product('matrix', depth * columns))};")
            w(f"int16_t *to = {total(names.outputs[0], product('matrix', rows * columns))};")
            if copied_columns:
                turned = self.site.attributes.turned
                place = total(names.scratch, str(copied_rows * self.stride))
                self._copy(w, "right", place, columns, (depth, 1) if turned else (1, columns))
            if copied_rows:
                self._copy(w, "left", names.scratch, rows, (depth, 1))
            with w.loop("row", rows):
                w("const int16_t *k = right;")
                for _, some in in_vectors(w, TOGETHER, columns, "j"):
                    self._outputs(w, some)
                w(f"left += {self.stride};")

    def _copy(self, w: Writer, name: str, to: str, lines: int, steps: tuple[int, int]) -> None:
        """Copies lines whose starts and numbers are so far apart, with zeros behind them, and points to the copy."""
        depth = sizes(self.site)[2]
        w(f"int16_t *const {name}_copy = {to};")
        with w.loop("line", lines):
            place = product("line", self.stride)
            with w.loop("i", depth):
                source = total(product("line", steps[0]), product("i", steps[1]))
                w(w.use(MOVE, f"{name}_copy[{total(place, 'i')}]", f"{name}[{source}]"))
            if self.stride > depth:
                with w.loop("i", self.stride, start=depth):
                    w(w.use(MOVE, f"{name}_copy[{total(place, 'i')}]", "0"))
        w(f"{name} = {name}_copy;")

    def _outputs(self, w: Writer, some: int) -> None:
        scaling = layer_of(self.site).general(INT16)
        for column in range(some):
            declare(w, f"sum{column}", "0", "int64_t")
        for i, _ in in_vectors(w, WIDTH, self.stride, "i", unrolled=UNROLLED):
            with w.block(""):
                columns = [(f"sum{column}", total("k", i, str(column * self.stride))) for column in range(some)]
                (self._vector if "total_long" in self.v.spellings else self._pairs)(w, i, columns)
        for column in range(some):
            constants = [
                f"INT64_C({values[0]})" if values.itemsize == 8 else str(values[0])
                for values in scaling.constants.values()
            ]
            scaled = w.helper(scaling.function, f"sum{column}", *constants)
            w(w.use(STORE, f"to[{column}]", f"(int16_t){DSP.call(w, 'saturate', scaled, of=(16,))}"))
        w(f"k += {some * self.stride};")
        w(f"to += {some};")
        w.bill(2)

    def _vector(self, w: Writer, i: str, columns: list[tuple[str, str]]) -> None:
        v = self.v
        v.let(w, "words", "x", v.call(w, "inputs", total("left", i), of=(2,)))
        for name, place in columns:
            w(f"{name} = {v.call(w, 'total_long', name, 'x', v.call(w, 'inputs', place, of=(2,)))};")

    def _pairs(self, w: Writer, i: str, columns: list[tuple[str, str]]) -> None:
        v = self.v
        for at in range(0, WIDTH, 2):
            declare(w, f"x{at}", v.call(w, "p_load", total("left", i, str(at))))
            for name, place in columns:
                factors = v.call(w, "p_load", total(place, str(at)))
                w(f"{name} = {v.call(w, 'p_long_dot', f'x{at}', factors, name)};")

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
from nnbuild.kernels.loops.vector_matmul import MOVE, each_matrix, literals, sizes
from nnbuild.kernels.parts.integer_steps import computed, declare
from nnbuild.model.graph import Array
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
        _, rows, depth, columns = sizes(self.site)
        copied_rows, copied_columns = self.copied
        with each_matrix(w, self.site, names) as (left, right, out):
            w(f"const int16_t *left = {left};")
            w(f"const int16_t *right = {right};")
            w(f"int16_t *to = {out};")
            if copied_columns:
                turned = self.site.attributes.turned
                place = f"{names.scratch} + {copied_rows * self.stride}"
                self._copy(w, "right", place, columns, (depth, 1) if turned else (1, columns))
            if copied_rows:
                self._copy(w, "left", names.scratch, rows, (depth, 1))
            scaling, constants = self._scaling(w)
            with w.loop("row", rows):
                w("const int16_t *k = right;")
                for _, some in in_vectors(w, TOGETHER, columns, "j"):
                    self._outputs(w, some, scaling, constants)
                w(f"left += {self.stride};")

    def _copy(self, w: Writer, name: str, to: str, lines: int, steps: tuple[int, int]) -> None:
        """Copies lines whose starts and numbers are so far apart, with zeros behind them, and points to the copy."""
        w(f"int16_t *const {name}_copy = {to};")
        with w.loop("line", lines):
            place = f"line * {self.stride}"
            if steps[1] == 1 and "total_long" in self.v.spellings:
                self._copy_blocks(w, f"{name}_copy + {place}", f"{name} + line * {steps[0]}")
            else:
                self._copy_each(w, name, place, steps)
        w(f"{name} = {name}_copy;")

    def _copy_each(self, w: Writer, name: str, place: str, steps: tuple[int, int]) -> None:
        depth = sizes(self.site)[2]
        with w.loop("i", depth):
            source = f"line * {steps[0]} + i * {steps[1]}"
            w(w.use(MOVE, f"{name}_copy[{place} + i]", f"{name}[{source}]"))
        if self.stride > depth:
            with w.loop("i", self.stride, start=depth):
                w(w.use(MOVE, f"{name}_copy[{place} + i]", "0"))

    def _copy_blocks(self, w: Writer, to: str, source: str) -> None:
        """Copies a line by whole blocks, the last one filled with zeros."""
        for i, some in in_vectors(w, WIDTH, sizes(self.site)[2], "i"):
            block = self.v.call(w, "b_load", f"(const int8_t *)({source} + {i})", of=(2 * some,))
            w(f"{self.v.call(w, 'b_store', f'(int8_t *)({to} + {i})', block, of=(2 * WIDTH,))};")

    def _scaling(self, w: Writer) -> tuple[str, list[str]]:
        """The function of sums, and its constants. Compilers must not know the multiplier: they would make the product
        of 64 bits of up to twenty shifts and sums."""
        scaling = layer_of(self.site).general(INT16)
        constants = literals(scaling)
        if scaling.function == "requantize64":
            multiplier = f"(uint16_t){DSP.call(w, 'kept', f'{constants[0]}U')}"
            declare(w, "multiplier", multiplier, "int32_t")
            constants = ["multiplier", *constants[1:]]
        return scaling.function, constants

    def _outputs(self, w: Writer, some: int, scaling: str, constants: list[str]) -> None:
        declare_totals(w, self.v, self.stride, ["0"] * some)
        for column in range(some):
            scaled = w.helper(scaling, f"sum{column}", *constants)
            w(w.use(STORE, f"to[{column}]", f"(int16_t){DSP.call(w, 'saturate', scaled, of=(16,))}"))
        w(f"k += {some * self.stride};")
        w(f"to += {some};")
        w.bill(2)


def declare_totals(w: Writer, v: Vectors, stride: int, starts: list[str], of_bytes: bool = False) -> None:
    """Declares the totals sum0 … of the products of `left` and of lines from `k` on, `stride` words or bytes each."""
    for line, start in enumerate(starts):
        declare(w, f"sum{line}", start, "int64_t")
    for i, _ in w.each(in_vectors(w, WIDTH, stride, "i", unrolled=UNROLLED)):
        lines = [(f"sum{line}", f"k + {i} + {line * stride}") for line in range(len(starts))]
        (_vector if "total_long" in v.spellings else _pairs)(w, v, i, lines, of_bytes)


Line = tuple[str, str]
"""A total, and the place of its factors."""


def _vector(w: Writer, v: Vectors, i: str, lines: list[Line], of_bytes: bool) -> None:
    v.let(w, "words", "x", v.call(w, "inputs", f"left + {i}", of=(2,)))
    for name, place in lines:
        factors = v.call(w, "weights" if of_bytes else "inputs", place, of=(2,))
        w(f"{name} = {v.call(w, 'total_long', name, 'x', factors)};")


def _pairs(w: Writer, v: Vectors, i: str, lines: list[Line], of_bytes: bool) -> None:
    for at in range(0, WIDTH, 4):
        names = [f"x{at}", f"x{at + 2}"]
        for x, near in zip(names, (at, at + 2), strict=True):
            computed(w, x, v.call(w, "p_load", f"left + {i} + {near}"))
        for name, place in lines:
            pairs = _byte_pairs(w, v, f"{name}_{at}", place, at) if of_bytes else _word_pairs(w, v, place, at)
            for x, factors in zip(names, pairs, strict=True):
                w(f"{name} = {v.call(w, 'p_long_dot', x, factors, name)};")


def _word_pairs(w: Writer, v: Vectors, place: str, at: int) -> list[str]:
    return [v.call(w, "p_load", f"{place} + {at + by}") for by in (0, 2)]


def _byte_pairs(w: Writer, v: Vectors, name: str, place: str, at: int) -> list[str]:
    """The first and third byte, then the second and fourth: see `arranged`."""
    computed(w, name, v.call(w, "load_bytes", f"{place} + {at}", of=(4,)))
    return [v.call(w, f"p_{which}_bytes", name) for which in ("even", "odd")]


def arranged(v: Vectors, weights: Array) -> Array:
    """Bytes [lines, stride] in the order in which products read them."""
    if "total_long" in v.spellings:
        return weights
    return weights.reshape(-1, 2, 2).transpose(0, 2, 1).reshape(weights.shape)

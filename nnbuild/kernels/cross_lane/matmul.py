"""Matrix products of two tensors on sets that sum across their lanes: the right one's columns are laid out one after
the other, then four of them at a time are multiplied by a row of the left one.

Numbers stay bytes: zero points are taken off by the sums of a column and of a row. A work item is a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names, on_nests, only_int8, reason_of
from nnbuild.kernels.cross_lane.scaling import FARTHEST, TotalScaling
from nnbuild.kernels.dsp.scaling import chosen, plain_form
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops.vector_matmul import each_matrix, sizes
from nnbuild.kernels.parts.integer_steps import zero
from nnbuild.model.graph import Array
from nnbuild.numeric.requant_product import Form
from nnbuild.numeric.rounding import INT32, ints
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

WIDTH, TOGETHER = 16, 4
"""Bytes of a vector, and columns at a time."""
HELD, UNROLLED = 5, 8
"""Vectors of a row that stay in registers, and those up to which there is no loop over them."""
GROUP_CYCLES, ROW_CYCLES = 3, 10
"""Cycles of addresses and of values that wait on the stack."""
FARTHEST_PLACE = (1 << 16) // WIDTH
"""The longest row of which 16-bit places reach as many rows as a vector has bytes."""


@lru_cache(maxsize=256)
def _scaling(site: Site[MatMul]) -> TotalScaling | str:
    layer = layer_of(site)
    forms = [plain_form(layer)] if layer.rule == "twice" else [Form(left=1)]
    forms.append(Form(below=None, least=1))
    scaling = chosen(layer, forms, ints([FARTHEST]), ints([INT32[1]]), 8)
    if isinstance(scaling, str) or scaling.form is None:
        return scaling if isinstance(scaling, str) else "its scale needs a function"
    depth = site.shape()[-1]
    return TotalScaling(scaling, ints([depth * zero(site.inputs[0]) * zero(site.inputs[1])]) - scaling.centre)


def _accepts(site: Site[MatMul]) -> str | None:
    if not site.attributes.turned and site.output_shape()[-1] > FARTHEST_PLACE:
        return "16-bit places do not reach that many rows of its right matrix"
    return only_int8(site) or reason_of(_scaling(site))


@dataclass(frozen=True, eq=False)
class AcrossMatmul:
    v: Vectors
    site: Site[MatMul]

    @property
    def ending(self) -> TotalScaling:
        found = _scaling(self.site)
        assert not isinstance(found, str)
        return found

    @property
    def padded(self) -> tuple[int, int]:
        """Bytes of a laid out column, and the number of columns, up to whole vectors."""
        _, _, depth, columns = sizes(self.site)
        return depth + -depth % WIDTH, columns + -columns % TOGETHER

    def demand(self) -> Demand:
        size, padded = self.padded
        return Demand(
            extent=sizes(self.site)[0], scratch=padded * (4 + size), scratch_type="int32", packed=self._tables()
        )

    def _tables(self) -> dict[str, Array]:
        """Ones for the last bytes of a column, and where the bytes of one that is not contiguous are: those of even
        places first."""
        _, _, depth, columns = sizes(self.site)
        whole, rest = divmod(depth, WIDTH)
        found: dict[str, Array] = {}
        if rest:
            found["ones"] = (np.arange(WIDTH) < rest).astype(np.int8)
        if self.site.attributes.turned:
            return found
        rows = np.arange(WIDTH).reshape(-1, 2).T.reshape(-1)
        if whole:
            found["places"] = (rows * columns).astype(np.uint16)
        if rest:
            found["last_places"] = np.where(rows < rest, rows * columns, 0).astype(np.uint16)
        return found

    def emit(self, w: Writer, names: Names) -> None:
        v, (_, rows, depth, columns), (size, padded) = self.v, sizes(self.site), self.padded
        w(f"int32_t *const starts = {names.scratch};")
        w(f"int8_t *const laid = (int8_t *)(void *)(starts + {padded});")
        if size > depth:
            with w.loop("column", columns):
                end = f"laid + column * {size} + {size - WIDTH}"
                w(f"{v.call(w, 'b_store', end, v.call(w, 'b_each', '0'), of=(WIDTH,))};")
        with each_matrix(w, self.site, names) as (left, right, out):
            w(f"const int8_t *const columns_in = {right};")
            self._lay_out(w, names)
            with w.loop("row", rows):
                w(f"const int8_t *const from = {left} + row * {depth};")
                w(f"int8_t *const to = {out} + row * {columns};")
                self._row(w, names)

    def _lay_out(self, w: Writer, names: Names) -> None:
        """Copies the columns, and declares where the sums of each start."""
        v, (_, _, depth, columns), (size, _) = self.v, sizes(self.site), self.padded
        turned, left = self.site.attributes.turned, zero(self.site.inputs[0])
        with w.loop("column", columns):
            w(f"const int8_t *source = columns_in + column * {depth if turned else 1};")
            w(f"int8_t *kept = laid + column * {size};")
            if left:
                w(w.use(c99.LOAD_AS, "int32_t", "sum", "0"))
            for i, count in in_vectors(w, WIDTH, depth, "i"):
                if turned:
                    value = v.call(w, "b_load", f"source + {i}", of=(count,))
                else:
                    places = names.packed["places" if count == WIDTH else "last_places"]
                    value = v.call(w, "gather_two", f"source + ({i}) * {columns}", places)
                v.let(w, "bytes", "x", value)
                w(f"{v.call(w, 'b_store', f'kept + {i}', 'x', of=(count,))};")
                if left:
                    w(f"sum = {v.call(w, 'total', 'sum', 'x', self._ones(w, names, count), of=(4,))};")
            w(w.use(c99.STORE, "starts[column]", f"sum * {-left}"))

    def _ones(self, w: Writer, names: Names, count: int) -> str:
        if count == WIDTH:
            return self.v.call(w, "b_each", "1")
        return self.v.call(w, "inputs", names.packed["ones"], of=(4,))

    def _row(self, w: Writer, names: Names) -> None:
        v, (_, _, depth, columns), (size, _) = self.v, sizes(self.site), self.padded
        held, right = depth <= HELD * WIDTH, zero(self.site.inputs[1])
        if held:
            for at in range(0, depth, WIDTH):
                v.let(w, "bytes", f"x{at}", v.call(w, "b_load", f"from + {at}", of=(min(WIDTH, depth - at),)))

        def add(sums: list[str], factor: Callable[[int, str, int], str]) -> None:
            """Adds to sums the products of the row and factors (sum, place, count)."""
            for name in sums:
                w(w.use(c99.LOAD_AS, "int32_t", name, "0"))
            for i, count in in_vectors(w, WIDTH, depth, "i", unrolled=UNROLLED):
                with nullcontext() if held else w.block(""):
                    if not held:
                        v.let(w, "bytes", "x", v.call(w, "b_load", f"from + {i}", of=(count,)))
                    for k, name in enumerate(sums):
                        x = f"x{i}" if held else "x"
                        w(f"{name} = {v.call(w, 'total', name, x, factor(k, i, count), of=(4,))};")

        start = str(int(self.ending.start[0]))
        if right:
            add(["inputs"], lambda _, i, count: self._ones(w, names, count))
            start = f"inputs * {-right} + {int(self.ending.start[0])}"
        w(f"const int32_t start = {start};")
        values = {name: str(int(column[0])) for name, column in self.ending.columns.items()}
        w.bill(ROW_CYCLES)
        for j, some in in_vectors(w, TOGETHER, columns, "j"):
            w(f"const int8_t *const k = laid + ({j}) * {size};")
            w.bill(GROUP_CYCLES)
            sums = [f"sum{k}" for k in range(TOGETHER)]
            add(sums, lambda k, i, _: v.call(w, "inputs", f"k + {i} + {k * size}", of=(4,)))
            starts = v.call(w, "load", f"starts + {j}")
            v.let(w, "sums", "all", v.call(w, "add", v.call(w, "join", *sums), starts), "")
            self.ending.scale(w, v, "all", values | {"start": "start"})
            of = (self.ending.scaling.low, self.ending.scaling.high, some)
            w(f"{v.call(w, 'store_bytes', f'to + {j}', 'all', of=of)};")


VARIANTS = (on_nests("across", "_across", _accepts, AcrossMatmul),)

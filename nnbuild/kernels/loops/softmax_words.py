"""Softmax of 16-bit numbers in vectors, over contiguous values: two gathered functions and a product."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.gathered_functions import looked_up, pairs
from nnbuild.kernels.lanes.rounded_arithmetic import InVectors, Rounded, rounded
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.kernels.parts.softmax_steps import inverse16, sizes
from nnbuild.numeric.rounding import INT16
from nnbuild.numeric.softmax import exp_table16, reciprocal_table16, softmax16_multiplier
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

LOWEST = INT16[0] - INT16[1]
"""The difference from which a power is zero."""


def _scale(site: Site[Softmax]) -> Rounded | None:
    return rounded(softmax16_multiplier(quant_of(site.inputs[0]).scale), (LOWEST, 0))


@dataclass(frozen=True)
class SoftmaxOfWords:
    v: Vectors

    def accepts(self, site: Site[Softmax]) -> str | None:
        _, size, after = sizes(site)
        if after > 1:
            return "its values are not contiguous"
        if not self.v.gathers:
            return "its set does not gather faster than one by one"
        if size == 1:
            return "it has a single value"
        return None if _scale(site) else "its input's scale needs 64 bits"

    def demand(self, site: Site[Softmax]) -> Demand:
        before, _, _ = sizes(site)
        packed = {"powers": pairs(exp_table16()), "inverses": reciprocal_table16().astype("int16")}
        return Demand(extent=before, packed=packed, overlaps=IN_PLACE)

    def emit(self, w: Writer, site: Site[Softmax], names: Names) -> None:
        v, scale, (before, size, _) = self.v, _scale(site), sizes(site)
        assert scale is not None
        with each_run(w, site, names, before, size):
            self._largest(w, size)
            v.let(w, "sums", "sums", v.call(w, "each", "0"), "")
            for i, count in in_vectors(w, v.lanes, size, "i"):
                below = v.call(w, "sub", self._words(w, "from", i, count), "largest")
                v.let(w, "sums", "x", v.kept_sums(w, below, count), "")
                InVectors(v).scale(w, "x", scale)
                w(f"x = {v.call(w, 'max', 'x', LOWEST)};")
                w(f"x = {v.call(w, 'add', 'x', INT16[1])};")
                v.let(w, "sums", "power", looked_up(w, v, names.packed["powers"], "x"))
                w(f"{v.call(w, 'store_words', f'to + {i}', 'power', of=(*INT16, count))};")
                w(f"sums = {v.call(w, 'add', 'sums', v.kept_sums(w, 'power', count))};")
            declare(w, "sum", v.call(w, "sum_across", "sums"))
            inverse16(w, names.packed["inverses"])
            for i, count in in_vectors(w, v.lanes, size, "i"):
                product = v.call(w, "mul", self._words(w, "to", i, count), v.call(w, "each", "inverse"))
                raised = v.call(w, "add", product, v.call(w, "each", "1 << (30 - headroom)"))
                value = v.call(w, "shift_down_by", raised, "31 - headroom")
                w(f"{v.call(w, 'store_words', f'to + {i}', value, of=(*INT16, count))};")

    def _words(self, w: Writer, pointer: str, i: str, count: int) -> str:
        return self.v.call(w, "widen_words", f"{pointer} + {i}", of=(count,))

    def _largest(self, w: Writer, size: int) -> None:
        """In every lane. The last vector repeats values."""
        v = self.v
        if size < v.lanes:
            above = v.call(w, "sub", self._words(w, "from", "0", size), INT16[0])
            most = v.call(w, "add", v.kept_sums(w, above, size), INT16[0])
            v.let(w, "sums", "largest", v.call(w, "each", v.call(w, "max_across", most)))
            return
        v.let(w, "sums", "most", self._words(w, "from", "0", v.lanes), "")
        for i, count in in_vectors(w, v.lanes, size, "i"):
            place = i if count == v.lanes else str(size - v.lanes)
            w(f"most = {v.call(w, 'max', 'most', self._words(w, 'from', place, v.lanes))};")
        v.let(w, "sums", "largest", v.call(w, "each", v.call(w, "max_across", "most")))

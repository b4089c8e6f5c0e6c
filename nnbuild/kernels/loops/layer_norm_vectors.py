"""Layer normalization of integers in vectors, over contiguous values.

The sums of a row's values and squares come first. One high product normalizes a value; another one, with a summand of
64 bits, makes the output: it multiplies by the factor at the output's scale, and starts from the summand, half a unit
and the zero point at that scale. All of it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.lanes.row_sums import declare_sums, declare_word_sums
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts import layer_norm_steps as steps
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.parts.layer_norm_steps import HIGH, MOST_RIGHT
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import int32s, limits
from nnbuild.ops.integer import quant_of
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site

LARGEST = {"int8": 1 << 16, "int16": (1 << 15) - 1}
"""Values whose squares, or halves of squares, have a sum of 32 bits."""
LARGEST_EPSILON = 1 << 37
"""With a variance of less, at most 2^36, a deviation of bytes is below 2^18.8. Times its root, below 2^28.6 unless the
variance is small, it is 2^(16 + right): `right` is at most 31. That of words may be larger."""


def refusal(site: Site[LayerNorm], lanes: int = 1) -> str | None:
    """Why the products would not be exact."""
    (_, size), refused, kind = steps.sizes(site), only_integer(site), site.inputs[0].dtype
    if refused:
        return refused
    if size < lanes:
        return "its values do not fill a vector"
    if size > LARGEST[kind]:
        return f"32 bits hold the squares of {LARGEST[kind]} values, not of {size}"
    scales = site.attributes.scales(site)
    fits = (kind == "int16" or scales.epsilon <= LARGEST_EPSILON) and scales.output.right >= HIGH
    return None if fits else "its epsilon or its scale needs 64 bits"


@dataclass(frozen=True)
class NormalizedVectors:
    v: Vectors

    def accepts(self, site: Site[LayerNorm]) -> str | None:
        return refusal(site, self.v.lanes)

    def demand(self, site: Site[LayerNorm]) -> Demand:
        rows, _ = steps.sizes(site)
        return Demand(extent=rows, packed=self._constants(site), overlaps=IN_PLACE)

    def _constants(self, site: Site[LayerNorm]) -> dict[str, Array]:
        """The factor, its sign where one is negative, and the start of every value, up to a whole vector: where 64-bit
        numbers are apart, [vector][factors, lower words of starts, upper words][lane]."""
        (_, size), lanes = steps.sizes(site), self.v.lanes
        start, factor = (np.pad(values, (0, -size % lanes)) for values in steps.starts_and_factors(site))
        found: dict[str, Array] = {"factors": int32s(np.abs(factor))}
        if np.any(factor < 0):
            found["signs"] = int32s(-(factor < 0).astype(np.int64))
        if self.v.apart:
            words = [part.reshape(-1, lanes) for part in (found.pop("factors"), int32s(start), int32s(start >> 32))]
            return found | {"constants": np.stack(words, axis=1).reshape(-1)}
        if self.v.alternating:
            start = start.reshape(-1, lanes // 2, 2).transpose(0, 2, 1).reshape(-1)
        return found | {"starts": start}

    def emit(self, w: Writer, site: Site[LayerNorm], names: Names) -> None:
        v, scales, (rows, size) = self.v, site.attributes.scales(site), steps.sizes(site)
        words = site.inputs[0].dtype == "int16"
        widen, declared = ("widen_words", declare_word_sums) if words else ("widen", declare_sums)
        with each_run(w, site, names, rows, size):
            declared(w, v, size, ("squares",) if steps.known_mean(site) == 0 else ("sum", "squares"))
            steps.mean_and_root(w, site, size)
            w.bill(30)
            if words:
                declare(w, "down", f"right > {HIGH} ? right - {HIGH} : 0")
            up = f"({HIGH} - right + down)" if words else f"({HIGH - v.rounds} - right)"
            declare(w, "unit", f"{1 << scales.fraction} << {up}")
            declare(w, "origin", f"(int32_t)((uint32_t)mean << {up})")
            if v.apart:
                w(f"const int32_t *k = {names.packed['constants']};")
            for i, count in in_vectors(w, v.lanes, size, "i"):
                value = v.call(w, "mul", v.call(w, widen, f"from + {i}", of=(count,)), v.call(w, "each", "unit"))
                v.let(w, "sums", "raised", v.call(w, "sub", value, v.call(w, "each", "origin")))
                self._store(w, site, names, self._normal_word(w) if words else self._normal(w), i, count)

    def _normal(self, w: Writer) -> str:
        v, root = self.v, self.v.call(w, "each", "(int32_t)root")
        if v.rounds:
            return v.call(w, "high_rounded", "raised", root)
        half = v.call(w, "each_wide", f"INT64_C({1 << (HIGH - 1)})")
        return v.call(w, "scaled", "raised", root, half, half, of=(int(v.alternating),))

    def _normal_word(self, w: Writer) -> str:
        """With a shift after the product, by which negative numbers move as positive ones."""
        v, root, half = self.v, self.v.call(w, "each", "(int32_t)root"), f"((int64_t){1 << (HIGH - 1)} << down)"
        if v.apart:
            words = (v.call(w, "each", f"(int32_t){part}") for part in (half, f"({half} >> 32)"))
            value = v.call(w, "scaled_apart", "raised", root, *words)
        else:
            wide = v.call(w, "each_wide", half)
            value = v.call(w, "scaled", "raised", root, wide, wide, of=(int(v.alternating),))
        moved = v.call(w, "shift_down_by", v.call(w, "xor", value, v.call(w, "each", "INT32_MIN")), "down")
        return v.call(w, "sub", moved, v.call(w, "each", "(int32_t)((uint32_t)INT32_MIN >> down)"))

    def _store(self, w: Writer, site: Site[LayerNorm], names: Names, normal: str, i: str, count: int) -> None:
        v, packed, right = self.v, names.packed, site.attributes.scales(site).output.right
        if "signs" in packed:
            v.let(w, "sums", "sign", v.call(w, "load", f"{packed['signs']} + {i}"))
            normal = v.call(w, "sub", v.call(w, "xor", normal, "sign"), "sign")
        if v.apart:
            words = (v.call(w, "load", f"k + {n * v.lanes}") for n in range(3))
            value = v.call(w, "scaled_apart", normal, *words)
        else:
            factor = v.call(w, "load", f"{packed['factors']} + {i}")
            places = (f"{packed['starts']} + {i}", f"{packed['starts']} + {i} + {v.lanes // 2}")
            words = (v.call(w, "load_wide", place) for place in places)
            value = v.call(w, "scaled", normal, factor, *words, of=(int(v.alternating),))
        value = v.call(w, "shift_right", value, of=(right - HIGH,)) if right > HIGH else value
        if right > MOST_RIGHT:
            value = v.call(w, "add", value, quant_of(site.outputs[0]).zero_point)
        kind = site.outputs[0].dtype
        store = "store_words" if kind == "int16" else "store_bytes"
        w(f"{v.call(w, store, f'to + {i}', value, of=(*limits(kind), count))};")
        if v.apart:
            w(f"k += {3 * v.lanes};")

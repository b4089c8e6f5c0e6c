"""The weighted sums of LSTM, GRU and SimpleRNN with the pairs of 16-bit products of Cortex-M4 and up.

At the start of a time step its input and the old hidden state are copied to scratch as 16-bit numbers, each padded with
zeros to a multiple of four. The weights are stored four per sum, sum after sum.

A 32-bit sum is scaled in 32 bits: shifted left until the high word of its product has all relevant bits; then the
rounding constant is an integer and a shift remains. 64-bit sums are scaled by the general rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.recurrent.integer_cells import ALL, Part, Sums, both_products, by_unit, columns
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT16, INT32
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site

AT_ONCE = 4
SPLIT = 33
"""The right shift from which its half is an integer in the high word."""
MOST = 64
"""The right shift from which the high word would be shifted by more than it has."""
LARGEST_PART = 1 << 30
COPY = Row("{0} = {1};", 3)


def whole(size: int) -> int:
    return -(-size // AT_ONCE) * AT_ONCE


def raised(products: Products) -> int | None:
    """The left shift with which all sums of a product can be scaled in 32 bits; None where that is impossible."""
    by = max(0, SPLIT - int(products.right.min()))
    results = products.partial_bound * (np.abs(products.multiplier).astype(object) + 1)
    small = all(int(result) >> int(right) < LARGEST_PART for result, right in zip(results, products.right, strict=True))
    return by if products.narrow and small and products.partial_bound << by <= INT32[1] else None


@dataclass(frozen=True)
class PairedSums(Sums):
    """`wide` weights have 16 bits: more flash, and no unpacking."""

    wide: bool
    needs: ClassVar[frozenset[str]] = frozenset({"armv7em_dsp"})

    def accepts(self, site: Site[Recurrent]) -> str | None:
        if reason := super().accepts(site):
            return reason
        products = both_products(site)
        for part in products:
            if part.weights.dtype.itemsize > 2 or np.abs(part.weights.astype(np.int64)).max(initial=0) > INT16[1]:
                return "its weights have more than 16 bits"
        narrow = all(part.weights.dtype == np.int8 for part in products)
        return None if self.wide or narrow else "its weights have more than 8 bits"

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        """[unit][four inputs][gate][input]; for narrow weights the second and third of four are swapped."""
        count = site.attributes.gates
        weights = by_unit(products.weights, count)[:, :, gates]
        units, size, kept = weights.shape
        filled = np.zeros((units, whole(size), kept), np.int16 if self.wide else np.int8)
        filled[:, :size] = weights
        fours = filled.reshape(units, -1, AT_ONCE, kept).transpose(0, 1, 3, 2)
        parts = {"": fours if self.wide else fours[..., [0, 2, 1, 3]]}
        for part, values in _columns(products).items():
            parts[f"_{part}"] = values.reshape(count, units, -1).transpose(1, 0, 2)[:, gates]
        return {f"{name}{part}": values for part, values in parts.items()}

    def demand(self, site: Site[Recurrent], packed: dict[str, Array], held: int = 1) -> Demand:
        return replace(super().demand(site, packed, held), scratch=2 * behind(site, held), scratch_type="int16")

    def room(self, site: Site[Recurrent]) -> int:
        return 2 * behind(site)

    def kept(self, site: Site[Recurrent], names: Names, index: int) -> str:
        return f"(int32_t *)({names.scratch} + {behind(site, index)})"

    def before_units(self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int) -> None:
        for part in parts:
            name, place = source(part), input_place(site) if part.vector == "x" else state_place(site)
            w(f"int16_t *{name} = {names.scratch} + {place};")
            with w.loop("i", part.size):
                w(w.use(COPY, f"{name}[i]", f"(int16_t){part.vector}[i]"))
            for index in range(part.size, whole(part.size)):
                w(w.use(c99.STORE, f"{name}[{index}]", "0"))

    def weighted(self, w: Writer, names: Names, part: Part) -> None:
        by, count = raised(part.products), len(part.sums)
        self.begun(w, names, part, "int64_t" if by is None else "int32_t")
        for index, one in enumerate(part.sums):
            place = f"unit * {count} + {index}"
            if by is None:
                self.scaled(w, names, part, one, f"{one}_sum", place)
            else:
                self._scale(w, f"{names.packed[f'{part.name}_scale']} + ({place}) * 3", one, by)

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        self.begun(w, names, part, part.kind)
        return part.totals

    def begun(self, w: Writer, names: Names, part: Part, kind: str) -> None:
        """Declares the part's sums, in this type."""
        part.declare(w, names.packed.get(f"{part.name}_start"), kind)
        with w.block(""):
            self._multiplied(w, names, part, kind)

    def _multiplied(self, w: Writer, names: Names, part: Part, kind: str) -> None:
        count, size = len(part.sums), whole(part.size)
        weights = "int16_t" if self.wide else "int8_t"
        w(f"const {weights} *k = {names.packed[part.name]} + unit * {size * count};")
        with w.loop("i", size, step=AT_ONCE):
            self._four(w, part.sums, source(part), "p_long_dot" if kind == "int64_t" else "p_dot")
            w(f"k += {AT_ONCE * count};")

    def _four(self, w: Writer, sums: Sequence[str], inputs: str, multiply: str) -> None:
        w("int32_t x1;")
        w(w.use(c99.LET, "x0", DSP.call(w, "p_load_two", f"{inputs} + i", "&x1")))
        for index, part in enumerate(sums):
            at, pair = f"k + {AT_ONCE * index}", (f"w{index}0", f"w{index}1")
            if self.wide:
                w(f"int32_t {pair[1]};")
                w(w.use(c99.LET, pair[0], DSP.call(w, "p_load_two", at, f"&{pair[1]}")))
            else:
                w(w.use(c99.LET, f"four{index}", DSP.call(w, "load_bytes", at, of=(4,))))
                w(w.use(c99.LET, pair[0], DSP.call(w, "p_even_bytes", f"four{index}")))
                w(w.use(c99.LET, pair[1], DSP.call(w, "p_odd_bytes", f"four{index}")))
            for name, vector in zip(pair, ("x0", "x1"), strict=True):
                w(f"{part}_sum = {DSP.call(w, multiply, name, vector, f'{part}_sum')};")

    def _scale(self, w: Writer, place: str, part: str, by: int) -> None:
        sums = f"{part}_sum * {1 << by}"
        w(f"const int32_t *{part}_scale = {place};")
        high = DSP.call(w, "high_add", sums, f"{part}_scale[0]", f"{part}_scale[1]")
        w.bill(6)
        declare(w, part, f"{high} >> {part}_scale[2]")


def source(part: Part) -> str:
    """The name of a part's inputs in scratch."""
    return f"{part.name}_inputs"


def _columns(products: Products) -> dict[str, Array]:
    """The scaling constants of each sum, and its start."""
    by = raised(products)
    if by is None:
        return columns(products)
    start = {"start": products.start.astype(np.int32)} if products.start.any() else {}
    return {"scale": upper_scale(products, by)} | start


def upper_scale(products: Products, by: int) -> Array:
    """For each sum, shifted to the left by so many bits: its factor, what is added to the upper half, and its shift."""
    right = products.right + by
    some = right < MOST  # from there on products of 32 bits by 31 round to zero
    right = np.where(some, right, SPLIT)
    scale = [products.multiplier * some, np.int64(1) << (right - SPLIT), right - 32]
    return np.stack(scale, 1).astype(np.int32)


def input_place(site: Site[Recurrent]) -> int:
    """In scratch the new hidden state comes first."""
    return whole(site.attributes.units)


def state_place(site: Site[Recurrent]) -> int:
    return input_place(site) + whole(site.shape()[1])


def behind(site: Site[Recurrent], held: int = 1) -> int:
    """The place behind the new hidden state, the inputs, the old state and all but one of `held` numbers per unit."""
    return state_place(site) + whole(site.attributes.units) + 2 * (held - 1) * site.attributes.units

"""The weighted sums of LSTM, GRU and SimpleRNN in integer vectors: of all units at once, each sum a lane.

Before a loop over units its input vectors are copied to scratch as 16-bit numbers and multiplied in pairs; the sums
wait in scratch for their unit's turn. Scratch holds 32-bit numbers: new hidden states first, as in all forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops.window_loops import product
from nnbuild.kernels.recurrent.integer_cells import Part, Sums, both_products
from nnbuild.model.graph import Array
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site

LARGEST_BLOCK = 4
"""Vectors of sums accumulated together, at most."""


@dataclass(frozen=True)
class ColumnSums(Sums):
    v: Vectors

    @property
    def depth(self) -> int:
        """Inputs per multiplication."""
        return min(self.v.depth, 2)

    def accepts(self, site: Site[Recurrent]) -> str | None:
        reason = super().accepts(site)
        if reason:
            return reason
        parts = both_products(site)
        if any(part.weights.dtype != np.int8 for part in parts):
            return "its weights have more than 8 bits"
        return None if all(part.narrow for part in parts) else "its sums have more than 32 bits"

    def block(self, columns: int) -> int:
        """Vectors of sums in a block, for the fewest blocks of equal size."""
        vectors = -(-columns // self.v.lanes)
        return -(-vectors // -(-vectors // LARGEST_BLOCK))

    def width(self, columns: int) -> int:
        """The sums, padded to full blocks."""
        block = self.block(columns) * self.v.lanes
        return -(-columns // block) * block

    def packed(
        self, site: Site[Recurrent], name: str, products: Products, gates: slice = slice(None)
    ) -> dict[str, Array]:
        """The weights as [block][inputs of a product][lane][input]."""
        made = super().packed(site, name, products, gates)
        units, size, kept = made[name].shape
        weights = made[name].transpose(1, 0, 2).reshape(size, units * kept)
        width, block = self.width(units * kept), self.block(units * kept) * self.v.lanes
        filled = np.zeros((size + size % self.depth, width), np.int8)
        filled[:size, : units * kept] = weights
        made[name] = filled.reshape(-1, self.depth, width // block, block).transpose(2, 0, 3, 1)
        if (start := f"{name}_start") in made:
            made[start] = np.pad(made[start].reshape(-1), (0, width - units * kept))
        return made

    def demand(
        self, site: Site[Recurrent], packed: dict[str, Array], scratch_vectors: int = 1, scratch_type: str = "int16"
    ) -> Demand:
        """Includes the input vectors of a loop over units, and their sums."""
        made = super().demand(site, packed, scratch_vectors, "int32")
        return replace(made, scratch=made.scratch + self.room(site))

    def room(self, site: Site[Recurrent]) -> int:
        units, features = site.attributes.units, site.shape()[1]
        return 4 * (_words(features) + _words(units) + 2 * self.width(site.attributes.gates * units))

    def before_units(
        self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int = 1
    ) -> None:
        at = held * site.attributes.units
        for part in parts:
            kind = {"x": site.inputs[0].dtype, "recalled": "int32"}.get(part.vector, site.outputs[0].dtype)
            self._copy(w, part, f"{names.scratch} + {at}", kind)
            at += _words(part.size)
            w(f"int32_t *{part.name}_sums = {names.scratch} + {at};")
            self._multiply(w, names, part, len(part.sums) * site.attributes.units)
            at += self.width(len(part.sums) * site.attributes.units)

    def _copy(self, w: Writer, part: Part, place: str, kind: str) -> None:
        """Copies the vector as 16-bit numbers, a multiple of the depth."""
        to = f"{part.name}_inputs"
        w(f"int16_t *{to} = (int16_t *)({place});")
        w.bill(part.size / self.v.lanes)
        if kind == "int32":
            with w.loop("i", part.size):
                w(w.use(c99.STORE, f"{to}[i]", f"(int16_t){part.vector}[i]"))
        elif kind == "int16":
            w(f"{self.v.call(w, 'copy', to, part.vector, str(part.size))};")
        else:
            w(f"{self.v.call(w, 'centre', to, part.vector, str(part.size), '0')};")
        if part.size % self.depth:
            w(w.use(c99.STORE, f"{to}[{part.size}]", "0"))

    def _multiply(self, w: Writer, names: Names, part: Part, columns: int) -> None:
        v, depth, vectors = self.v, self.depth, range(self.block(columns))
        block, start = len(vectors) * v.lanes, names.packed.get(f"{part.name}_start")
        rounds = part.size + part.size % depth
        with w.loop("column", self.width(columns), step=block):
            w(f"const int8_t *k = {names.packed[part.name]} + {product('column', rounds)};")
            for vector in vectors:
                first = f"{start} + column + {vector * v.lanes}" if start else ""
                v.let(w, "sums", f"sum{vector}", v.call(w, *(("load", first) if start else ("each", "0"))), "")
            with w.loop("i", rounds, step=depth):
                self._declare_input(w, f"{part.name}_inputs + i")
                for vector in vectors:
                    weights = v.call(w, "weights", f"k + {vector * v.lanes * depth}", of=(depth,))
                    w(f"sum{vector} = {v.call(w, 'dot', f'sum{vector}', 'x', weights, of=(depth, 0))};")
                w(f"k += {block * depth};")
            for vector in vectors:
                w(f"{v.call(w, 'store', f'{part.name}_sums + column + {vector * v.lanes}', f'sum{vector}')};")

    def _declare_input(self, w: Writer, pointer: str) -> None:
        if self.depth == 1:
            w(f"const int32_t x = {self.v.call(w, 'repeat', pointer, of=(1, 16))};")
        else:
            self.v.let(w, "words", "x", self.v.call(w, "repeat", pointer, of=(2,)))

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        return [f"{part.name}_sums[{at}]" for at in part.places]


def _words(size: int) -> int:
    """The 32-bit numbers that hold `size` 16-bit ones."""
    return -(-size // 2)

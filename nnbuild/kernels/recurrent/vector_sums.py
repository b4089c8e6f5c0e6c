"""The weighted sums of LSTM, GRU and SimpleRNN in integer vectors: of all units at once, each sum a lane.

Before a loop over units its input vectors are copied to scratch as 16-bit numbers and multiplied, in pairs where the
set does that; the sums wait in scratch, gate by gate. Those of more than 32 bits are computed twice, of the inputs'
upper and lower bytes. Scratch holds 32-bit numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.gathered_functions import pairs
from nnbuild.kernels.recurrent.integer_cells import ALL, WIDEST, Part, Sums, both_products
from nnbuild.kernels.recurrent.pair_sums import SPLIT, raised, upper_scale
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, int32s, ints
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site

LARGEST_BLOCK = 4
"""Vectors of sums accumulated together, at most."""
LOWER, LOWEST = 8, 255
"""The bits of an input's lower byte, and its largest value."""
FACTOR_BITS = 31
"""Of a factor; that of a wide sum is doubled."""


@dataclass(frozen=True)
class ColumnSums(Sums):
    v: Vectors
    twice: ClassVar[bool] = False
    """Whether sums of more than 32 bits are computed."""

    @property
    def depth(self) -> int:
        """Inputs per multiplication."""
        return 1 if self._by_number else min(self.v.depth, 2)

    @property
    def _by_number(self) -> bool:
        """Whether 32-bit lanes are multiplied by one number."""
        return "across" in self.v.kernels

    def accepts(self, site: Site[Recurrent]) -> str | None:
        if reason := super().accepts(site):
            return reason
        for part in both_products(site):
            if part.weights.dtype.itemsize > 2:
                return "its weights have more than 16 bits"
            if not part.narrow and not self.twice:
                return "its sums have more than 32 bits"
            if not part.narrow and int(np.abs(part.weights.astype(np.int64)).sum(axis=0).max()) << LOWER > INT32[1]:
                return "its sums have more than 40 bits"
        return None

    def stride(self, site: Site[Recurrent]) -> int:
        """The sums of a gate, padded to full vectors."""
        return -(-site.attributes.units // self.v.lanes) * self.v.lanes

    def block(self, columns: int, halves: int) -> int:
        """Vectors of sums in a block, for the fewest blocks of equal size."""
        vectors = columns // self.v.lanes
        return -(-vectors // -(-vectors // (LARGEST_BLOCK // halves)))

    def width(self, columns: int, halves: int) -> int:
        """The sums, padded to full blocks."""
        block = self.block(columns, halves) * self.v.lanes
        return -(-columns // block) * block

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        """The weights as [block][inputs of a product][lane][input]."""
        made = super().packed(site, name, products, gates)
        kind = np.int8 if products.weights.dtype == np.int8 else np.int16
        weights = self.by_column(site, products, made[name].transpose(1, 2, 0)).astype(kind)
        weights = np.pad(weights, ((0, len(weights) % self.depth), (0, 0)))
        block = self.block(made[name].shape[2] * self.stride(site), halves_of(products)) * self.v.lanes
        made[name] = weights.reshape(-1, self.depth, weights.shape[1] // block, block).transpose(2, 0, 3, 1)
        if (start := f"{name}_start") in made:
            made[start] = self.by_column(site, products, made[start].T)
        return made

    def by_column(self, site: Site[Recurrent], products: Products, values: Array, filler: int = 0) -> Array:
        """[..., gates, units] as [..., sums]."""
        *rows, gates, units = values.shape
        stride, none = self.stride(site), [(0, 0)] * len(rows)
        whole = np.pad(values, [*none, (0, 0), (0, stride - units)], constant_values=filler)
        more = self.width(gates * stride, halves_of(products)) - gates * stride
        return np.pad(whole.reshape(*rows, gates * stride), [*none, (0, more)], constant_values=filler)

    def demand(self, site: Site[Recurrent], packed: dict[str, Array], held: int = 1) -> Demand:
        """Includes the input vectors of a loop over units, and their sums."""
        room = self.room(site, *map(halves_of, both_products(site)))
        made = super().demand(site, packed, held)
        return replace(made, scratch=4 * self.held(site, held) + room, scratch_type="int32")

    def held(self, site: Site[Recurrent], held: int) -> int:
        """The numbers kept in scratch, `held` per unit."""
        return held * site.attributes.units

    def room(self, site: Site[Recurrent], of_input: int = 1, of_state: int = 1) -> int:
        units, features = site.attributes.units, site.shape()[1]
        columns = site.attributes.gates * self.stride(site)
        inputs = of_input * _words(features) + of_state * _words(units)
        return 4 * (inputs + sum(halves * self.width(columns, halves) for halves in (of_input, of_state)))

    def before_units(self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int) -> None:
        at = self.held(site, held)
        for part in parts:
            halves, columns = halves_of(part.products), len(part.sums) * self.stride(site)
            kind = {"x": site.inputs[0].dtype, "recalled": "int32"}.get(part.vector, site.outputs[0].dtype)
            for half in ("", "low_")[:halves]:
                w(f"int16_t *{part.name}_{half}inputs = (int16_t *)({names.scratch} + {at});")
                at += _words(part.size)
            self._copy(w, part, kind)
            for half in ("", "low_")[:halves]:
                w(f"int32_t *{part.name}_{half}sums = {names.scratch} + {at};")
                at += self.width(columns, halves)
            self._multiply(w, names, part, columns)
            self.after_sums(w, site, names, part, columns)

    def after_sums(self, w: Writer, site: Site[Recurrent], names: Names, part: Part, columns: int) -> None:
        """Names the sums of each gate."""
        for index, one in enumerate(part.sums):
            w(f"const int32_t *{one}_sums = {part.name}_sums + {index * self.stride(site)};")

    def _copy(self, w: Writer, part: Part, kind: str) -> None:
        """Copies the vector as 16-bit numbers, a multiple of the depth."""
        to, low = f"{part.name}_inputs", f"{part.name}_low_inputs"
        w.bill(part.size / self.v.lanes)
        if halves_of(part.products) == 2:
            with w.loop("i", part.size):
                w(w.use(c99.STORE, f"{low}[i]", f"(int16_t)({part.vector}[i] & {(1 << LOWER) - 1})"))
                w(w.use(c99.STORE, f"{to}[i]", f"(int16_t)({part.vector}[i] >> {LOWER})"))
        elif kind == "int32" or self._by_number:
            with w.loop("i", part.size):
                w(w.use(c99.STORE, f"{to}[i]", f"(int16_t){part.vector}[i]"))
        elif kind == "int16":
            w(f"{self.v.call(w, 'copy', to, part.vector, str(part.size))};")
        else:
            w(f"{self.v.call(w, 'centre', to, part.vector, str(part.size), '0')};")
        if part.size % self.depth:
            for place in (to, low)[: halves_of(part.products)]:
                w(w.use(c99.STORE, f"{place}[{part.size}]", "0"))

    def _multiply(self, w: Writer, names: Names, part: Part, columns: int) -> None:
        v, depth, halves = self.v, self.depth, halves_of(part.products)
        vectors, start = range(self.block(columns, halves)), names.packed.get(f"{part.name}_start")
        kind, rounds = "int8_t" if part.products.weights.dtype == np.int8 else "int16_t", part.size + part.size % depth
        block = len(vectors) * v.lanes
        with w.loop("column", self.width(columns, halves), step=block):
            w(f"const {kind} *k = {names.packed[part.name]} + column * {rounds};")
            for vector in vectors:
                first = f"{start} + column + {vector * v.lanes}" if start and halves == 1 else ""
                v.let(w, "sums", f"sum{vector}", v.call(w, *(("load", first) if first else ("each", "0"))), "")
                if halves == 2:
                    v.let(w, "sums", f"low{vector}", v.call(w, "each", "0"), "")
            with w.loop("i", rounds, step=depth):
                for half, name in (("", "x"), ("low_", "y"))[:halves]:
                    self._declare_input(w, name, f"{part.name}_{half}inputs + i")
                for vector in vectors:
                    place = f"k + {vector * v.lanes * depth}"
                    v.let(w, *self._weights(w, kind, f"w{vector}", place))
                    for sums, x in (("sum", "x"), ("low", "y"))[:halves]:
                        w(f"{sums}{vector} = {self._dot(w, f'{sums}{vector}', x, f'w{vector}')};")
                w(f"k += {block * depth};")
            for vector in vectors:
                self.finish(w, names, part, vector, f"column + {vector * v.lanes}")

    def finish(self, w: Writer, names: Names, part: Part, vector: int, column: str) -> None:
        """Stores a vector of sums."""
        for half, name in (("", "sum"), ("low_", "low"))[: halves_of(part.products)]:
            w(f"{self.v.call(w, 'store', f'{part.name}_{half}sums + {column}', f'{name}{vector}')};")

    def _declare_input(self, w: Writer, name: str, pointer: str) -> None:
        if self._by_number:
            w(f"const int32_t {name} = *({pointer});")
            w.bill(1)
        elif self.depth == 1:
            w(f"const int32_t {name} = {self.v.call(w, 'repeat', pointer, of=(1, 16))};")
        else:
            self.v.let(w, "words", name, self.v.call(w, "repeat", pointer, of=(2,)))

    def _weights(self, w: Writer, kind: str, name: str, place: str) -> tuple[str, str, str]:
        """The kind, the name and the value of a vector of weights."""
        v, short = self.v, kind == "int8_t"
        if self._by_number:
            return "sums", name, v.call(w, "widen" if short else "widen_words", place, of=(v.lanes,))
        if short:
            return {1: "halves", 2: "words"}[self.depth], name, v.call(w, "weights", place, of=(self.depth,))
        if self.depth == 1:
            return "halves", name, v.call(w, "h_load", place)
        return "words", name, v.call(w, "inputs", place, of=(2,))

    def _dot(self, w: Writer, sums: str, x: str, weights: str) -> str:
        if self._by_number:
            return self.v.call(w, "multiply_add_by", sums, weights, x)
        return self.v.call(w, "dot", sums, x, weights, of=(self.depth, 0))

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        return [f"{one}_sums[unit]" for one in part.sums]


@dataclass(frozen=True)
class CellSums(ColumnSums):
    """Scales the sums, too."""

    twice: ClassVar[bool] = True

    def accepts(self, site: Site[Recurrent]) -> str | None:
        reason = super().accepts(site)
        return reason or (None if "gather" in self.v.spellings else "its set does not gather")

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        made = super().packed(site, name, products, gates)
        columns = {part: made.pop(f"{name}_{part}").T for part in ("multiplier", "right")}
        if (scale := upper_scale_of(products)) is not None:
            steps = np.moveaxis(scale.columns.reshape(site.attributes.gates, -1, 3)[gates], 2, 0)
            columns = dict(zip(("factor", "offset", "moved"), steps, strict=True))
            if self.v.powers:
                columns["moved"] = np.int32(1) << (31 - columns["moved"])
            if scale.wide and products.start.any():
                start = made.pop(f"{name}_start")
                made[f"{name}_start"], made[f"{name}_low_start"] = int32s(start >> LOWER), int32s(start & LOWEST)
        for part, values in columns.items():
            made[f"{name}_{part}"] = self.by_column(site, products, values, int(part in ("right", "moved")))
        return made

    def demand(self, site: Site[Recurrent], packed: dict[str, Array], held: int = 1) -> Demand:
        made = super().demand(site, packed, held)
        tables = {name: pairs(ints(table)) for name, table in made.packed.items() if name.endswith("_table")}
        return replace(made, packed={**made.packed, **tables})

    def held(self, site: Site[Recurrent], held: int) -> int:
        """New states do not wait."""
        return (held - 1) * self.stride(site)

    def kept(self, site: Site[Recurrent], names: Names, index: int) -> str:
        return f"{names.scratch} + {(index - 1) * self.stride(site)}"

    def finish(self, w: Writer, names: Names, part: Part, vector: int, column: str) -> None:
        scale, v, value = upper_scale_of(part.products), self.v, f"sum{vector}"
        if scale is None:
            super().finish(w, names, part, vector, column)
            return

        def loaded(name: str) -> str:
            return v.call(w, "load", f"{names.packed[f'{part.name}_{name}']} + {column}")

        factor = loaded("factor")
        if not scale.wide:
            upper = v.call(w, "upper", v.call(w, "shift_left", value, of=(scale.by,)) if scale.by else value, factor)
        else:
            v.let(w, "sums", f"factor{vector}", factor)
            if f"{part.name}_start" in names.packed:
                w(f"{value} = {v.call(w, 'add', value, loaded('start'))};")
                w(f"low{vector} = {v.call(w, 'add', f'low{vector}', loaded('low_start'))};")
            upper = self._upper_of_both(w, value, f"low{vector}", f"factor{vector}", scale.by)
        shift = "shift_by_powers" if v.powers else "shift_right_each"
        w(f"{value} = {v.call(w, shift, v.call(w, 'add', upper, loaded('offset')), loaded('moved'))};")
        w(f"{v.call(w, 'store', f'{part.name}_sums + {column}', value)};")

    def _upper_of_both(self, w: Writer, high: str, low: str, factor: str, by: int) -> str:
        """The upper half of (high * 256 + low) * 2^by * factor / 256."""
        v, byte = self.v, self.v.call(w, "each", str(LOWEST))
        w(f"{high} = {v.call(w, 'add', high, v.call(w, 'shift_right', low, of=(LOWER,)))};")
        w(f"{low} = {v.call(w, 'and', low, byte)};")
        if by:
            more = v.call(w, "shift_right", low, of=(LOWER - by,))
            w(f"{high} = {v.call(w, 'add', v.call(w, 'shift_left', high, of=(by,)), more)};")
            w(f"{low} = {v.call(w, 'and', v.call(w, 'shift_left', low, of=(by,)), byte)};")
        raised = [v.call(w, "shift_left", value, of=(shift,)) for value, shift in ((low, 31 - LOWER), (factor, 1))]
        v.let(w, "sums", f"{low}_lower", v.call(w, "mul", high, factor))
        total = v.call(w, "add", f"{low}_lower", v.call(w, "upper", *raised))
        carried = v.call(w, "and", f"{low}_lower", v.call(w, "xor", total, -1))
        carry = v.call(w, "shift_down", carried, of=(31,))
        return v.call(w, "add", v.call(w, "upper", high, factor), carry)

    def after_sums(self, w: Writer, site: Site[Recurrent], names: Names, part: Part, columns: int) -> None:
        """Scales one by one what vectors cannot."""
        if upper_scale_of(part.products) is not None:
            return
        scale = "scale_wide" if part.products.largest > WIDEST else "scale_long"
        with w.loop("i", columns):
            total, start = f"{part.name}_sums[i]", names.packed.get(f"{part.name}_start")
            if halves_of(part.products) == 2:
                added_start = f" + {start}[i]" if start else ""
                total = f"(int64_t){total} * {1 << LOWER} + {part.name}_low_sums[i]{added_start}"
            constants = [f"{names.packed[f'{part.name}_{name}']}[i]" for name in ("multiplier", "right")]
            w(w.use(c99.STORE, f"{part.name}_sums[i]", w.helper(scale, total, *constants)))


class UpperScale(NamedTuple):
    """A sum is shifted `by` to the left, and scaled by the upper half of its product: `columns` has a factor, what is
    added to the upper half, and a shift for each. A `wide` sum is divided by 256 after its product."""

    by: int
    columns: Array
    wide: bool


def upper_scale_of(products: Products) -> UpperScale | None:
    """None where 32 bits do not hold the numbers."""
    wide = not products.narrow
    spare = FACTOR_BITS - wide - int(products.multiplier.max()).bit_length()
    finer = replace(products, multiplier=products.multiplier << spare, right=products.right + spare - wide * LOWER)
    if not wide:
        by = raised(finer)
        return None if by is None else UpperScale(by, upper_scale(finer, by), wide)
    by = max(0, SPLIT - int(finer.right.min()))
    fits = by <= LOWER and products.largest < WIDEST and products.partial_bound << by < 1 << (31 + LOWER)
    return UpperScale(by, upper_scale(finer, by), wide) if fits else None


def halves_of(products: Products) -> int:
    """How often a sum is computed."""
    return 1 if products.narrow else 2


def _words(size: int) -> int:
    """The 32-bit numbers that hold `size` 16-bit ones."""
    return -(-size // 2)

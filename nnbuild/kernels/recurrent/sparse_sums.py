"""The weighted sums of LSTM, GRU and SimpleRNN with sparse weights: only nonzero ones are stored and multiplied.

The sums of a unit share the places of their weights, or each has its own. A byte or two counts the blocks of each, and
pointers advance from unit to unit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.encodings.blocks import FARTHEST, Blocks, blocks
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed.narrow_dsp_rows import Code
from nnbuild.kernels.compressed.sparse_weights import DENSE, filled_share
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.recurrent.integer_cells import ALL, Part, Sums, both_products, by_unit
from nnbuild.kernels.recurrent.pair_sums import PairedSums, behind, source
from nnbuild.model.graph import Array
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site

LOOP_CYCLES = 4
STEP = Row("at += *{0};", 2, 1)
MULTIPLY = Row("{0} += {1};", 2, 1)
CALL_CYCLES = 25
HALF = Row("const int32_t {0} = *{1};", 1, 1)
ONWARD = Row("{0} += {1};", 0.5)


FOUR_BITS = Code(table=False)


@lru_cache(maxsize=64)
def _matrix(products: Products, count: int, gates: tuple[int, int]) -> Array:
    """The weights of some gates as [inputs, sums], those of a unit contiguous."""
    weights = by_unit(products.weights, count)[:, :, slice(*gates)]
    matrix: Array = np.ascontiguousarray(weights.transpose(1, 0, 2)).reshape(weights.shape[1], -1)
    return matrix


@dataclass(frozen=True)
class Form:
    """How blocks are stored. shared: the sums of a unit share places; depth: inputs of a block; turn: blocks per
    iteration; unit: the unit of steps, so many to an input."""

    shared: bool
    depth: int = 1
    turn: int = 1
    unit: int = 1

    def refused(self, site: Site[Recurrent]) -> str | None:
        count = site.attributes.gates
        for products in both_products(site):
            matrix = _matrix(products, count, (0, count))
            if filled_share(matrix, count if self.shared else 1, self.depth) > DENSE:
                return "too few of its weights are zero"
            if self.counts(len(matrix)) is None:
                return "it has too many inputs"
        return None

    def counts(self, inputs: int) -> str | None:
        """The type of a count of iterations, for `inputs` inputs."""
        places = -(-inputs // self.depth)
        most = -(-(places + places // (FARTHEST // (self.unit * self.depth))) // self.turn)
        return next((kind for kind in ("uint8", "uint16") if most <= np.iinfo(kind).max), None)

    def stored(self, name: str, matrix: Array, count: int) -> tuple[dict[str, Array], Blocks]:
        """The count of iterations for each group, and the steps."""
        rows = count if self.shared else 1
        found = blocks(matrix, rows, self.depth, self.unit * self.depth, self.turn)
        ends = found.starts.astype(np.int64)
        counts = ((ends[1:] - ends[:-1]) // self.turn).astype(self.counts(len(matrix)))
        return {f"{name}_counts": counts, f"{name}_steps": found.steps}, found

    def average(self, part: Part, count: int) -> float:
        """Iterations of a group; approximate where only some gates are summed."""
        weights = part.products.weights
        rows = count if self.shared and weights.shape[1] % count == 0 else 1
        share = filled_share(_matrix(part.products, rows, (0, rows)), rows, self.depth)
        found = share * part.size / self.depth
        return found / self.turn + (self.turn - 1) / (2 * self.turn)

    def pointers(self, w: Writer, names: Names, part: Part) -> None:
        """Declares the pointers that advance from unit to unit."""
        weights = C_TYPES[part.products.weights.dtype.name]
        kinds = {"counts": f"{self.counts(part.size)}_t", "steps": "uint8_t", "": weights}
        for what, kind in kinds.items():
            name = f"{part.name}_{what}" if what else part.name
            w(f"const {kind} *{part.name}_{what or 'k'} = {names.packed[name]};")


@dataclass(frozen=True)
class SparseSums(Sums):
    """One number at a time."""

    form: Form

    def accepts(self, site: Site[Recurrent]) -> str | None:
        return super().accepts(site) or self.form.refused(site)

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        made, count = super().packed(site, name, products, gates), site.attributes.gates
        first, last, _ = gates.indices(count)
        stored, found = self.form.stored(name, _matrix(products, count, (first, last)), last - first)
        return made | stored | {name: found.values}

    def before_units(self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int) -> None:
        for part in parts:
            self.form.pointers(w, names, part)

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        part.declare(w, names.packed.get(f"{part.name}_start"))
        for group in w.each([part.totals] if self.form.shared else [[one] for one in part.totals]):
            self._group(w, part, group)
        return part.totals

    def _group(self, w: Writer, part: Part, sums: Sequence[str]) -> None:
        """Sums that share places."""
        name, count = part.name, len(sums)
        w("int32_t at = 0;")
        w(f"int32_t left = *{name}_counts;")
        w(f"{name}_counts += 1;")
        w.bill(3, 1)
        with w.block("for (; left > 0; --left)"), w.trips(self.form.average(part, count)):
            w(w.use(STEP, f"{name}_steps"))
            declare(w, "value", f"{part.vector}[at]", f"const {part.kind}")
            for index, one in enumerate(sums):
                w(w.use(MULTIPLY, one, f"value * {name}_k[{index}]"))
            w(w.use(ONWARD, f"{name}_steps", "1"))
            w(w.use(ONWARD, f"{name}_k", str(count)))
            w.bill(LOOP_CYCLES)


@dataclass(frozen=True)
class WaitingSums(PairedSums):
    """A routine computes the sums of all units, which wait in scratch for their unit's turn."""

    def accepts(self, site: Site[Recurrent]) -> str | None:
        refused = super().accepts(site)
        narrow = refused or all(products.narrow for products in both_products(site))
        return refused if narrow else "its sums have more than 32 bits"

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        made, count = super().packed(site, name, products, gates), site.attributes.gates
        first, last, _ = gates.indices(count)
        made |= self.matrix(name, _matrix(products, count, (first, last)), last - first)
        if f"{name}_start" not in made:
            made[f"{name}_start"] = np.zeros((site.attributes.units, last - first), np.int32)
        return made

    @abstractmethod
    def matrix(self, name: str, matrix: Array, count: int) -> dict[str, Array]:
        """The stored form of weights [inputs, sums], `count` sums per unit."""

    @abstractmethod
    def compute(self, w: Writer, names: Names, part: Part, source: str, units: int) -> None:
        """Prints the computation of all sums of a part into `<its name>_sums`."""

    def demand(self, site: Site[Recurrent], packed: dict[str, Array], held: int = 1) -> Demand:
        made = super().demand(site, packed, held)
        return replace(made, scratch=made.scratch + 2 * 4 * site.attributes.gates * site.attributes.units)

    def before_units(self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int) -> None:
        super().before_units(w, site, names, parts, held)
        units = site.attributes.units
        for number, part in enumerate(parts):
            at = behind(site, held) + 2 * number * len(part.sums) * units
            w(f"int32_t *{part.name}_sums = (int32_t *)({names.scratch} + {at});")
            self.compute(w, names, part, source(part), units)

    def begun(self, w: Writer, names: Names, part: Part, kind: str) -> None:
        part.declare(w, f"{part.name}_sums", kind)


@dataclass(frozen=True)
class NarrowSums(WaitingSums):
    """Weights of four bits, or of few values."""

    code: Code = FOUR_BITS

    def accepts(self, site: Site[Recurrent]) -> str | None:
        refused = super().accepts(site)
        parts = both_products(site) if refused is None else ()
        return refused or next(filter(None, (self.code.refused(part.weights) for part in parts)), None)

    def matrix(self, name: str, matrix: Array, count: int) -> dict[str, Array]:
        return self.code.packed(name, matrix, self.code.block_of(matrix.shape[1]))

    def compute(self, w: Writer, names: Names, part: Part, source: str, units: int) -> None:
        self.code.call(w, names, part.name, source, f"{part.name}_sums", part.size, len(part.sums) * units)


@dataclass(frozen=True)
class SparsePairSums(WaitingSums):
    """Two inputs of two sums share a word of weights; other sums take inputs one by one."""

    form: Form = Form(True, 2, 4, 2)

    def accepts(self, site: Site[Recurrent]) -> str | None:
        return super().accepts(site) or self.form.refused(site)

    def matrix(self, name: str, matrix: Array, count: int) -> dict[str, Array]:
        stored, found = self.form.stored(name, matrix, count)
        if not self.form.shared:
            return stored | {name: found.values}
        values = found.values.transpose(0, 2, 1)
        values = values.reshape(-1, 2, found.rows) if self.form.depth == 1 else values
        twos = np.pad(values, ((0, 0), (0, 0), (0, found.rows % 2))).reshape(len(values), 2, -1, 2)
        return stored | {name: np.ascontiguousarray(twos.transpose(0, 2, 1, 3)).reshape(-1).view(np.int32)}

    def compute(self, w: Writer, names: Names, part: Part, source: str, units: int) -> None:
        routine, bill = self._routine(part, len(part.sums))
        w.bill(CALL_CYCLES)
        w.add(bill.times(units))
        given = [names.packed[f"{part.name}{what}"] for what in ("_counts", "_steps", "", "_start")]
        w(f"{w.call(routine, source, *given, f'{part.name}_sums', str(units))};")

    def _routine(self, part: Part, count: int) -> tuple[Instruction, OpCounts]:
        """The routine, and the cost of a unit."""
        form, w = self.form, Writer("{prefix}")
        with w.loop("unit", "units", trips=1):
            for group in w.each([range(count)] if form.shared else [[one] for one in range(count)]):
                self._group(w, part, group)
            w(f"start += {count};")
            w(f"sums += {count};")
            w.bill(2)
        kind = f"{form.counts(part.size)}_t"
        weights = "int32_t" if form.shared else "int8_t"
        head = (
            f"void {{name}}(const int16_t *from, const {kind} *counts, const uint8_t *steps, const {weights} *k, "
            "const int32_t *start, int32_t *sums, int32_t units)"
        )
        rows = f"{count}x{form.depth}" if form.shared else f"{count}_apart"
        name = f"sparse_sums_{rows}_{form.turn}_{kind.removesuffix('_t')}"
        return w.routine(name, head), w.counts

    def _group(self, w: Writer, part: Part, group: Sequence[int]) -> None:
        for one in group:
            w(w.use(c99.LOAD_AS, "int32_t", f"sum{one}", f"start[{one}]"))
        w("const int16_t *at = from;")
        w("int32_t left = *counts;")
        w("counts += 1;")
        w.bill(4, 1)
        with w.block("for (; left > 0; --left)"), w.trips(self.form.average(part, len(group))):
            if self.form.shared:
                self._turn(w, group)
            else:
                w(w.use(STEP, "steps"))
                w("steps += 1;")
                w(w.use(MULTIPLY, f"sum{group[0]}", "*at * *k"))
                w("k += 1;")
            w.bill(LOOP_CYCLES if self.form.shared else 3)
        for one in group:
            w(w.use(c99.STORE, f"sums[{one}]", f"sum{one}"))

    def _turn(self, w: Writer, group: Sequence[int]) -> None:
        form, words = self.form, -(-len(group) // 2)
        if form.turn == 4:
            w(w.use(c99.LET, "apart", DSP.call(w, "load_bytes", "(const int8_t *)steps", of=(4,))))
        pairs = form.turn * form.depth // 2
        for pair in w.each(range(pairs)):
            self._pair(w, pair)
            self._words(w, group, pair * words)
        w(w.use(ONWARD, "steps", str(form.turn)))
        w(w.use(ONWARD, "k", str(pairs * words)))

    def _pair(self, w: Writer, pair: int) -> None:
        """Declares x: two inputs, from one place or two."""
        places = 2 // self.form.depth
        for place in range(pair * places, (pair + 1) * places):
            if self.form.turn == 4:
                w(f"at = {DSP.call(w, 'p_step16', 'at', 'apart', of=(place,))};")
            else:
                w(w.use(STEP, f"(steps + {place})"))
            if places == 2:
                w(w.use(HALF, f"x{place}", "at"))
        both = "p_load" if places == 1 else "p_low_halves"
        operands = ["at"] if places == 1 else [f"x{2 * pair}", f"x{2 * pair + 1}"]
        w(w.use(c99.LET, "x", DSP.call(w, both, *operands)))

    def _words(self, w: Writer, group: Sequence[int], at: int) -> None:
        """The sums' weights for a pair of inputs, two sums per word."""
        for index in range(0, len(group), 2):
            place, four = at + index // 2, f"four{index // 2}"
            if index % 4 == 0 and index + 2 < len(group):
                w(f"int32_t four{index // 2 + 1};")
                loaded = DSP.call(w, "load_two", f"k + {place}", f"&four{index // 2 + 1}")
                w(w.use(c99.LET, four, loaded))
            elif index % 4 == 0:
                w(w.use(HALF, four, f"(k + {place})"))
            for half, one in zip(("even", "odd"), group[index : index + 2], strict=False):
                weights = DSP.call(w, f"p_{half}_bytes", four)
                w(f"sum{one} = {DSP.call(w, 'p_dot', 'x', weights, f'sum{one}')};")

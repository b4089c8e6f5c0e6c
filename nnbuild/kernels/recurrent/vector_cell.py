"""The steps of an integer cell in vectors of units.

All gates come first, in their sums' place; then each vector of units takes from there what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vector_functions import FINE
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.lanes.gathered_functions import looked_up
from nnbuild.kernels.lanes.rounded_arithmetic import InVectors
from nnbuild.kernels.lanes.rounded_functions import rule_within
from nnbuild.kernels.recurrent.integer_cells import Part, bounds_of, largest_of
from nnbuild.kernels.recurrent.scalar_cell import Gate, ScalarCell
from nnbuild.kernels.recurrent.vector_sums import CellSums
from nnbuild.numeric.rounding import INT32
from nnbuild.ops.activation_rules import Table
from nnbuild.ops.recurrent import Recurrent, rules_of
from nnbuild.ops.recurrent_rules import LARGEST, Curve, Rules, Smooth
from nnbuild.ops.site import Site

DOUBLED, UPPER = 31, 32
"""The bits of a product that the upper half of its double leaves out, and its own upper half."""


@dataclass(frozen=True)
class VectorCell(ScalarCell):
    """The lanes are `count` units from `unit` on. Numbers are vectors, whose other lanes do not matter. `places` are
    the arrays of sums, and of the gates that were made of them."""

    sums: CellSums
    count: int = 0
    places: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def refused(site: Site[Recurrent]) -> str | None:
        """Why its numbers do not fit 32 bits, if they do not."""
        rules, gated = rules_of(site), site.attributes.gates > 1
        curves = [curve for curve in (rules.gate if gated else None, rules.value, rules.shown) if curve is not None]
        if not all(isinstance(c.rule, Smooth | Table) or rule_within(c.rule, (-c.limit, c.limit)) for c in curves):
            return "its functions have no tables and are no lines"
        of_state = largest_of(rules.of_state)
        recalled = (rules.gate.most * of_state >> rules.gate.power) + 1 if gated else of_state
        if largest_of(rules.of_input) + recalled > INT32[1]:
            return "its sums have more than 32 bits"
        if gated and rules.gate.most > rules.one:
            return "its gates open beyond 1"
        if rules.shown is not None:
            fits = rules.opened - min(rules.hidden_power, rules.cell_power) <= DOUBLED
            return None if fits else "its values have more than 32 bits"
        blends = rules.finer == 0 or shifts_of(UPPER - rules.gate.power, (rules.one, _farthest(rules))) is not None
        return None if blends and _farthest(rules) <= INT32[1] else "its values have more than 32 bits"

    def end_step(self) -> None:
        """Nothing has waited."""

    def each_unit(
        self, parts: tuple[Part, Part], gates: Sequence[Gate], body: Callable[[ScalarCell], None], held: int = 1
    ) -> None:
        w, v, units = self.w, self.sums.v, self.site.attributes.units
        self.sums.before_units(w, self.site, self.names, parts, held)
        stride = self.sums.stride(self.site)
        summed = {
            name: f"{part.name}_sums + {index * stride}" for part in parts for index, name in enumerate(part.sums)
        }
        for gate, count in _alike(gates, list(parts[0].sums)):
            with w.loop("unit", count * stride, step=v.lanes):
                replace(self, places=summed).gate(gate)
                w(f"{v.call(w, 'store', f'{summed[gate.first]} + unit', gate.name)};")
        places = summed | {gate.name: summed[gate.first] for gate in gates}
        for place, count in in_vectors(w, v.lanes, units, "unit"):
            if place != "unit":
                w(f"const int32_t unit = {place};")
            body(replace(self, count=count, places=places))

    def gate(self, gate: Gate) -> None:
        v, limit = self.sums.v, gate.curve.limit
        value = v.call(self.w, "add", self.number(gate.first), self.number(gate.second))
        v.let(self.w, "sums", gate.name, value, "")
        if gate.largest > limit:
            self._bound(gate.name, -limit, limit)
        self.apply(gate.curve, gate.name, gate.table)

    def apply(self, curve: Curve, variable: str, table: str) -> None:
        w = self.w
        if isinstance(curve.rule, Smooth):
            function = FINE[curve.rule.function](self.sums.v)
            w(f"{variable} = {w.call(function, self.names.packed['sigmoid'], variable)};")
            return
        with w.block(""):
            if (value := self._value(curve, variable, f"{table}_table")) != variable:
                w(f"{variable} = {value};")
        self._bound(variable, *bounds_of(curve))

    def _value(self, curve: Curve, variable: str, table: str) -> str:
        w, v = self.w, self.sums.v
        if (rule := rule_within(curve.rule, (-curve.limit, curve.limit))) is not None:
            return rule.apply(w, InVectors(v), variable)
        return looked_up(w, v, self.names.packed[table], variable)

    def number(self, name: str) -> str:
        return self.sums.v.call(self.w, "load", f"{self.places[name]} + unit") if name in self.places else name

    def state(self, name: str) -> str:
        w, v = self.w, self.sums.v
        if name == self.states[0]:
            return v.call(w, "widen_words", f"{name} + unit", of=(self.count,))
        if name not in self.states or self.count == v.lanes:
            return v.call(w, "load", f"{name} + unit")
        w(f"int32_t rest[{v.lanes}] = {{0}};")
        with w.loop("i", self.count):
            w(w.use(c99.STORE, "rest[i]", f"{name}[unit + i]"))
        return v.call(w, "load", "rest")

    def store(self, array: str, value: str) -> None:
        w, v = self.w, self.sums.v
        if array not in self.states or self.count == v.lanes:
            w(f"{v.call(w, 'store', f'{array} + unit', value)};")
            return
        w(f"{v.call(w, 'store', 'rest', value)};")
        with w.loop("i", self.count):
            w(w.use(c99.STORE, f"{array}[unit + i]", "rest[i]"))

    def store_held(self, array: str, value: str) -> None:
        self.sums.v.let(self.w, "sums", "held", value, "")
        self._bound("held", -LARGEST, LARGEST)
        self.store(array, "held")

    def coarser(self, number: str, amount: int) -> str:
        if amount == 0:
            return number
        w, v = self.w, self.sums.v
        half = v.call(w, "and", v.call(w, "shift_right", number, of=(amount - 1,)), 1)
        return v.call(w, "add", v.call(w, "shift_right", number, of=(amount,)), half)

    def product(self, first: str, second: str, amount: int, most: tuple[int, int]) -> str:
        w, v = self.w, self.sums.v
        if (shifts := shifts_of(DOUBLED - amount, most)) is not None:
            factors = [_left(w, v, value, by) for value, by in zip((first, second), shifts, strict=True)]
            return v.call(w, "high_rounded", *factors)
        v.let(w, "sums", "factor", first)
        v.let(w, "sums", "other", second)
        low = _left(w, v, v.call(w, "and", "factor", (1 << amount) - 1), DOUBLED - amount)
        whole = v.call(w, "mul", v.call(w, "shift_right", "factor", of=(amount,)), "other")
        return v.call(w, "add", v.call(w, "high_rounded", low, "other"), whole)

    def declare_product(self, name: str, first: str, second: str, amount: int, most: tuple[int, int]) -> None:
        self.sums.v.let(self.w, "sums", name, self.product(first, second, amount, most))

    def add_up(self, name: str, first: str, second: str) -> None:
        """The first number, which may be the least of 32 bits, is bounded so that the sum cannot overflow."""
        w, v = self.w, self.sums.v
        v.let(w, "sums", "more", second)
        v.let(w, "sums", name, first, "")
        for outer, bound, inner, most in (("min", INT32[1], "max", 0), ("max", -INT32[1], "min", 1)):
            edge = v.call(w, "sub", bound, v.call(w, inner, "more", most))
            w(f"{name} = {v.call(w, outer, name, edge)};")
        w(f"{name} = {v.call(w, 'add', name, 'more')};")

    def show(self, name: str, curve: Curve, number: str, amount: int) -> None:
        self.sums.v.let(self.w, "sums", name, self.coarser(number, amount), "")
        self._bound(name, -curve.limit, curve.limit)
        self.apply(curve, name, "activation")

    def blend(self, keep: str, old: str, fresh: str, rules: Rules) -> None:
        """fresh + keep * (old - fresh), where only the last step rounds."""
        w, v, finer, point = self.w, self.sums.v, rules.finer, rules.gate.power
        v.let(w, "sums", "fresh", fresh)
        v.let(w, "sums", "apart", v.call(w, "sub", _left(w, v, old, finer), "fresh"))
        bounds = rules.gate.most, _farthest(rules)
        if finer == 0:
            self.end_unit(v.call(w, "add", "fresh", self.product(keep, "apart", point, bounds)))
            return
        shifts = shifts_of(UPPER - point, bounds)
        assert shifts is not None
        factors = [_left(w, v, value, by) for value, by in zip((keep, "apart"), shifts, strict=True)]
        raised = v.call(w, "add", v.call(w, "add", "fresh", 1 << (finer - 1)), v.call(w, "upper", *factors))
        self.end_unit(v.call(w, "shift_right", raised, of=(finer,)))

    def end_unit(self, value: str) -> None:
        w, v, attributes = self.w, self.sums.v, self.site.attributes
        v.let(w, "sums", "hidden", value)
        places = [f"{self.states[0]} + unit"]
        if attributes.sequences:
            places.append(f"{self.names.outputs[0]} + t * {attributes.units} + unit")
        for place in places:
            w(f"{v.call(w, 'store_words', place, 'hidden', of=(-LARGEST, LARGEST, self.count))};")

    def _bound(self, variable: str, low: int, high: int) -> None:
        for operation, bound in (("max", low), ("min", high)):
            self.w(f"{variable} = {self.sums.v.call(self.w, operation, variable, bound)};")


def _alike(gates: Sequence[Gate], order: list[str]) -> Iterator[tuple[Gate, int]]:
    """The first of several gates with one curve, whose sums follow each other, and their number."""
    placed = [(gate, order.index(gate.first) - index) for index, gate in enumerate(gates)]
    for _, found in groupby(placed, key=lambda each: (each[1], each[0].table)):
        alike = [gate for gate, _ in found]
        yield alike[0], len(alike)


def _farthest(rules: Rules) -> int:
    """The bound of the distance of an old state from a new value."""
    return (LARGEST << rules.finer) + rules.value.most


def shifts_of(bits: int, most: tuple[int, int]) -> tuple[int, int] | None:
    """How far two factors of these bounds are shifted to the left, together by so many bits."""
    first, second = (DOUBLED - bound.bit_length() for bound in most)
    left = min(first, bits)
    return (left, bits - left) if 0 <= bits - left <= second else None


def _left(w: Writer, v: Vectors, value: str, by: int) -> str:
    return v.call(w, "shift_left", value, of=(by,)) if by else value

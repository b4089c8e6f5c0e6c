"""The steps of an integer cell, one unit at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names
from nnbuild.kernels.parts.integer_steps import declare, value_of
from nnbuild.kernels.recurrent.cells import state_names, time_steps
from nnbuild.kernels.recurrent.integer_cells import Part, Sums, bounds_of
from nnbuild.numeric.rounding import INT32
from nnbuild.ops import activation_rules
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import LARGEST, Curve, Rules, Smooth
from nnbuild.ops.site import Site


class Gate(NamedTuple):
    """`curve` of the sum of two numbers of a unit, whose sum is at most `largest`; `table` names its table."""

    name: str
    first: str
    second: str
    curve: Curve
    largest: int
    table: str = "gate"


@dataclass(frozen=True)
class ScalarCell:
    """Prints an integer layer. A number is a C expression; `most` are bounds of two factors."""

    sums: Sums
    w: Writer
    site: Site[Recurrent]
    names: Names

    @staticmethod
    def refused(site: Site[Recurrent]) -> str | None:
        """Why the arithmetic of a site cannot be printed, if it cannot."""
        return None

    @property
    def states(self) -> Sequence[str]:
        return state_names(self.site, self.names)

    @contextmanager
    def time_steps(self) -> Iterator[None]:
        """The loop over time, as for floats: a new hidden state waits in scratch until the end of its step."""
        w, names, attributes = self.w, self.names, self.site.attributes
        with w.block("if (begin == 0)"), w.loop("unit", attributes.units):
            given = attributes.initial(names.inputs)
            for index, state in enumerate(self.states):
                w(w.use(c99.STORE, f"{state}[unit]", f"{given[index]}[unit]" if given else "0"))
        with time_steps(w, self.site, names):
            yield
            self.end_step()

    def end_step(self) -> None:
        w, attributes, fresh = self.w, self.site.attributes, f"(int16_t){self.names.scratch}[unit]"
        with w.loop("unit", attributes.units):
            w(w.use(c99.STORE, f"{self.states[0]}[unit]", fresh))
            if attributes.sequences:
                place = f"{self.names.outputs[0]}[t * {attributes.units} + unit]"
                w(w.use(c99.STORE, place, fresh))

    def each_unit(
        self, parts: tuple[Part, Part], gates: Sequence[Gate], body: Callable[[ScalarCell], None], held: int = 1
    ) -> None:
        """Every unit's gates, and then the body; `held` numbers per unit are kept in scratch."""
        self.sums.before_units(self.w, self.site, self.names, parts, held)
        with self.w.loop("unit", self.site.attributes.units):
            for part in parts:
                self.sums.weighted(self.w, self.names, part)
            for gate in gates:
                self.gate(gate)
            body(self)

    def gate(self, gate: Gate) -> None:
        """Declares a gate, from a sum that is clamped to the function's domain."""
        w, curve = self.w, gate.curve
        if gate.largest > INT32[1]:
            value = hold(w, f"(int64_t){gate.first} + {gate.second}", str(curve.limit))
            declare(w, gate.name, value, "int32_t")
        else:
            declare(w, gate.name, f"(int32_t)({gate.first} + {gate.second})", "int32_t")
            if gate.largest > curve.limit:
                c99.bound(w, (-curve.limit, curve.limit), gate.name)
        self.apply(curve, gate.name, gate.table)

    def apply(self, curve: Curve, variable: str, table: str) -> None:
        """Replaces a variable, clamped to the function's limit, by the function's value."""
        w, names = self.w, self.names
        match curve.rule:
            case Smooth(function):
                w(w.use(c99.STORE, variable, w.helper(f"fine_{function}", names.packed["sigmoid"], variable)))
                return
            case activation_rules.Table():
                w(w.use(c99.STORE, variable, w.helper("interpolate16", names.packed[f"{table}_table"], variable)))
            case activation_rules.Gate() | activation_rules.Whole():
                with w.block(""):
                    w(w.use(c99.STORE, variable, value_of(w, curve.rule, variable)))
            case _:
                if (value := value_of(w, curve.rule, variable)) != variable:
                    w(w.use(c99.STORE, variable, value))
        c99.bound(w, bounds_of(curve), variable)

    def number(self, name: str) -> str:
        """A unit's number that `each_unit` or `gate` gave a name."""
        return name

    def state(self, name: str) -> str:
        return f"{name}[unit]"

    def product(self, first: str, second: str, amount: int, most: tuple[int, int]) -> str:
        """The same of a product."""
        return _shifted(f"(int64_t){first} * {second}", amount)

    def coarser(self, number: str, amount: int) -> str:
        """A number shifted to the right, to nearest."""
        return _shifted(f"(int64_t){number}", amount)

    def declare_product(self, name: str, first: str, second: str, amount: int, most: tuple[int, int]) -> None:
        declare(self.w, name, self.product(first, second, amount, most), "const int64_t")

    def add_up(self, name: str, first: str, second: str) -> None:
        """Declares a sum, clamped to 32 bits."""
        declare(self.w, name, hold(self.w, f"({first}) + ({second})", "INT32_MAX"))

    def show(self, name: str, curve: Curve, number: str, amount: int) -> None:
        """Declares the function of a number that has `amount` bits more than its argument."""
        value = hold(self.w, self.coarser(number, amount), str(curve.limit))
        declare(self.w, name, value, "int32_t")
        self.apply(curve, name, "activation")

    def blend(self, keep: str, old: str, fresh: str, rules: Rules) -> None:
        """The new hidden state: keep * old + (1 - keep) * fresh."""
        kept = f"(int64_t){keep} * {old}" + (f" * {1 << rules.finer}" if rules.finer else "")
        value = f"{kept} + (int64_t)({rules.one} - {keep}) * {fresh}"
        self.end_unit(_shifted(value, rules.gate.power + rules.finer))

    def end_unit(self, value: str) -> None:
        """Keeps the new hidden state."""
        held = hold(self.w, value, str(LARGEST))
        self.w(self.w.use(c99.STORE, f"{self.names.scratch}[unit]", f"(int16_t){held}"))

    def store(self, array: str, value: str) -> None:
        self.w(self.w.use(c99.STORE, f"{array}[unit]", value))

    def store_held(self, array: str, value: str) -> None:
        """Stores a number clamped to a state's range."""
        self.store(array, hold(self.w, value, str(LARGEST)))


def _shifted(value: str, amount: int) -> str:
    """Shifts a number of 64 bits to the right; halves are rounded up."""
    return f"({value} + {1 << (amount - 1)}) >> {amount}" if amount else value


def hold(w: Writer, value: str, limit: str) -> str:
    return w.helper("hold", value, limit)

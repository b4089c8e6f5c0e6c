"""LSTM: the four sums of a unit together, then its gates."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names, on_any_floats
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.recurrent import integer_cells
from nnbuild.kernels.recurrent.cells import Cells, Step, state_names
from nnbuild.kernels.recurrent.integer_cells import (
    Sums,
    both_products,
    each_unit,
    hold,
    largest_of,
    parts_of,
    shifted,
    summed,
    time_steps,
)
from nnbuild.kernels.recurrent.integer_variants import integer_kernels
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.site import Site

SUMS = ("let_in", "forget", "candidate", "let_out")
GATES = (("entry", "let_in"), ("keep", "forget"), ("exit", "let_out"))


def _emit_integers(sums: Sums, w: Writer, site: Site[LSTM], names: Names) -> None:
    rules, products = rules_of(site), both_products(site)
    hidden, memory = state_names(site, names)
    point, value_point = rules.gate.power, rules.value.power
    with time_steps(w, site, names), each_unit(sums, w, site, names, parts_of(site, SUMS, hidden, products)):
        for name in SUMS:
            curve, table = (rules.value, "activation") if name == "candidate" else (rules.gate, "gate")
            summed(w, name, f"{name}_x", f"{name}_h", curve, largest_of(*products))
            integer_cells.apply(w, names, curve, name, table)
        kept = shifted(f"(int64_t)forget * {memory}[unit]", point)
        added = shifted("(int64_t)let_in * candidate", point + value_point - rules.cell_power)
        declare(w, "cell", hold(w, f"({kept}) + ({added})", "INT32_MAX"))
        assert rules.shown is not None
        declare(w, "shown", hold(w, shifted("(int64_t)cell", rules.shown_shift), str(rules.shown.limit)), "int32_t")
        integer_cells.apply(w, names, rules.shown, "shown", "activation")
        result = shifted("(int64_t)let_out * shown", point + value_point - rules.hidden_power)
        w(w.use(c99.STORE, f"{memory}[unit]", "cell"))
        w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))


class _Floats(Cells[LSTM]):
    sums = 4

    def step(self, step: Step[LSTM]) -> None:
        w, v, attributes, (_, memory) = step.w, step.floats, step.site.attributes, step.states

        def gates(vector: int, place: str, count: int) -> None:
            for gate, total in GATES:
                step.apply(gate, attributes.gate_activation, f"{total}{vector}")
            step.apply("proposal", attributes.activation, f"candidate{vector}")
            v.declare(w, "old", v.load(w, f"{memory} + {place}", count))
            v.declare(w, "cell", v.use(w, "mul", "keep", "old"))
            v.accumulate(w, "cell", "entry", "proposal")
            v.store(w, f"{memory} + {place}", "cell", count)
            step.apply("shown", attributes.activation, "cell")
            v.store(w, f"{step.fresh} + {place}", v.use(w, "mul", "exit", "shown"), count)

        step.each_unit(gates, SUMS)


VARIANTS = (
    *on_any_floats(_Floats),
    *integer_kernels(Sums.all_gates, _emit_integers),
)

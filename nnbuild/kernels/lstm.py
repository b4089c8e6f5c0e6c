"""LSTM: the four sums of a unit together, then its gates."""

from __future__ import annotations

from nnbuild.kernels.recurrent.cells import Cells, Step, on_floats
from nnbuild.kernels.recurrent.integer_cells import Sums, both_products, largest_of, parts_of
from nnbuild.kernels.recurrent.integer_variants import integer_kernels
from nnbuild.kernels.recurrent.scalar_cell import Gate, ScalarCell
from nnbuild.numeric.rounding import INT32
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import rules_of

SUMS = ("let_in", "forget", "candidate", "let_out")
GATES = (("entry", "let_in"), ("keep", "forget"), ("exit", "let_out"))


def _emit_integers(cell: ScalarCell) -> None:
    rules, products = rules_of(cell.site), both_products(cell.site)
    (hidden, memory), one = cell.states, rules.one
    curves = {name: (rules.gate, "gate") for name in SUMS} | {"candidate": (rules.value, "activation")}
    largest = largest_of(*products)
    gates = [Gate(name, f"{name}_x", f"{name}_h", curve, largest, table) for name, (curve, table) in curves.items()]

    def unit(cell: ScalarCell) -> None:
        assert rules.shown is not None
        let_in, forget, candidate, let_out = map(cell.number, SUMS)
        kept = cell.product(forget, cell.state(memory), rules.gate.power, (one, INT32[1]))
        most, amount = (one, rules.value.most), rules.opened
        cell.add_up("cell", kept, cell.product(let_in, candidate, amount - rules.cell_power, most))
        cell.show("shown", rules.shown, "cell", rules.shown_shift)
        cell.store(memory, "cell")
        cell.end_unit(cell.product(let_out, "shown", amount - rules.hidden_power, most))

    with cell.time_steps():
        cell.each_unit(parts_of(cell.site, SUMS, hidden, products), gates, unit)


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
    *on_floats(_Floats),
    *integer_kernels(Sums.all_gates, _emit_integers),
)

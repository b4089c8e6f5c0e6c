"""SimpleRNN: one sum and one function per unit."""

from __future__ import annotations

from nnbuild.kernels.recurrent.cells import Cells, Step, on_floats
from nnbuild.kernels.recurrent.integer_cells import Sums, both_products, largest_of, parts_of
from nnbuild.kernels.recurrent.integer_variants import integer_kernels
from nnbuild.kernels.recurrent.scalar_cell import Gate, ScalarCell
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.simple_rnn import SimpleRNN


def _emit_integers(cell: ScalarCell) -> None:
    rules, products = rules_of(cell.site), both_products(cell.site)
    (hidden,) = cell.states
    gate = Gate("shown", "of_x", "of_h", rules.value, largest_of(*products), "activation")

    def unit(cell: ScalarCell) -> None:
        cell.end_unit(cell.coarser(cell.number("shown"), rules.finer))

    with cell.time_steps():
        cell.each_unit(parts_of(cell.site, ("of",), hidden, products), [gate], unit)


class _Floats(Cells[SimpleRNN]):
    sums = 1

    def step(self, step: Step[SimpleRNN]) -> None:
        def shown(vector: int, place: str, count: int) -> None:
            step.apply("shown", step.site.attributes.activation, f"sum{vector}")
            step.floats.store(step.w, f"{step.fresh} + {place}", "shown", count)

        step.each_unit(shown, ("sum",))


VARIANTS = (
    *on_floats(_Floats),
    *integer_kernels(Sums.all_gates, _emit_integers),
)

"""SimpleRNN: one sum and one function per unit."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names, on_any_floats
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
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import Site


def _emit_integers(sums: Sums, w: Writer, site: Site[SimpleRNN], names: Names) -> None:
    rules, products = rules_of(site), both_products(site)
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names), each_unit(sums, w, site, names, parts_of(site, ("of",), hidden, products)):
        summed(w, "shown", "of_x", "of_h", rules.value, largest_of(*products))
        integer_cells.apply(w, names, rules.value, "shown", "activation")
        result = shifted("(int64_t)shown", rules.value.power - rules.hidden_power)
        w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))


class _Floats(Cells[SimpleRNN]):
    sums = 1

    def step(self, step: Step[SimpleRNN]) -> None:
        def shown(vector: int, place: str, count: int) -> None:
            step.apply("shown", step.site.attributes.activation, f"sum{vector}")
            step.floats.store(step.w, f"{step.fresh} + {place}", "shown", count)

        step.each_unit(shown, ("sum",))


VARIANTS = (
    *on_any_floats(_Floats),
    *integer_kernels(Sums.all_gates, _emit_integers),
)

"""LSTM in integers: the four sums of a unit together, then its gates."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent_integer as shared
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.integers import declare
from nnbuild.kernels.recurrent import state_names, time_steps
from nnbuild.kernels.recurrent_integer import PLAIN, Sums, apply, hold, shifted
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = shared.accepts

SUMS = ("let_in", "forget", "candidate", "let_out")


def demand(site: Site[LSTM], sums: Sums = PLAIN) -> Demand:
    rules = rules_of(site)
    packed = sums.packed(site, "kernel", rules.of_input) | sums.packed(site, "recurrent", rules.of_state)
    return sums.demand(site, packed)


def emit(w: Writer, site: Site[LSTM], names: Names, sums: Sums = PLAIN) -> None:
    attributes, rules = site.attributes, rules_of(site)
    hidden, memory = state_names(site, names)
    point, value_point = rules.gate.power, rules.value.power
    with time_steps(w, site, names):
        sums.begin_step(w, site, names)
        with w.loop("unit", attributes.units):
            of_x, of_h = [f"{name}_x" for name in SUMS], [f"{name}_h" for name in SUMS]
            sums.weighted(w, names, of_x, ("x", site.shape()[1]), "kernel", rules.of_input)
            sums.weighted(w, names, of_h, (hidden, attributes.units), "recurrent", rules.of_state)
            for name, first, second in zip(SUMS, of_x, of_h, strict=True):
                curve, table = (rules.value, "activation") if name == "candidate" else (rules.gate, "gate")
                sums.total(w, name, first, second, curve)
                apply(w, names, curve, name, table)
            kept = shifted(f"(int64_t)forget * {memory}[unit]", point)
            added = shifted("(int64_t)let_in * candidate", point + value_point - rules.cell_power)
            declare(w, "cell", hold(w, f"({kept}) + ({added})", "INT32_MAX"))
            assert rules.shown is not None
            declare(w, "shown", hold(w, shifted("(int64_t)cell", rules.shown_shift), str(rules.shown.limit)), "int32_t")
            apply(w, names, rules.shown, "shown", "activation")
            result = shifted("(int64_t)let_out * shown", point + value_point - rules.hidden_power)
            w(w.use(c99.STORE, f"{memory}[unit]", "cell"))
            w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))

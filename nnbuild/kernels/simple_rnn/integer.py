"""SimpleRNN in integers."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent_integer as shared
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.recurrent import state_names, time_steps
from nnbuild.kernels.recurrent_integer import PLAIN, Sums, apply, hold, shifted
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = shared.accepts


def demand(site: Site[SimpleRNN], sums: Sums = PLAIN) -> Demand:
    rules = rules_of(site)
    packed = sums.packed(site, "kernel", rules.of_input) | sums.packed(site, "recurrent", rules.of_state)
    return sums.demand(site, packed)


def emit(w: Writer, site: Site[SimpleRNN], names: Names, sums: Sums = PLAIN) -> None:
    attributes, rules = site.attributes, rules_of(site)
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names):
        sums.begin_step(w, site, names)
        with w.loop("unit", attributes.units):
            sums.weighted(w, names, ["of_x"], ("x", site.shape()[1]), "kernel", rules.of_input)
            sums.weighted(w, names, ["of_h"], (hidden, attributes.units), "recurrent", rules.of_state)
            sums.total(w, "shown", "of_x", "of_h", rules.value)
            apply(w, names, rules.value, "shown", "activation")
            result = shifted("(int64_t)shown", rules.value.power - rules.hidden_power)
            w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))

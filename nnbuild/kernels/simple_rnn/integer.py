"""SimpleRNN in integers."""

from __future__ import annotations

from nnbuild.isa import c99
from nnbuild.kernels import recurrent_integer as shared
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.recurrent import attributes_of, state_names, time_steps
from nnbuild.kernels.recurrent_integer import apply, hold, packed_products, shifted, total, weighted
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.site import Site
from nnbuild.writer import Writer

needs: frozenset[str] = frozenset()
accepts = shared.accepts


def demand(site: Site) -> Demand:
    rules = rules_of(site)
    packed = packed_products(site, "kernel", rules.of_input) | packed_products(site, "recurrent", rules.of_state)
    return shared.demand(site, packed)


def emit(w: Writer, site: Site, names: Names) -> None:
    attributes, rules = attributes_of(site), rules_of(site)
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names), w.loop("unit", attributes.units):
        weighted(w, names, ["of_x"], ("x", site.shape()[1]), "kernel", rules.of_input.narrow)
        weighted(w, names, ["of_h"], (hidden, attributes.units), "recurrent", rules.of_state.narrow)
        total(w, "shown", "of_x", "of_h", rules.value)
        apply(w, names, rules.value, "shown", "activation")
        result = shifted("(int64_t)shown", rules.value.power - rules.hidden_power)
        w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))

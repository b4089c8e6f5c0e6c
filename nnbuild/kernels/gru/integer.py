"""GRU in integers, in both of Keras' forms."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent_integer as shared
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.integers import declare
from nnbuild.kernels.recurrent import state_names, time_steps
from nnbuild.kernels.recurrent_integer import PLAIN, Sums, apply, hold, shifted
from nnbuild.model.graph import Array
from nnbuild.ops.gru import GRU
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST, Rules
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = shared.accepts

GATES, CANDIDATE = slice(0, 2), slice(2, 3)


def demand(site: Site[GRU], sums: Sums = PLAIN) -> Demand:
    rules = rules_of(site)
    pairs = {"kernel": rules.of_input, "recurrent": rules.of_state}
    packed: dict[str, Array] = {}
    for name, products in pairs.items():
        if site.attributes.reset_after:
            packed |= sums.packed(site, name, products)
        else:
            packed |= sums.packed(site, name, products, GATES)
            packed |= sums.packed(site, f"{name}_candidate", products, CANDIDATE)
    if site.attributes.reset_after:
        return sums.demand(site, packed)
    return sums.demand(site, packed, 3, "int32")


def emit(w: Writer, site: Site[GRU], names: Names, sums: Sums = PLAIN) -> None:
    if site.attributes.reset_after:
        _reset_after(w, site, names, sums)
    else:
        _reset_before(w, site, names, sums)


def _gates(w: Writer, rules: Rules, names: Names, sums: Sums) -> None:
    """`update` and `reset` from their two parts each."""
    for name in ("update", "reset"):
        sums.total(w, name, f"{name}_x", f"{name}_h", rules.gate)
        apply(w, names, rules.gate, name, "gate")


def _blend(w: Writer, rules: Rules, update: str, hidden: str) -> str:
    """The new hidden state from the old one and the candidate."""
    finer = rules.value.power - rules.hidden_power
    old = f"(int64_t){update} * {hidden}[unit]" + (f" * {1 << finer}" if finer else "")
    fresh = f"{old} + (int64_t)({rules.one} - {update}) * candidate"
    return hold(w, shifted(fresh, rules.gate.power + finer), str(LARGEST))


def _reset_after(w: Writer, site: Site[GRU], names: Names, sums: Sums) -> None:
    attributes, rules = site.attributes, rules_of(site)
    (hidden,) = state_names(site, names)
    of_x, of_h = (["update_x", "reset_x", "candidate_x"], ["update_h", "reset_h", "candidate_h"])
    with time_steps(w, site, names):
        sums.begin_step(w, site, names)
        with w.loop("unit", attributes.units):
            sums.weighted(w, names, of_x, ("x", site.shape()[1]), "kernel", rules.of_input)
            sums.weighted(w, names, of_h, (hidden, attributes.units), "recurrent", rules.of_state)
            _gates(w, rules, names, sums)
            declare(w, "recalled", shifted("(int64_t)reset * candidate_h", rules.gate.power), "const int64_t")
            sums.total(w, "candidate", "candidate_x", "recalled", rules.value)
            apply(w, names, rules.value, "candidate", "activation")
            w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){_blend(w, rules, 'update', hidden)}"))


def _reset_before(w: Writer, site: Site[GRU], names: Names, sums: Sums) -> None:
    """The reset gate acts on the whole state before the candidate's product, so the gates of all units come first."""
    attributes, rules = site.attributes, rules_of(site)
    units, features = attributes.units, site.shape()[1]
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names):
        sums.begin_step(w, site, names)
        w(f"int32_t *updates = {names.scratch} + {units};")
        w(f"int32_t *recalled = {names.scratch} + {2 * units};")
        with w.loop("unit", units):
            sums.weighted(w, names, ["update_x", "reset_x"], ("x", features), "kernel", rules.of_input)
            sums.weighted(w, names, ["update_h", "reset_h"], (hidden, units), "recurrent", rules.of_state)
            _gates(w, rules, names, sums)
            kept = shifted(f"(int64_t)reset * {hidden}[unit]", rules.gate.power)
            w(w.use(c99.STORE, "updates[unit]", "update"))
            w(w.use(c99.STORE, "recalled[unit]", hold(w, kept, str(LARGEST))))
        with w.loop("unit", units):
            sums.weighted(w, names, ["candidate_x"], ("x", features), "kernel_candidate", rules.of_input)
            sums.weighted(w, names, ["candidate_h"], ("recalled", units), "recurrent_candidate", rules.of_state)
            sums.total(w, "candidate", "candidate_x", "candidate_h", rules.value)
            apply(w, names, rules.value, "candidate", "activation")
            w(w.use(c99.STORE, f"{names.scratch}[unit]", _blend(w, rules, "updates[unit]", hidden)))

"""LSTM in portable C: the four sums of a unit together, then its gates."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.recurrent import accumulate, apply, by_unit, declare_sums, state_names, time_steps
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float

SUMS = ("let_in", "forget", "candidate", "let_out")


def demand(site: Site[LSTM]) -> Demand:
    packed = {role: by_unit(site.constant(role), 4) for role in ("kernel", "recurrent")}
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias").reshape(4, -1).T
    return recurrent.demand(site, packed)


def emit(w: Writer, site: Site[LSTM], names: Names) -> None:
    attributes = site.attributes
    hidden, memory = state_names(site, names)
    with time_steps(w, site, names), w.loop("unit", attributes.units):
        declare_sums(w, SUMS, names.packed.get("bias"))
        accumulate(w, SUMS, "x", site.shape()[1], names.packed["kernel"])
        accumulate(w, SUMS, hidden, attributes.units, names.packed["recurrent"])
        apply(w, "entry", attributes.gate_activation, "let_in")
        apply(w, "keep", attributes.gate_activation, "forget")
        apply(w, "exit", attributes.gate_activation, "let_out")
        apply(w, "proposal", attributes.activation, "candidate")
        kept, added = c99.product(w, "keep", f"{memory}[unit]"), c99.product(w, "entry", "proposal")
        w(w.use(c99.LOAD, "cell", f"{kept} + {added}"))
        apply(w, "shown", attributes.activation, "cell")
        w(w.use(c99.STORE, f"{memory}[unit]", "cell"))
        w(w.use(c99.STORE, f"{names.scratch}[unit]", c99.product(w, "exit", "shown")))

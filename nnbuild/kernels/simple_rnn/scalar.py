"""SimpleRNN in portable C."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.recurrent import accumulate, apply, by_unit, declare_sums, state_names, time_steps
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[SimpleRNN]) -> Demand:
    packed = {role: by_unit(site.constant(role), 1) for role in ("kernel", "recurrent")}
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias")
    return recurrent.demand(site, packed)


def emit(w: Writer, site: Site[SimpleRNN], names: Names) -> None:
    attributes = site.attributes
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names), w.loop("unit", attributes.units):
        declare_sums(w, ("sum",), names.packed.get("bias"))
        accumulate(w, ("sum",), "x", site.shape()[1], names.packed["kernel"])
        accumulate(w, ("sum",), hidden, attributes.units, names.packed["recurrent"])
        apply(w, "shown", attributes.activation, "sum")
        w(w.use(c99.STORE, f"{names.scratch}[unit]", "shown"))

"""SimpleRNN in vectors of units."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.base.writer import Writer
from nnbuild.kernels import vector_recurrent as shared
from nnbuild.kernels.contract import Names
from nnbuild.kernels.recurrent import state_names
from nnbuild.kernels.vector_recurrent import (
    Units,
    accumulate,
    apply,
    blocks,
    declare_sums,
    each_vector,
    fresh_state,
    time_steps,
)
from nnbuild.model.graph import Array
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import Site

SUMS = ("sum",)


def _pack(site: Site[SimpleRNN], units: Units) -> Mapping[str, Array]:
    packed = {role: units.pack(site.constant(role), 1) for role in ("kernel", "recurrent")}
    if "bias" in site.constants:
        packed["bias"] = units.pack(site.constant("bias").reshape(1, -1), 1)
    return packed


def _emit(w: Writer, site: Site[SimpleRNN], names: Names, units: Units) -> None:
    attributes = site.attributes
    (hidden,) = state_names(site, names)
    fresh = fresh_state(site, names, units)

    def shown(vector: int, place: str, count: int) -> None:
        apply(w, units, "shown", attributes.activation, f"sum{vector}")
        units.floats.store(w, f"{fresh} + {place}", "shown", count)

    def block(real: int) -> None:
        declare_sums(w, units, SUMS, names.packed.get("bias"))
        accumulate(w, units, SUMS, ("x", site.shape()[1]), names.packed["kernel"])
        accumulate(w, units, SUMS, (hidden, attributes.units), names.packed["recurrent"])
        each_vector(w, units, real, shown)

    with time_steps(w, site, names, units):
        blocks(w, units, block)


VARIANTS = shared.variants(1, _pack, _emit)

"""LSTM in vectors of units: the sums of all four gates at once, then the gates."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.base.writer import Writer
from nnbuild.kernels import vector_recurrent as shared
from nnbuild.kernels.contract import Names
from nnbuild.kernels.lstm.scalar import SUMS
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
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.site import Site


def _pack(site: Site[LSTM], units: Units) -> Mapping[str, Array]:
    packed = {role: units.pack(site.constant(role), 4) for role in ("kernel", "recurrent")}
    if "bias" in site.constants:
        packed["bias"] = units.pack(site.constant("bias").reshape(1, -1), 4)
    return packed


def _emit(w: Writer, site: Site[LSTM], names: Names, units: Units) -> None:
    attributes, floats = site.attributes, units.floats
    hidden, memory = state_names(site, names)
    fresh = fresh_state(site, names, units)

    def gates(vector: int, place: str, count: int) -> None:
        apply(w, units, "entry", attributes.gate_activation, f"let_in{vector}")
        apply(w, units, "keep", attributes.gate_activation, f"forget{vector}")
        apply(w, units, "exit", attributes.gate_activation, f"let_out{vector}")
        apply(w, units, "proposal", attributes.activation, f"candidate{vector}")
        floats.declare(w, "old", floats.load(w, f"{memory} + {place}", count))
        kept, added = floats.use(w, "mul", "keep", "old"), floats.use(w, "mul", "entry", "proposal")
        floats.declare(w, "cell", floats.use(w, "add", kept, added))
        floats.store(w, f"{memory} + {place}", "cell", count)
        apply(w, units, "shown", attributes.activation, "cell")
        floats.store(w, f"{fresh} + {place}", floats.use(w, "mul", "exit", "shown"), count)

    def block(real: int) -> None:
        declare_sums(w, units, SUMS, names.packed.get("bias"))
        accumulate(w, units, SUMS, ("x", site.shape()[1]), names.packed["kernel"])
        accumulate(w, units, SUMS, (hidden, attributes.units), names.packed["recurrent"])
        each_vector(w, units, real, gates)

    with time_steps(w, site, names, units):
        blocks(w, units, block)


VARIANTS = shared.variants(4, _pack, _emit)

"""GRU in vectors of units, in both of Keras' forms."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.base.writer import Writer
from nnbuild.kernels import vector_recurrent as shared
from nnbuild.kernels.contract import Names
from nnbuild.kernels.gru.scalar import four_biases
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
from nnbuild.kernels.window_loops import total
from nnbuild.model.graph import Array
from nnbuild.ops.gru import GRU
from nnbuild.ops.site import Site

AFTER = ("update", "reset", "of_input", "of_state")


def _pack(site: Site[GRU], units: Units) -> Mapping[str, Array]:
    matrices = {role: site.constant(role) for role in ("kernel", "recurrent")}
    bias = site.constant("bias") if "bias" in site.constants else None
    if site.attributes.reset_after:
        packed = {role: units.pack(matrix, 3) for role, matrix in matrices.items()}
        if bias is not None:
            packed["bias"] = units.pack(four_biases(bias).T.reshape(1, -1), 4)
        return packed
    split = 2 * units.units
    packed = {role: units.pack(matrix[:, :split], 2) for role, matrix in matrices.items()}
    packed |= {f"{role}_candidate": units.pack(matrix[:, split:], 1) for role, matrix in matrices.items()}
    if bias is not None:
        packed |= {"bias": units.pack(bias[None, :split], 2), "bias_candidate": units.pack(bias[None, split:], 1)}
    return packed


def _emit(w: Writer, site: Site[GRU], names: Names, units: Units) -> None:
    with time_steps(w, site, names, units):
        if site.attributes.reset_after:
            _after(w, site, names, units)
        else:
            _before(w, site, names, units)


def _after(w: Writer, site: Site[GRU], names: Names, units: Units) -> None:
    attributes, floats = site.attributes, units.floats
    (hidden,) = state_names(site, names)
    fresh = fresh_state(site, names, units)

    def gates(vector: int, place: str, count: int) -> None:
        apply(w, units, "keep", attributes.gate_activation, f"update{vector}")
        apply(w, units, "recall", attributes.gate_activation, f"reset{vector}")
        recalled = floats.use(w, "mul", "recall", f"of_state{vector}")
        floats.declare(w, "candidate", floats.use(w, "add", f"of_input{vector}", recalled))
        apply(w, units, "proposal", attributes.activation, "candidate")
        _blend(w, units, total(fresh, place), total(hidden, place), count)

    def block(real: int) -> None:
        declare_sums(w, units, AFTER, names.packed.get("bias"))
        of_input, of_state = AFTER[:3], (*AFTER[:2], AFTER[3])
        accumulate(w, units, of_input, ("x", site.shape()[1]), names.packed["kernel"])
        accumulate(w, units, of_state, (hidden, attributes.units), names.packed["recurrent"])
        each_vector(w, units, real, gates)

    blocks(w, units, block)


def _before(w: Writer, site: Site[GRU], names: Names, units: Units) -> None:
    """The reset gate acts on the whole state before the candidate's product, so the gates of all units come first."""
    attributes, floats, features = site.attributes, units.floats, site.shape()[1]
    (hidden,) = state_names(site, names)
    fresh = fresh_state(site, names, units)
    w(f"float *keeps = {names.scratch} + {units.units};")
    w(f"float *recalled = {names.scratch} + {2 * units.units};")

    def gates(vector: int, place: str, count: int) -> None:
        apply(w, units, "keep", attributes.gate_activation, f"update{vector}")
        apply(w, units, "recall", attributes.gate_activation, f"reset{vector}")
        floats.store(w, f"keeps + {place}", "keep", count)
        old = floats.load(w, f"{hidden} + {place}", count)
        floats.store(w, f"recalled + {place}", floats.use(w, "mul", "recall", old), count)

    def candidate(vector: int, place: str, count: int) -> None:
        apply(w, units, "proposal", attributes.activation, f"candidate{vector}")
        floats.declare(w, "keep", floats.load(w, f"keeps + {place}", count))
        _blend(w, units, total(fresh, place), total(hidden, place), count)

    def gate_block(real: int) -> None:
        sums = ("update", "reset")
        declare_sums(w, units, sums, names.packed.get("bias"))
        accumulate(w, units, sums, ("x", features), names.packed["kernel"])
        accumulate(w, units, sums, (hidden, attributes.units), names.packed["recurrent"])
        each_vector(w, units, real, gates)

    def candidate_block(real: int) -> None:
        declare_sums(w, units, ("candidate",), names.packed.get("bias_candidate"))
        accumulate(w, units, ("candidate",), ("x", features), names.packed["kernel_candidate"])
        accumulate(w, units, ("candidate",), ("recalled", attributes.units), names.packed["recurrent_candidate"])
        each_vector(w, units, real, candidate)

    blocks(w, units, gate_block)
    blocks(w, units, candidate_block)


def _blend(w: Writer, units: Units, to: str, old: str, count: int) -> None:
    """keep * old + (1 - keep) * proposal."""
    floats = units.floats
    kept = floats.use(w, "mul", "keep", floats.load(w, old, count))
    new = floats.use(w, "mul", floats.use(w, "sub", floats.each(w, 1.0), "keep"), "proposal")
    floats.store(w, to, floats.use(w, "add", kept, new), count)


VARIANTS = shared.variants(4, _pack, _emit, lambda site: 0 if site.attributes.reset_after else 2)

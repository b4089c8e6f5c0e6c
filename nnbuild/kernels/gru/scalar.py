"""GRU in portable C, in both of Keras' forms."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels import recurrent
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.recurrent import accumulate, apply, by_unit, declare_sums, state_names, time_steps
from nnbuild.model.graph import Array
from nnbuild.ops.gru import GRU
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[GRU]) -> Demand:
    kernel, hidden = by_unit(site.constant("kernel"), 3), by_unit(site.constant("recurrent"), 3)
    if site.attributes.reset_after:
        packed = {"kernel": kernel, "recurrent": hidden}
        if "bias" in site.constants:
            packed["bias"] = four_biases(site.constant("bias"))
        return recurrent.demand(site, packed)
    packed = {"kernel": kernel[:, :, :2], "kernel_candidate": kernel[:, :, 2:]}
    packed |= {"recurrent": hidden[:, :, :2], "recurrent_candidate": hidden[:, :, 2:]}
    if "bias" in site.constants:
        bias = site.constant("bias").reshape(3, -1)
        packed |= {"bias": bias[:2].T, "bias_candidate": bias[2]}
    return recurrent.demand(site, packed, scratch_vectors=3)


def four_biases(bias: Array) -> Array:
    """Update and reset add both biases; the candidate keeps the one of the input and that of the state apart."""
    of_x, of_h = bias.reshape(2, 3, -1)
    return np.stack([of_x[0] + of_h[0], of_x[1] + of_h[1], of_x[2], of_h[2]], axis=1)


def emit(w: Writer, site: Site[GRU], names: Names) -> None:
    if site.attributes.reset_after:
        _reset_after(w, site, names)
    else:
        _reset_before(w, site, names)


def _reset_after(w: Writer, site: Site[GRU], names: Names) -> None:
    attributes = site.attributes
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names), w.loop("unit", attributes.units):
        declare_sums(w, ("update", "reset", "of_input", "of_state"), names.packed.get("bias"))
        accumulate(w, ("update", "reset", "of_input"), "x", site.shape()[1], names.packed["kernel"])
        accumulate(w, ("update", "reset", "of_state"), hidden, attributes.units, names.packed["recurrent"])
        apply(w, "keep", attributes.gate_activation, "update")
        apply(w, "recall", attributes.gate_activation, "reset")
        w(w.use(c99.LOAD, "candidate", f"of_input + {c99.product(w, 'recall', 'of_state')}"))
        apply(w, "proposal", attributes.activation, "candidate")
        w(w.use(c99.STORE, f"{names.scratch}[unit]", _blend(w, "keep", f"{hidden}[unit]")))


def _blend(w: Writer, keep: str, old: str) -> str:
    return f"{c99.product(w, keep, old)} + {c99.product(w, f'1.0f - {keep}', 'proposal')}"


def _reset_before(w: Writer, site: Site[GRU], names: Names) -> None:
    """The reset gate acts on the whole state before the candidate's product, so the gates of all units come first."""
    attributes = site.attributes
    units, features = attributes.units, site.shape()[1]
    (hidden,) = state_names(site, names)
    with time_steps(w, site, names):
        w(f"float *keeps = {names.scratch} + {units};")
        w(f"float *recalled = {names.scratch} + {2 * units};")
        with w.loop("unit", units):
            declare_sums(w, ("update", "reset"), names.packed.get("bias"))
            accumulate(w, ("update", "reset"), "x", features, names.packed["kernel"])
            accumulate(w, ("update", "reset"), hidden, units, names.packed["recurrent"])
            apply(w, "keep", attributes.gate_activation, "update")
            apply(w, "recall", attributes.gate_activation, "reset")
            w(w.use(c99.STORE, "keeps[unit]", "keep"))
            w(w.use(c99.STORE, "recalled[unit]", c99.product(w, "recall", f"{hidden}[unit]")))
        with w.loop("unit", units):
            declare_sums(w, ("candidate",), names.packed.get("bias_candidate"))
            accumulate(w, ("candidate",), "x", features, names.packed["kernel_candidate"])
            accumulate(w, ("candidate",), "recalled", units, names.packed["recurrent_candidate"])
            apply(w, "proposal", attributes.activation, "candidate")
            w(w.use(c99.STORE, f"{names.scratch}[unit]", _blend(w, "keeps[unit]", f"{hidden}[unit]")))

"""TFLite's 8-bit SVDF. A work item is one unit with all its filters."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.parts.integer_steps import declare, finish, zero
from nnbuild.numeric.rounding import INT16, limits
from nnbuild.ops.site import Site
from nnbuild.ops.svdf import Svdf

TOGETHER = 4
"""Products per iteration; the loop itself costs as much as two."""


def _accepts(site: Site[Svdf]) -> str | None:
    formats = [tensor.dtype for tensor in (*site.inputs, *site.outputs)]
    known = formats == ["int8", "int16", "int8", "int16"]
    return None if known else f"it computes int8 with an int16 state, not {formats}"


def _demand(site: Site[Svdf]) -> Demand:
    """A filter's weights are contiguous; the start of each sum accounts for the input's zero point."""
    kernel = site.constant("kernel").astype(np.int64)
    start = -zero(site.inputs[0]) * kernel.sum(axis=0)
    packed = {
        "kernel": site.constant("kernel").T.reshape(-1),
        "start": start.astype(np.int32),
        "times": site.constant("times").reshape(-1),
        "bias": site.constant("bias"),
    }
    return Demand(extent=site.outputs[0].shape[0], packed=packed)


def _emit(w: Writer, site: Site[Svdf], names: Names) -> None:
    rank, (features,) = site.attributes.rank, site.inputs[0].shape
    (units,), (_, memory) = site.outputs[0].shape, site.outputs[1].shape
    to_state, to_output = site.attributes.scales(site)
    x, before = names.inputs
    out, after = names.outputs
    with w.loop("unit", "end", start="begin", trips=units):
        declare(w, "sum", f"(uint32_t){names.packed['bias']}[unit]", "uint32_t")
        with w.loop("r", rank):
            declare(w, "filter", f"unit * {rank} + r")
            w(f"const int8_t *weights = {names.packed['kernel']} + filter * {features};")
            declare(w, "dot", f"{names.packed['start']}[filter]", "int32_t")
            whole = features - features % TOGETHER
            for start, stop, step in ((0, whole, TOGETHER), (whole, features, 1)):
                with w.loop("i", stop, start=start, step=step):
                    for at in (f"i + {k}" for k in range(step)):
                        w(w.use(c99.MULTIPLY_ADD, "dot", f"weights[{at}]", f"{x}[{at}]"))
            scaled = w.helper("requantize", "dot", str(to_state.multiplier), str(to_state.shift))
            declare(w, "newest", scaled, "int32_t")
            c99.bound(w, INT16, "newest")
            first = f"filter * {memory}"
            w(f"const int16_t *times = {names.packed['times']} + {first};")
            w(f"const int16_t *older = {before} + {first};")
            w(f"int16_t *state = {after} + {first};")
            with w.loop("j", memory - 1):
                declare(w, "value", "older[j + 1]")
                w(w.use(c99.STORE, "state[j]", "(int16_t)value"))
                w.bill(c99.MULTIPLY_ADD.cycles)
                w("sum += (uint32_t)(times[j] * value);")
            w(w.use(c99.STORE, f"state[{memory - 1}]", "(int16_t)newest"))
            w.bill(c99.MULTIPLY_ADD.cycles)
            w(f"sum += (uint32_t)(times[{memory - 1}] * newest);")
        scaled = w.helper("requantize", "(int32_t)sum", str(to_output.multiplier), str(to_output.shift))
        finish(w, f"{out}[unit]", scaled, site.outputs[0], limits("int8"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

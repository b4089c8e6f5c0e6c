"""TFLite's 8-bit LSTM: the four sums of a unit together, then its gates in 16-bit fixed point.

The hidden state of the step before is the row of the output before, so only the cell state is kept apart.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.loops.recurrent_integer import accumulate
from nnbuild.kernels.window_loops import product
from nnbuild.numeric.lstm import GATE_INTEGER_BITS
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.tflite_lstm import GATES, TfliteLstm

SUMS = ("let_in", "forget", "candidate", "let_out")
FROM_HIDDEN = tuple(f"{name}_before" for name in SUMS)


def _accepts(site: Site[TfliteLstm]) -> str | None:
    formats = [tensor.dtype for tensor in (*site.inputs, *site.outputs)]
    return None if formats == ["int8", "int8", "int16"] else f"it computes int8 with an int16 cell, not {formats}"


def _demand(site: Site[TfliteLstm]) -> Demand:
    """The zero points' share of every sum is known, and becomes part of what it begins with."""
    kernel, recurrent, bias = (site.constant(role).astype(np.int64) for role in ("kernel", "recurrent", "bias"))
    zero = quant_of(site.inputs[0]).zero_point
    packed = {
        "kernel": site.constant("kernel").transpose(2, 1, 0),
        "recurrent": site.constant("recurrent").transpose(2, 1, 0),
        "bias": (bias - zero * kernel.sum(axis=1)).T.astype(np.int32),
        "recurrent_bias": (-site.attributes.state_zero * recurrent.sum(axis=1)).T.astype(np.int32),
    }
    flat = {role: np.ascontiguousarray(values).reshape(-1) for role, values in packed.items()}
    return Demand(extent=site.shape()[0], packed=flat)


def _emit(w: Writer, site: Site[TfliteLstm], names: Names) -> None:
    lstm = site.attributes
    steps, features = site.shape()
    sequence, cell = names.outputs
    with w.block("if (begin == 0)"), w.loop("unit", lstm.units):
        w(w.use(c99.STORE, f"{cell}[unit]", "0"))
    with w.loop("t", "end", start="begin", trips=steps):
        w(f"const int8_t *x = {names.inputs[0]} + {product('t', features)};")
        w(f"int8_t *hidden = {sequence} + {product('t', lstm.units)};")
        with w.loop("unit", lstm.units):
            _sums(w, lstm, names, features)
            _step(w, lstm, cell)


def _sums(w: Writer, lstm: TfliteLstm, names: Names, features: int) -> None:
    """Each gate before its activation, with 12 bits after the point; the first step has no hidden state."""
    _begin(w, SUMS, names.packed["bias"])
    accumulate(w, SUMS, "x", features, names.packed["kernel"])
    for name, scale in zip(SUMS, lstm.input_scales, strict=True):
        w(f"{name} = {w.helper('requantize', name, str(scale.multiplier), str(scale.shift))};")
        _hold(w, name, 16)
    with w.block("if (t > 0)"):
        w(f"const int8_t *before = hidden - {lstm.units};")
        _begin(w, FROM_HIDDEN, names.packed["recurrent_bias"])
        accumulate(w, FROM_HIDDEN, "before", lstm.units, names.packed["recurrent"])
        for name, sum_name, scale in zip(SUMS, FROM_HIDDEN, lstm.recurrent_scales, strict=True):
            scaled = w.helper("requantize", sum_name, str(scale.multiplier), str(scale.shift))
            # Held to 16 bits, and before that to what cannot overflow when it is added.
            w(f"{sum_name} = {scaled};")
            _hold(w, sum_name, 18)
            w(f"{name} += {sum_name};")
            _hold(w, name, 16)


def _begin(w: Writer, sums: tuple[str, ...], bias: str) -> None:
    for index, name in enumerate(sums):
        w(w.use(c99.LOAD_AS, "int32_t", name, f"{bias}[{product('unit', GATES)} + {index}]"))


def _hold(w: Writer, name: str, bits: int) -> None:
    c99.bound(w, (-(1 << (bits - 1)), (1 << (bits - 1)) - 1), name)


def _step(w: Writer, lstm: TfliteLstm, cell: str) -> None:
    before = str(GATE_INTEGER_BITS)
    for name, gate in (("entry", "let_in"), ("keep", "forget"), ("exit", "let_out")):
        w(f"const int32_t {name} = {w.helper('gate_logistic16', gate, before)};")
    w(f"const int32_t proposal = {w.helper('gate_tanh16', 'candidate', before)};")
    kept = w.helper("halves_away16", f"keep * {cell}[unit]", "15")
    added = w.helper("halves_away16", "entry * proposal", str(30 + lstm.cell_power))
    w(f"int32_t memory = {kept} + {added};")
    _hold(w, "memory", 16)
    if lstm.cell_clip > 0:
        c99.bound(w, (-lstm.cell_clip, lstm.cell_clip), "memory")
    w(w.use(c99.STORE, f"{cell}[unit]", "(int16_t)memory"))
    w(f"const int32_t shown = exit * {w.helper('gate_tanh16', 'memory', str(15 + lstm.cell_power))};")
    scale = lstm.hidden_scale
    scaled = w.helper("requantize", "shown", str(scale.multiplier), str(scale.shift))
    w(f"int32_t value = {c99.added(scaled, lstm.hidden_zero)};")
    _hold(w, "value", 8)
    w(w.use(c99.STORE, "hidden[unit]", "(int8_t)value"))


VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)

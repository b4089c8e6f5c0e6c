"""TFLite's 8-bit LSTM: the four sums of a unit together, then its gates in 16-bit fixed point.

The previous hidden state is the previous output row, so only the cell state is stored separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, kernel_of, on_each
from nnbuild.kernels.recurrent.integer_cells import Part, Sums, parts_of
from nnbuild.kernels.recurrent.pair_sums import PairedSums
from nnbuild.kernels.recurrent.vector_sums import ColumnSums
from nnbuild.model.graph import Array
from nnbuild.numeric.lstm import GATE_INTEGER_BITS
from nnbuild.ops.integer import quant_of
from nnbuild.ops.recurrent_rules import Products
from nnbuild.ops.site import Site
from nnbuild.ops.tflite_lstm import TfliteLstm

SUMS = ("let_in", "forget", "candidate", "let_out")
FARTHEST = 128
"""The largest distance of inputs from 0."""
UNUSED = 40
"""A shift that is valid in all forms of sums."""


def _products(site: Site[TfliteLstm], role: str, zero: int) -> Products:
    """The starts of sums account for the zero point. TFLite's own rule scales them, without scaling constants."""
    matrix = site.constant(role)
    weights = matrix.transpose(1, 0, 2).reshape(matrix.shape[1], -1)
    wide = weights.astype(np.int64)
    start = -zero * wide.sum(axis=0)
    if role == "kernel":
        start += site.constant("bias").astype(np.int64).reshape(-1)
    bound = int((np.abs(start) + FARTHEST * np.abs(wide).sum(axis=0)).max())
    none = np.zeros_like(start)
    return Products(weights, start, none, none + UNUSED, bound, bound)


def _parts(site: Site[TfliteLstm]) -> tuple[Part, Part]:
    lstm, zero = site.attributes, quant_of(site.inputs[0]).zero_point
    products = _products(site, "kernel", zero), _products(site, "recurrent", lstm.state_zero)
    return parts_of(site, SUMS, "before", products)


@dataclass(frozen=True)
class _Cells:
    sums: Sums

    def accepts(self, site: Site[TfliteLstm]) -> str | None:
        formats = [tensor.dtype for tensor in (*site.inputs, *site.outputs)]
        if formats != ["int8", "int8", "int16"]:
            return f"it computes int8 with an int16 cell, not {formats}"
        narrow = all(part.products.narrow for part in _parts(site))
        return None if narrow else "its sums have more than 32 bits"

    def demand(self, site: Site[TfliteLstm]) -> Demand:
        """Before the first step all hidden states equal their zero point, which adds nothing."""
        lstm, layer = site.attributes, cast(Any, site)
        packed: dict[str, Array] = {"first": np.full(lstm.units, lstm.state_zero, np.int8)}
        for part in _parts(site):
            made = self.sums.packed(layer, part.name, part.products)
            packed |= {name: made[name].reshape(-1) for name in (part.name, f"{part.name}_start") if name in made}
        kind = "int32" if isinstance(self.sums, ColumnSums) else "int16"
        return Demand(extent=site.shape()[0], packed=packed, scratch=self.sums.room(layer), scratch_type=kind)

    def emit(self, w: Writer, site: Site[TfliteLstm], names: Names) -> None:
        lstm, (steps, features) = site.attributes, site.shape()
        sequence, cell = names.outputs
        with w.block("if (begin == 0)"), w.loop("unit", lstm.units):
            w(w.use(c99.STORE, f"{cell}[unit]", "0"))
        with w.loop("t", "end", start="begin", trips=steps):
            w(f"const int8_t *x = {names.inputs[0]} + t * {features};")
            w(f"int8_t *hidden = {sequence} + t * {lstm.units};")
            w(f"const int8_t *before = t > 0 ? hidden - {lstm.units} : {names.packed['first']};")
            parts = _parts(site)
            self.sums.before_units(w, cast(Any, site), names, parts, 0)
            with w.loop("unit", lstm.units):
                self._gates(w, lstm, names, parts)
                _step(w, lstm, cell)

    def _gates(self, w: Writer, lstm: TfliteLstm, names: Names, parts: tuple[Part, Part]) -> None:
        """Each gate before its activation, with 12 fraction bits."""
        of_x, of_h = (self.sums.totals(w, names, part) for part in parts)
        scales = zip(lstm.input_scales, lstm.recurrent_scales, strict=True)
        for name, first, second, (of_input, of_state) in zip(SUMS, of_x, of_h, scales, strict=True):
            w(f"int32_t {name} = {w.helper('requantize', first, str(of_input.multiplier), str(of_input.shift))};")
            _hold(w, name, 16)
            # Clamped to 16 bits, and before that to a range that cannot overflow when it is added.
            added = w.helper("requantize", second, str(of_state.multiplier), str(of_state.shift))
            w(f"int32_t {name}_added = {added};")
            _hold(w, f"{name}_added", 18)
            w(f"{name} += {name}_added;")
            _hold(w, name, 16)


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
    w(f"int32_t value = {scaled} + {lstm.hidden_zero};")
    _hold(w, "value", 8)
    w(w.use(c99.STORE, "hidden[unit]", "(int8_t)value"))


FORMS: dict[str, Sums] = {"scalar": Sums(), "pairs_wide": PairedSums(True), "pairs": PairedSums(False)}
VARIANTS = (
    *(kernel_of(name, sums.needs, _Cells(sums)) for name, sums in FORMS.items()),
    on_each("integer", lambda v: _Cells(ColumnSums(v))),
)

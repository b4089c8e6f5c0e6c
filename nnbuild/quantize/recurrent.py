"""Formats around LSTM, GRU and SimpleRNN; see docs/quantization-recurrent.md.

States have 16 bits in int8 models too, an LSTM's cell 32, because errors in a recurrent layer accumulate. 16-bit models
give these layers, and the dense ones after them, 16-bit weights; and formats before and after have headroom above the
calibrated ranges, since saturation costs more than a coarser step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor, log2

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Quant, Tensor
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.recurrent import Recurrent, value_point
from nnbuild.ops.recurrent_rules import (
    CELL_POINT,
    LARGEST,
    OTHER_GATE,
    UNIT_POINT,
    VALUES_BELOW,
    bias_of,
    bounded,
    unit_gate,
)
from nnbuild.ops.site import Site
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.formats import quantized_weights, weight_scales

HEADROOM = {"int8": 1.5, "int16": 2.0}
"""Factor by which a format exceeds the calibrated range."""
POINTS = range(-4, 16)
"""Possible fractional bits of a calibrated 16-bit state."""
Forms = Mapping[str, str]
"""Operation -> its format."""


@dataclass(frozen=True)
class Format:
    dtype: str
    quant: Quant

    def of(self, tensor: Tensor) -> Tensor:
        """The tensor in this format."""
        return replace(tensor, dtype=self.dtype, quant=self.quant)


def recurrent_ops(graph: Graph, forms: Forms) -> Iterator[tuple[Op, Recurrent]]:
    """The recurrent operations that are to be integer."""
    for op in graph.ops:
        if isinstance(op.attributes, Recurrent) and forms[op.name] != "float":
            yield op, op.attributes


def state_formats(graph: Graph, ranges: Ranges, forms: Forms) -> dict[str, Format]:
    """Formats of all hidden and cell states, of sequences, and of the tensors that hold initial states."""
    made: dict[str, Format] = {}
    held = {*graph.inputs, *(state.before for state in graph.states)}
    for op, attributes in recurrent_ops(graph, forms):
        after = op.outputs[-attributes.states :]
        before = attributes.initial(op.inputs) or after
        joined = [ranges[a].union(ranges[b]) for a, b in zip(after, before, strict=True)]
        formats = _formats(attributes, joined)
        if attributes.sequences:
            made[op.outputs[0]] = formats[0]
        for index, form in enumerate(formats):
            made[after[index]] = form
            if before[index] in held:
                made.setdefault(before[index], form)
    return made


def _formats(attributes: Recurrent, joined: list[Range]) -> list[Format]:
    """Formats of the hidden state and the cell. An initial state may lie outside the range of all later ones."""
    within = max(-joined[0].low, joined[0].high) <= 1 and bounded(attributes.activation) and _keeps_bounds(attributes)
    hidden = UNIT_POINT if within else _point(joined[0])
    if attributes.states == 1:
        return [_format("int16", hidden)]
    cell = CELL_POINT if bounded(attributes.activation) else _point(joined[1]) + VALUES_BELOW
    hidden = min(hidden, value_point(attributes, hidden, cell) + OTHER_GATE - 1)
    return [_format("int16", hidden), _format("int32", cell)]


def _format(dtype: str, point: int) -> Format:
    return Format(dtype, Quant((2.0**-point,)))


def _keeps_bounds(attributes: Recurrent) -> bool:
    """Whether a hidden state stays within the activation's range."""
    return attributes.gates == 1 or unit_gate(attributes.gate_activation)


def _point(values: Range) -> int:
    """The most fractional bits that 16 bits allow, with headroom."""
    largest = max(-values.low, values.high) * HEADROOM["int16"]
    return min(max(floor(log2(LARGEST / largest)), POINTS.start), POINTS.stop - 1) if largest > 0 else POINTS.stop - 1


def reached_by_recurrent(graph: Graph) -> frozenset[str]:
    """The operations that depend on a recurrent layer, and the layer itself."""
    reached: set[str] = set()
    found = set()
    for op in graph.ops:
        if isinstance(op.attributes, Recurrent) or reached.intersection(op.inputs):
            reached.update(op.outputs)
            found.add(op.name)
    return frozenset(found)


def weight_bits(op: Op, form: str, reached: frozenset[str]) -> int:
    """`reached` are the operations that depend on recurrent ones."""
    wide = isinstance(op.attributes, Recurrent | Dense) and op.name in reached
    return 16 if wide and form == "int16" else 8


def with_headroom(graph: Graph, ranges: Ranges, forms: Forms, reached: frozenset[str]) -> Ranges:
    """The ranges, with headroom for what recurrent operations read and for all that depends on them."""
    rooms = {op.inputs[0]: HEADROOM[forms[op.name]] for op, _ in recurrent_ops(graph, forms)}
    for op in graph.ops:
        if op.name in reached and forms[op.name] != "float":
            rooms |= dict.fromkeys(op.outputs, HEADROOM[forms[op.name]])
    return {name: _wider(values, rooms.get(name, 1.0)) for name, values in ranges.items()}


def _wider(values: Range, room: float) -> Range:
    """Farther from zero at the ends that lie beyond it; one that does not stays where it is."""
    return replace(values, low=min(values.low, values.low * room), high=max(values.high, values.high * room))


def recurrent_constants(site: Site[Recurrent], bits: int) -> dict[str, Constant]:
    """One scale for every unit of every gate; each bias has the scale of the sums it is added to."""
    attributes = site.attributes
    vectors = {"kernel": site.inputs[0], "recurrent": site.outputs[-attributes.states]}
    made, parts = {}, []
    bias = site.constant("bias").astype(np.float64) if "bias" in site.constants else None
    for role, vector in vectors.items():
        weights, scale = site.constants[role], quant_of(vector).scale
        part = None if bias is None else bias_of(bias, role)
        scales = weight_scales(_without_gaps(weights.data), part, scale, bits, bias_bits=30 if bits == 8 else 44)
        made[role] = quantized_weights(weights.name, weights.data, scales, bits)
        if part is not None:
            parts.append(np.round(part / (scale * scales)))
    if bias is not None:
        steps: Array = parts[0] if bias.ndim == 1 else np.stack(parts)
        kind = "int32" if bits == 8 else "int64"
        made["bias"] = Constant(site.constants["bias"].name, steps.astype(kind))
    return made


def _without_gaps(weights: Array) -> Array:
    """The weights with other columns' in place of those of zeros, whose scale means nothing: one out of line makes sums
    and scales of all units longer."""
    largest = np.abs(weights).max(axis=0)
    if largest.all() or not largest.any():
        return weights
    usual = np.sort(largest[largest > 0])[np.count_nonzero(largest) // 2]
    return np.where(largest > 0, weights, usual).astype(weights.dtype)

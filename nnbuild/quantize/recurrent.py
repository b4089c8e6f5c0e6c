"""The formats around LSTM, GRU and SimpleRNN; see docs/quantization-recurrent.md.

States have 16 bits in int8 models too. An error in a recurrent layer is carried along, so an int16 model gives these
layers, and the dense ones behind them, weights of 16 bits, and leaves room above the calibrated ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, log2

import numpy as np

from nnbuild.graph import Array, Constant, Graph, Op, Quant
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.recurrent_rules import LARGEST, bias_of, bounded, unit_gate
from nnbuild.ops.site import Site
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.formats import quantized_weights, weight_scales

ROOM = 2.0
"""How far above the calibrated range a 16-bit format reaches."""
FULL = Quant((2.0**-15,))
POWERS = range(-15, 16)
Forms = Mapping[str, str]
"""The format of every operation, by its name."""


def recurrent_ops(graph: Graph, forms: Forms) -> Iterator[tuple[Op, Recurrent]]:
    """Those that are to be integer."""
    for op in graph.ops:
        if isinstance(op.attributes, Recurrent) and forms[op.name] != "float":
            yield op, op.attributes


def state_formats(graph: Graph, ranges: Ranges, forms: Forms) -> dict[str, Quant]:
    """The formats of all hidden and cell states, of sequences, and of the tensors that hold initial states."""
    made: dict[str, Quant] = {}
    held = {*graph.inputs, *(state.before for state in graph.states)}
    for op, attributes in recurrent_ops(graph, forms):
        after = op.outputs[-attributes.states :]
        before = op.inputs[1:] or after
        joined = [ranges[a].joined(ranges[b]) for a, b in zip(after, before, strict=True)]
        formats = _formats(attributes, joined)
        if attributes.sequences:
            made[op.outputs[0]] = formats[0]
        for index, quant in enumerate(formats):
            made[after[index]] = quant
            if before[index] in held:
                made.setdefault(before[index], quant)
    return made


def _formats(attributes: Recurrent, joined: list[Range]) -> list[Quant]:
    """The hidden state's format, and the cell's."""
    powers = [_power(values) for values in joined]
    if attributes.states == 2 and not bounded(attributes.activation):
        powers[0] = min(powers[0], powers[1] + 10)
    if bounded(attributes.activation) and _keeps_bounds(attributes):
        powers[0] = 15
    return [Quant((2.0**-power,)) for power in powers]


def _keeps_bounds(attributes: Recurrent) -> bool:
    """Whether a hidden state lies where the activation's values lie."""
    return attributes.gates == 1 or unit_gate(attributes.gate_activation)


def _power(values: Range) -> int:
    largest = max(-values.low, values.high) * ROOM
    return min(max(floor(log2(LARGEST / largest)), POWERS.start), POWERS.stop - 1) if largest > 0 else POWERS.stop - 1


def behind(graph: Graph) -> frozenset[str]:
    """The operations that a recurrent layer's result reaches."""
    reached: set[str] = set()
    found = set()
    for op in graph.ops:
        if isinstance(op.attributes, Recurrent) or reached.intersection(op.inputs):
            reached.update(op.outputs)
            found.add(op.name)
    return frozenset(found)


def weight_bits(op: Op, form: str, reached: frozenset[str]) -> int:
    """`reached` are the operations behind recurrent ones."""
    wide = isinstance(op.attributes, Recurrent | Dense) and op.name in reached
    return 16 if wide and form == "int16" else 8


def with_room(graph: Graph, ranges: Ranges, forms: Forms, reached: frozenset[str]) -> Ranges:
    """The ranges, wider for what 16-bit recurrent layers read and for all 16-bit results behind them."""
    names = {op.inputs[0] for op, _ in recurrent_ops(graph, forms) if forms[op.name] == "int16"}
    for op in graph.ops:
        if op.name in reached and forms[op.name] == "int16":
            names.update(op.outputs)
    return {name: _wider(values) if name in names else values for name, values in ranges.items()}


def _wider(values: Range) -> Range:
    return Range(values.low * ROOM, values.high * ROOM)


def recurrent_constants(site: Site, bits: int) -> dict[str, Constant]:
    """One scale for every unit of every gate; each bias has the scale of the sums it is added to."""
    attributes = site.op.attributes
    assert isinstance(attributes, Recurrent)
    vectors = {"kernel": site.inputs[0], "recurrent": site.outputs[-attributes.states]}
    made, parts = {}, []
    bias = site.constant("bias").astype(np.float64) if "bias" in site.constants else None
    for role, vector in vectors.items():
        weights, scale = site.constants[role], quant_of(vector).scale
        part = None if bias is None else bias_of(bias, role)
        scales = weight_scales(weights.data, part, scale, bits, bias_bits=30 if bits == 8 else 44)
        made[role] = quantized_weights(weights.name, weights.data, scales, bits)
        if part is not None:
            parts.append(np.round(part / (scale * scales)))
    if bias is not None:
        steps: Array = parts[0] if bias.ndim == 1 else np.stack(parts)
        kind = "int32" if bits == 8 else "int64"
        made["bias"] = Constant(site.constants["bias"].name, steps.astype(kind))
    return made

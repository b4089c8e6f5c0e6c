"""Checks that a graph is legal; runs after the frontend and after every pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Graph, Op, Shape, Tensor
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.numeric.rounding import limits

DTYPES = ("float32", "int8", "int16", "int32", "uint8")
LARGEST_RATIO = 2.0**30
"""Largest ratio between the scales of one operation's tensors: beyond it the shifts of the integer rule exceed 32
bits."""
MOVES = ("reshape", "shift", "transpose", "slice", "repeat", "pad", "pool2d", "resize_bilinear", "pick", "top_k")
"""Operations that move or choose integers unchanged, so that input and output must have the same format."""
GIVE_FLOATS = ("conv2d", "conv2d_transpose", "depthwise_conv2d", "dense")
"""Layers that may make floats of sums of products of bytes; their bias is in floats."""
WHOLE_NUMBERS = ("arg", "compare", "gather", "known", "select", "whole")
"""Operations that read or compute plain integers, besides others."""
MIXED = ("convert", "top_k", "signal", "running", "lstm", "gru", "simple_rnn", "tflite_lstm", "svdf", *WHOLE_NUMBERS)
"""Operations that may have tensors of several types."""
SOFTMAX_OUTPUT = {"int8": (2.0**-8, -128), "int16": (2.0**-15, 0)}
REPORT = "Please report this model: nnbuild built a graph that its own rules refuse."


def verify(graph: Graph) -> Graph:
    """Returns the graph if it is legal; otherwise raises ModelError with the layer and the cause."""
    for layer, cause in _faults(graph):
        raise ModelError(f"layer {layer!r}" if layer else f"model {graph.name!r}", cause, REPORT)
    return graph


def _faults(graph: Graph) -> Iterator[tuple[str, str]]:
    yield from _broken_names(graph)
    yield from _broken_order(graph)
    for op in graph.ops:
        yield from ((op.layer or op.name, cause) for cause in _broken_op(graph, op))
    yield from _broken_states(graph)
    for constant in graph.constants.values():
        if constant.data.dtype.kind == "f" and not np.isfinite(constant.data).all():
            yield "", f"the constant {constant.name!r} holds values that are not finite."


def _broken_names(graph: Graph) -> Iterator[tuple[str, str]]:
    for name, count in Counter(op.name for op in graph.ops).items():
        if count > 1:
            yield name, "two operations have this name."
    for mapping in (graph.tensors, graph.constants):
        for name, value in mapping.items():
            if value.name != name:
                yield "", f"{name!r} is filed under another name."
    for tensor in graph.tensors.values():
        if tensor.dtype not in DTYPES:
            yield "", f"the tensor {tensor.name!r} has the unknown type {tensor.dtype!r}."
        elif cause := _broken_format(tensor):
            yield "", f"the tensor {tensor.name!r} {cause}."
        if not all(isinstance(n, int) and n > 0 for n in tensor.shape):
            yield "", f"the tensor {tensor.name!r} has the shape {tensor.shape}."


def _broken_format(tensor: Tensor) -> str | None:
    """Floats have no scale, integers have one, and only 8-bit integers have a zero point."""
    quant = tensor.quant
    if quant is None:
        return None if tensor.dtype == "float32" else f"has integers ({tensor.dtype}) but no scale"
    if tensor.dtype == "float32":
        return "has a scale although it holds floats"
    if len(quant.scales) != 1 or quant.axis is not None:
        return "has more than one scale"
    if not (np.isfinite(quant.scale) and quant.scale >= SMALLEST_SCALE):
        return f"has the scale {quant.scale:g}, which is not a number from {SMALLEST_SCALE:g} on"
    low, high = limits(tensor.dtype) if tensor.dtype in ("int8", "uint8") else (0, 0)
    return None if low <= quant.zero_point <= high else f"has the zero point {quant.zero_point} in {tensor.dtype}"


def _broken_order(graph: Graph) -> Iterator[tuple[str, str]]:
    known = {*graph.inputs, *(state.before for state in graph.states)}
    for op in graph.ops:
        for name in op.inputs:
            if name not in known:
                yield op.layer or op.name, f"it reads {name!r} before anything has computed it."
        for name in op.outputs:
            if name in known:
                yield op.layer or op.name, f"it computes {name!r}, which is there already."
            known.add(name)
    for name in (*graph.outputs, *(state.after for state in graph.states)):
        if name not in known:
            yield "", f"nothing computes {name!r}."
    for name in known:
        if name not in graph.tensors:
            yield "", f"the tensor {name!r} is not described."


def _broken_op(graph: Graph, op: Op) -> Iterator[str]:
    attributes = op.attributes
    for role in attributes.required:
        if role not in op.constants:
            yield f"its {role} is missing."
            return
    for role, name in op.constants.items():
        if role not in attributes.required + attributes.optional:
            yield f"a {attributes.kind} operation has no {role}."
            return
        if name not in graph.constants:
            yield f"its {role} {name!r} is not among the constants."
            return
    inputs = [graph.tensors[name].shape for name in op.inputs]
    if any(shape[: len(op.outer)] != op.outer for shape in inputs):
        yield f"its inputs {inputs} do not begin with the axes {op.outer} it is applied along."
        return
    try:
        shapes = attributes.shapes([shape[len(op.outer) :] for shape in inputs], constant_shapes(graph, op))
    except ValueError as error:
        yield str(error)
        return
    stated = tuple(graph.tensors[name].shape for name in op.outputs)
    if tuple(op.outer + shape for shape in shapes) != stated:
        yield f"its outputs are {shapes}, not {stated}."
    yield from _broken_integers(graph, op)


def _broken_integers(graph: Graph, op: Op) -> Iterator[str]:
    """Requirements of an operation's integer form on its tensors' formats."""
    inputs, outputs = ([graph.tensors[name] for name in names] for names in (op.inputs, op.outputs))
    tensors = inputs + outputs
    scales = [tensor.quant.scale for tensor in tensors if tensor.quant is not None and not tensor.is_whole]
    yield from _broken_choice(op, inputs, outputs)
    if not scales:
        return
    types = sorted({tensor.dtype for tensor in tensors})
    if op.kind not in MIXED:
        floats = op.kind in GIVE_FLOATS and [t.dtype for t in tensors] == ["int8", "float32"]
        if len(types) > 1 and not floats:
            yield f"its tensors are of several types: {', '.join(types)}."
        for role, name in op.constants.items():
            if (role, floats) != ("bias", True) and graph.constants[name].data.dtype.kind != "i":
                yield f"its {role} is not in integers although its input is."
    if op.kind != "lookup" and max(scales) >= LARGEST_RATIO * min(scales):
        yield f"its scales {min(scales):g} and {max(scales):g} lie too far apart."
    if op.kind in MOVES and (inputs[0].dtype, inputs[0].quant) != (outputs[0].dtype, outputs[0].quant):
        yield "it only moves or chooses values, but its output has another scale than its input."
    if op.kind == "softmax" and types[0] in SOFTMAX_OUTPUT:
        scale, zero = SOFTMAX_OUTPUT[types[0]]
        quant = outputs[0].quant
        if quant is not None and (quant.scale, quant.zero_point) != (scale, zero):
            yield f"the output of a softmax in {types[0]} has the scale {scale:g} and the zero point {zero}."


def _broken_choice(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> Iterator[str]:
    """Operations that choose elements by indices or booleans."""
    carried = {"gather": inputs[:-1], "select": inputs[1:]}.get(op.kind, [])
    if any((tensor.dtype, tensor.quant) != (outputs[0].dtype, outputs[0].quant) for tensor in carried):
        yield "it only chooses values, but its output has another format than its input."


def _broken_states(graph: Graph) -> Iterator[tuple[str, str]]:
    for state in graph.states:
        before, after = graph.tensors[state.before], graph.tensors[state.after]
        if (before.shape, before.dtype, before.quant) != (after.shape, after.dtype, after.quant):
            yield "", f"the state {state.before!r} is not of the kind of {state.after!r} that follows it."
        initial = graph.constants.get(state.initial) if state.initial is not None else None
        if state.initial is not None and initial is None:
            yield "", f"the state {state.before!r} begins with {state.initial!r}, which is not among the constants."
        elif initial is not None and (initial.data.shape, initial.data.dtype.name) != (before.shape, before.dtype):
            yield "", f"the state {state.before!r} begins with {state.initial!r}, which is of another kind."


def constant_shapes(graph: Graph, op: Op) -> dict[str, Shape]:
    return {role: graph.constants[name].data.shape for role, name in op.constants.items()}

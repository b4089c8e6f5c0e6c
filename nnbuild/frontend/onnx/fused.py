"""Operators that onnxruntime's optimizer, and quantizers that call it, put in the place of several standard ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined, times_plus
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.elementwise import unary
from nnbuild.frontend.onnx.normalizing import layer_normalization
from nnbuild.frontend.onnx.products import HIDDEN, matmul
from nnbuild.frontend.onnx.records import Attribute
from nnbuild.model.graph import Array
from nnbuild.model.views import transposed
from nnbuild.ops.layout import Value

EPSILON = 1e-12
"""What a SkipLayerNormalization adds to the variance if it does not say."""


def gelu(function: str, call: Call) -> None:
    """Of its input, or of the sum with a bias."""
    unary(function, (), call if not call.given(1) else _inner(call, (_sum(call, 0, 1)[0],)))


def quick_gelu(call: Call) -> None:
    x = call.real(0)
    gate = call.activated(times_plus(call, x, call.number("alpha", 1.702)), "sigmoid")
    call.put(combined(call, "multiply", x, gate))


def fused_matmul(call: Call) -> None:
    """A product with a factor, of operands whose first axis may be that of rows, and whose last two may be swapped."""
    turns = [(bool(call.integer(f"transBatch{side}")), bool(call.integer(f"trans{side}"))) for side in "AB"]
    alpha = call.number("alpha", 1.0)
    if alpha == 1.0 and not any(map(any, turns)):
        matmul(_inner(call, call.node.inputs))
        return
    names = [_operand(call, place, *turns[place], alpha if place else 1.0) for place in (0, 1)]
    matmul(_inner(call, (names[0], names[1])))


def _operand(call: Call, place: int, batch: bool, turned: bool, factor: float) -> str:
    """The name of an operand as a MatMul takes it."""
    order = list(range(len(call.shape(place))))
    order = [*order[1:-1], order[0], order[-1]] if batch and len(order) > 2 else order
    order = [*order[:-2], order[-1], order[-2]] if turned and len(order) > 1 else order
    if call.is_constant(place):
        return _hold(call, f"operand {place}", np.float32(factor) * call.weights(place).transpose(order))
    value = call.real(place)
    value = replace(value, view=transposed(value.view, order))
    return _hold(call, f"operand {place}", times_plus(call, value, factor) if factor != 1.0 else value)


def skip_normalization(centred: bool, call: Call) -> None:
    """A normalization of a sum, which is another output."""
    call.expect(not any(call.node.outputs[1:3]), "it gives statistics, which are for training.")
    last = 4 if centred else 3
    name, total = _sum(call, 0, 1, *([last] if call.given(last) else []))
    options = {"epsilon": Attribute("epsilon", 1, EPSILON)} | dict(call.node.attributes)
    inner = _inner(call, (name, *call.node.inputs[2:last]), call.node.outputs[:1])
    inner.node = replace(inner.node, attributes=options)
    layer_normalization(centred, inner)
    if len(call.node.outputs) > 3 and call.node.outputs[3]:
        call.put(total, 3)


def _sum(call: Call, *places: int) -> tuple[str, Value]:
    total = call.real(places[0])
    for place in places[1:]:
        total = combined(call, "add", total, call.weights(place) if call.is_constant(place) else call.real(place))
    return _hold(call, "sum", total), total


def _hold(call: Call, role: str, item: Value | Array) -> str:
    """The name of a value that the file does not have."""
    name = f"{call.node.outputs[0]}{HIDDEN}{role}"
    call.scope.items[name] = item
    return name


def _inner(call: Call, inputs: tuple[str, ...], outputs: tuple[str, ...] = ()) -> Call:
    """The standard operator that is a part of this one."""
    made = replace(call.node, inputs=inputs, outputs=outputs or call.node.outputs)
    inner = Call(call.importer, call.scope, made, call)
    inner.layer = call.layer
    return inner


FOREIGN: dict[str, Callable[[Call], None]] = {
    "Gelu": partial(gelu, "gelu"),
    "BiasGelu": partial(gelu, "gelu"),
    "FastGelu": partial(gelu, "gelu_tanh"),
    "QuickGelu": quick_gelu,
    "FusedMatMul": fused_matmul,
    "SkipLayerNormalization": partial(skip_normalization, True),
    "SkipSimplifiedLayerNormalization": partial(skip_normalization, False),
}

"""Layers that join several tensors."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.normalization import scaled
from nnbuild.model.graph import Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.reshape import Reshape


def same_rank(call: Call) -> tuple[str, ...]:
    """Keras inserts the missing axes of a smaller operand directly after the batch axis, which equals numpy's rule
    without a batch."""
    if not call.inputs:
        raise call.config.error("it is called without any tensor.")
    rank = max(len(call.builder.shape(x)) for x in call.inputs)

    def fitted(shape: Shape) -> Shape:
        return (1,) * (rank - len(shape)) + shape

    return tuple(
        x if len(call.builder.shape(x)) == rank else call.one(Reshape(fitted(call.builder.shape(x))), x)
        for x in call.inputs
    )


def chain(call: Call, function: str) -> str:
    """Combines the inputs pairwise from left to right, as Keras does."""
    first, *others = same_rank(call)
    for other in others:
        first = call.one(Binary(function), first, other)
    return first


def _merge(function: str) -> LayerKind:
    return LayerKind(single(lambda call: chain(call, function)))


def _subtract(call: Call) -> str:
    if len(call.inputs) != 2:
        raise call.config.error(f"it subtracts two tensors, but is called with {len(call.inputs)}.")
    return chain(call, "subtract")


def _average(call: Call) -> str:
    total = chain(call, "add")
    return scaled(call, total, "multiply", "share", np.asarray(1 / len(call.inputs)))


def _custom_scale(call: Call) -> str:
    """The CustomScaleLayer of InceptionResNetV2 in keras.applications: the first input plus a scaled second one."""
    if len(call.inputs) != 2:
        raise call.config.error(f"it adds two tensors, but is called with {len(call.inputs)}.")
    first, second = same_rank(call)
    part = scaled(call, second, "multiply", "scale", np.asarray(call.config.number("scale")))
    return call.one(Binary("add"), first, part)


def concatenated(call: Call, axis: int) -> str:
    if not call.inputs:
        raise call.config.error("it is called without any tensor.")
    (along,) = sample_axes(call.config, (axis,), call.builder.shape(call.inputs[0]))
    return call.one(Concatenate(along), *of_one_kind(call))


def of_one_kind(call: Call) -> tuple[str, ...]:
    """Converts the inputs to one type: floats if any is float, otherwise integers of one width."""
    tensors = [call.builder.tensor(x) for x in call.inputs]
    if not all(tensor.is_whole for tensor in tensors):
        return tuple(call.builder.as_float(x) for x in call.inputs)
    if len({tensor.dtype for tensor in tensors}) == 1:
        return call.inputs
    return tuple(call.convert(x, INT32) for x in call.inputs)


LAYERS = {
    "Add": _merge("add"),
    "Multiply": _merge("multiply"),
    "Maximum": _merge("maximum"),
    "Minimum": _merge("minimum"),
    "Subtract": LayerKind(single(_subtract)),
    "Average": LayerKind(single(_average)),
    "CustomScaleLayer": LayerKind(single(_custom_scale)),
    "Concatenate": LayerKind(
        single(lambda call: concatenated(call, call.config.one("axis", -1))),
    ),
}

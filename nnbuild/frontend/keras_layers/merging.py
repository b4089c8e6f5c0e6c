"""Layers that join several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single
from nnbuild.frontend.keras_layers.normalization import scaled
from nnbuild.model.graph import Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.known import Known
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.whole import Whole


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
    return _joined(call, function, same_rank(call))


def _joined(call: Call, function: str, names: Sequence[str]) -> str:
    """Combines tensors pairwise from left to right, as Keras does."""
    first, *others = names
    for other in others:
        first = call.one(Binary(function), first, other)
    return first


def _joined_mask(call: Call, function: str, masks: Sequence[str]) -> str:
    made, *others = masks
    for other in others:
        made = call.one(Whole(function), made, other)
    return made


def _with_mask(build: Callable[[Call], str]) -> LayerKind:
    """The result is masked where all operands are, in Keras 3; in Keras 2 where any is."""

    def built(call: Call) -> str:
        made, masks = build(call), [call.builder.masks.get(x) for x in call.inputs]
        known = [mask for mask in masks if mask is not None]
        if known and made not in call.builder.masks and (len(known) == len(masks) or not call.dialect.keras3):
            call.builder.masks[made] = _joined_mask(call, "or" if call.dialect.keras3 else "and", known)
        return made

    return LayerKind(single(built), takes_mask=True)


def _masked(function: str) -> LayerKind:
    """Keras 3 gives masked steps the value of 1 in products, and that of the other operand in maxima and minima."""

    def build(call: Call) -> str:
        masks = [call.builder.masks.get(x) for x in call.inputs]
        if not call.dialect.keras3 or not any(masks) or len(call.inputs) < 2:
            return chain(call, function)
        names, shown = same_rank(call), [mask and _over_features(call, mask) for mask in masks]
        merge = _product if function == "multiply" else partial(_extreme, function=function)
        made, mask = merge(call, names, shown)
        if mask is not None:
            steps = call.builder.shape(mask)[:-1]
            call.builder.masks[made] = call.one(Reshape(steps), mask)
        return made

    return replace(_with_mask(build), sees_mask=True)


def _over_features(call: Call, mask: str) -> str:
    return call.one(Reshape((*call.builder.shape(mask), 1)), mask)


def _product(call: Call, names: Sequence[str], masks: Sequence[str | None]) -> tuple[str, str | None]:
    ones = call.constant("one", lambda: np.ones((1,), np.float32))
    given = [
        x if mask is None else call.one(Select(), mask, x, other=ones) for x, mask in zip(names, masks, strict=True)
    ]
    made = _joined(call, "multiply", given)
    known = [mask for mask in masks if mask is not None]
    if len(known) < len(masks):
        return made, None
    shown = _joined_mask(call, "or", known)
    zeros = call.constant("nothing", lambda: np.zeros((1,), np.float32))
    return call.one(Select(), shown, made, other=zeros), shown


def _extreme(call: Call, names: Sequence[str], masks: Sequence[str | None], function: str) -> tuple[str, str | None]:
    (made, *others), (shown, *rest) = names, masks
    for x, mask in zip(others, rest, strict=True):
        seen = x if mask is None else call.one(Select(), mask, x, made)
        made = made if shown is None else call.one(Select(), shown, made, seen)
        shown = call.one(Whole("or"), shown, mask) if shown is not None and mask is not None else None
        made = call.one(Binary(function), made, seen)
    return made, shown


def _merge(function: str) -> LayerKind:
    return _with_mask(lambda call: chain(call, function))


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


def _concatenated_layer(call: Call) -> str:
    """Along features masks are joined (in Keras 3 an operand without one counts as seen), along time put together."""
    axis = call.config.one("axis", -1)
    made, masks = concatenated(call, axis), [call.builder.masks.get(x) for x in call.inputs]
    known, rank = [mask for mask in masks if mask is not None], len(call.builder.shape(made))
    if not known or rank != 2:
        return made
    if axis in (-1, rank):
        if len(known) == len(masks) or not call.dialect.keras3:
            call.builder.masks[made] = _joined_mask(call, "or" if call.dialect.keras3 else "and", known)
    elif len(known) == len(masks):
        call.builder.masks[made] = call.one(Concatenate(0), *known)
    else:
        steps = [call.builder.shape(x)[0] for x in call.inputs]
        seen = [mask or _seen(call, size, x) for mask, size, x in zip(masks, steps, call.inputs, strict=True)]
        call.builder.masks[made] = call.one(Concatenate(0), *seen)
    return made


def _seen(call: Call, steps: int, beside: str) -> str:
    return call.one(Known(), beside, values=call.constant(f"all {steps} steps", lambda: np.ones(steps, np.int8)))


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
    "Multiply": _masked("multiply"),
    "Maximum": _masked("maximum"),
    "Minimum": _masked("minimum"),
    "Subtract": _with_mask(_subtract),
    "Average": _with_mask(_average),
    "CustomScaleLayer": LayerKind(single(_custom_scale)),
    "Concatenate": LayerKind(single(_concatenated_layer), takes_mask=True),
    "TFDConcat": LayerKind(single(_concatenated_layer), takes_mask=True),  # of Keras' FeatureSpace
}

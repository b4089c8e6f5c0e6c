"""How operations apply to values whose axes are stored in another order; None where they need their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Protocol

from nnbuild.model.graph import Array, Constant, Op
from nnbuild.model.views import View, stored
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.layout import (
    Maker,
    Value,
    arranged,
    broadcast,
    channels_together,
    common_order,
    gathered,
    index_of,
    seen,
    whole,
    without,
    without_ones,
)
from nnbuild.ops.pad import Pad
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.whole import Whole


class Draft(Maker, Protocol):
    """The graph that is built again."""

    def constant(self, role: str) -> Constant: ...

    def made(self, attributes: Attributes, names: Sequence[str], view: View, **constants: Array) -> Value: ...


Rule = Callable[[Draft, Op[Any], list[Value]], Value | None]


def _each(draft: Draft, op: Op[Activation | Convert], inputs: list[Value]) -> Value:
    return draft.made(op.attributes, [inputs[0].name], inputs[0].view)


def _affine(draft: Draft, op: Op[Affine], inputs: list[Value]) -> Value | None:
    axis = len(op.outer) + op.attributes.axis
    if len(inputs[0].view.axes[axis]) > 1:
        return None
    x, order = whole(draft, inputs[0])
    return draft.made(replace(op.attributes, axis=order.index(axis)), [x.name], x.view)


def _sides(*roles: str) -> Rule:
    """Operands that are broadcast to each other, with these roles as constants."""

    def rule(draft: Draft, op: Op[Any], inputs: list[Value]) -> Value | None:
        held = {role: draft.constant(role) for role in op.constants}
        if any(each.quant is not None and each.quant.axis is not None for each in held.values()):
            return None
        computed = iter(inputs)
        items = [held[role].data if role in held else next(computed) for role in roles]
        view, laid = broadcast(draft, channels_together(draft, items))
        turned = {r: without_ones(data) for r, data in zip(roles, laid, strict=True) if not isinstance(data, str)}
        return draft.made(op.attributes, [name for name in laid if isinstance(name, str)], view, **turned)

    return rule


def _prelu(draft: Draft, op: Op[PReLU], inputs: list[Value]) -> Value:
    slope = draft.constant("slope").data
    view, (name, laid) = broadcast(draft, [inputs[0], slope.reshape((1,) * len(op.outer) + slope.shape)])
    assert isinstance(name, str) and not isinstance(laid, str)
    return draft.made(op.attributes, [name], view, slope=laid)


def _concatenate(draft: Draft, op: Op[Concatenate], inputs: list[Value]) -> Value:
    order, axis = common_order(inputs), len(op.outer) + op.attributes.axis
    names = [whole(draft, x, order)[0].name for x in inputs]
    sizes = list(inputs[0].shape)
    sizes[axis] = sum(x.shape[axis] for x in inputs)
    return draft.made(replace(op.attributes, axis=order.index(axis)), names, stored(tuple(sizes), order))


def _softmax(draft: Draft, op: Op[Softmax], inputs: list[Value]) -> Value:
    x, place, shape = gathered(draft, inputs[0], _axes(op))
    return draft.made(replace(op.attributes, axis=place, count=1), [seen(draft, x.name, shape)], x.view)


def _reduce(draft: Draft, op: Op[Reduce], inputs: list[Value]) -> Value:
    axes, keep = _axes(op), op.attributes.keep
    x, place, shape = gathered(draft, inputs[0], axes)
    view = without(x.view, axes, keep)
    attributes = replace(op.attributes, axis=place, count=1, keep=False)
    return draft.made(attributes, [seen(draft, x.name, shape)], view)


def _axes(op: Op[Softmax | Reduce]) -> range:
    first = len(op.outer) + op.attributes.axis
    return range(first, first + op.attributes.count)


def _moving(draft: Draft, op: Op[Slice | Pad | Repeat], inputs: list[Value]) -> Value | None:
    """Operations with an amount for every axis."""
    if op.constants:
        return None
    x, order = whole(draft, inputs[0])
    first, made = len(op.outer), op.attributes

    def turned(values: tuple[Any, ...], outer: tuple[Any, ...]) -> tuple[Any, ...]:
        every = (*outer, *values)
        return tuple(every[axis] for axis in order)

    zeros, ones = (0,) * first, (1,) * first
    match made:
        case Slice(begins, steps, counts):
            made = Slice(turned(begins, zeros), turned(steps, ones), turned(counts, op.outer))
        case Pad(amounts):
            made = replace(made, amounts=turned(amounts, ((0, 0),) * first))
        case Repeat(times):
            made = Repeat(turned(times, ones))
    (shape,) = made.shapes([draft.tensor(x.name).shape], {})
    own = tuple(shape[order.index(axis)] for axis in range(len(order)))
    return draft.made(made, [x.name], stored(own, order))


def _dense(draft: Draft, op: Op[Dense], inputs: list[Value]) -> Value:
    """The order of its inputs becomes that of its weights."""
    x, kernel = arranged(draft, inputs[0], [], [-1], free=True), draft.constant("kernel").data
    depth, out = kernel.shape
    *others, last = x.view.axes
    rows = tuple(n for a, n in enumerate(x.view.atoms) if a not in last)
    view = View((*rows, *((out,) if out > 1 else ())), (*others, (len(rows),) if out > 1 else ()))
    shape = draft.tensor(x.name).shape
    count = x.view.size // depth
    name = x.name if shape[-1] == depth else seen(draft, x.name, (count, depth) if count > 1 else (depth,))
    return draft.made(op.attributes, [name], view, kernel=kernel[index_of(x.view, -1)])


def _layer_norm(draft: Draft, op: Op[LayerNorm], inputs: list[Value]) -> Value:
    rank = len(inputs[0].shape)
    axes = range(rank - op.attributes.count, rank)
    x = arranged(draft, inputs[0], [], axes, free=True)
    row = [a for axis in axes for a in x.view.axes[axis]]
    cuts, turned = [x.view.atoms[a] for a in row], sorted(range(len(row)), key=row.__getitem__)
    size, constants = prod(cuts), {}
    for role in op.constants:
        constants[role] = draft.constant(role).data.reshape(cuts).transpose(turned).reshape(-1)
    rows = x.view.size // size
    name = seen(draft, x.name, (rows, size) if rows > 1 else (size,))
    return draft.made(replace(op.attributes, count=1), [name], x.view, **constants)


RULES: Mapping[type[Attributes], Rule] = {
    Activation: _each,
    Affine: _affine,
    Binary: _sides("left", "right"),
    Compare: _sides("left", "right"),
    Concatenate: _concatenate,
    Convert: _each,
    Dense: _dense,
    LayerNorm: _layer_norm,
    PReLU: _prelu,
    Pad: _moving,
    Reduce: _reduce,
    Repeat: _moving,
    Select: _sides("condition", "chosen", "other"),
    Slice: _moving,
    Softmax: _softmax,
    Whole: _sides("left", "right"),
}

"""Fuses normalizations of vectors, which model files spell as a division by the root of their squares' sum or mean,
into one operation for integers.

Computed one by one, the squares of vectors of different lengths would need a range that leaves no resolution for the
short ones, and the reciprocal of a zero vector's length has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.passes.fold_affine import fold_affine

MIN_SQUARED_NORM = 1e-12
"""Added to the squares where the file adds nothing; Keras uses the same bound."""


@dataclass(frozen=True)
class _Norm:
    """Vectors `x`, the operations that find their lengths, and what is added to the mean or sum of their squares."""

    x: str
    steps: Sequence[Op]
    epsilon: float
    mean: bool
    centred: bool = False


def fuse_norms(graph: Graph) -> Graph:
    """The graph with `LayerNorm`s in place of normalizations along the last axis: of L2, of the root mean square, and
    of mean and variance."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    readers: dict[str, list[Op]] = {}
    for op in graph.ops:
        for name in op.inputs:
            readers.setdefault(name, []).append(op)

    def alone(steps: Sequence[Op], last: Op) -> bool:
        """Whether nothing else reads what these steps compute."""
        made = {name for step in steps for name in step.outputs}
        return not made & set(graph.outputs) and all(
            any(reader is one for one in (*steps, last)) for name in made for reader in readers[name]
        )

    for index, op in enumerate(graph.ops):
        found = _find_norm(graph, op, makers)
        if found is None or not alone(found.steps, op):
            continue
        return fuse_norms(_fused(graph, index, _with_centre(graph, found, op, makers, alone)))
    return fold_affine(graph)


def _fused(graph: Graph, index: int, found: _Norm) -> Graph:
    constants, ops = dict(graph.constants), list(graph.ops)
    size, op = graph.tensors[found.x].shape[-1], graph.ops[index]
    held = {} if found.mean else {"scale": f"{op.name}/length"}
    for name in held.values():
        constants[name] = Constant(name, np.full((size,), 1 / np.sqrt(size), np.float32))
    whole = LayerNorm(1, found.epsilon if found.mean else found.epsilon / size, centred=found.centred)
    ops[index] = replace(op, attributes=whole, inputs=(found.x,), constants=held)
    ops = [other for other in ops if all(other is not step for step in found.steps)]
    return _drop_unused(replace(graph, ops=tuple(ops), constants=constants))


def _drop_unused(graph: Graph) -> Graph:
    """Removes tensors and constants that nothing produces or reads any more."""
    made = {*graph.inputs, *(s.before for s in graph.states), *(name for op in graph.ops for name in op.outputs)}
    held = {name for op in graph.ops for name in op.constants.values()}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in made}
    return replace(graph, tensors=tensors, constants={n: c for n, c in graph.constants.items() if n in held})


def _with_centre(
    graph: Graph, found: _Norm, op: Op, makers: dict[str, Op], alone: Callable[[Sequence[Op], Op], bool]
) -> _Norm:
    """The same of vectors less their mean, if that is what is normalized."""
    less = makers.get(found.x)
    if less is None or not found.mean or not _is_plain(less, "subtract") or len(less.inputs) != 2:
        return found
    x, name = less.inputs
    shape, steps = graph.tensors[x].shape, [less]
    while name != x:
        step = makers.get(name)
        if step is None or not (isinstance(step.attributes, Reshape) or _reduces(graph, step, "mean", shape)):
            return found
        steps.append(step)
        name = step.inputs[0]
    if sum(isinstance(step.attributes, Reduce) for step in steps) != 1:
        return found
    whole = replace(found, x=x, steps=(*found.steps, *steps), centred=True)
    return whole if graph.tensors[less.outputs[0]].shape == shape and alone(whole.steps, op) else found


def _is_plain(op: Op, function: str) -> bool:
    attributes = op.attributes
    return (
        isinstance(attributes, Binary)
        and attributes.function == function
        and attributes.clamp == NO_CLAMP
        and not op.outer
    )


def _reduces(graph: Graph, op: Op, function: str, shape: Shape) -> bool:
    """Whether this reduces the vectors of a tensor of this shape, which may be listed along other axes."""
    match op.attributes:
        case Reduce(name, axis, 1, _):
            listed = graph.tensors[op.inputs[0]].shape
            return name == function and axis == len(listed) - 1 and _lists(listed, shape)
    return False


def _lists(listed: Shape, shape: Shape) -> bool:
    """Whether both shapes hold the same vectors in the same order."""
    return prod(listed) == prod(shape) and listed[-1] == shape[-1]


def _find_norm(graph: Graph, op: Op, makers: dict[str, Op]) -> _Norm | None:
    """What a product or quotient normalizes, or None."""
    if len(op.inputs) != 2:
        return None
    if _is_plain(op, "divide"):
        return _Walk(graph, makers, op.inputs[0], inverse=False).back(op.inputs[1])
    if not _is_plain(op, "multiply"):
        return None
    pairs = (op.inputs, op.inputs[::-1])
    walks = (_Walk(graph, makers, x, inverse=True).back(factor) for x, factor in pairs)
    return next((found for found in walks if found is not None), None)


class _Walk:
    """From a factor or divisor back to the squares of x."""

    def __init__(self, graph: Graph, makers: dict[str, Op], x: str, inverse: bool) -> None:
        self._graph, self._makers, self._x = graph, makers, x
        self._inverse = inverse
        """Whether a reciprocal has yet to be met."""
        self._rooted = self._reduced = self._mean = False
        self._epsilon = MIN_SQUARED_NORM

    def back(self, name: str) -> _Norm | None:
        shape, steps = self._graph.tensors[self._x].shape, list[Op]()
        if self._graph.tensors[name].quant is not None:
            return None
        if self._graph.tensors[name].shape not in ((*shape[:-1], 1), (1,), shape):
            return None
        while name in self._makers and not self._makers[name].outer:
            op = self._makers[name]
            steps.append(op)
            if self._squares(op):
                found = _Norm(self._x, tuple(steps), self._epsilon, self._mean)
                return found if self._rooted and self._reduced and not self._inverse else None
            if not self._passes(op, name):
                return None
            name = op.inputs[0]
        return None

    def _squares(self, op: Op) -> bool:
        by_itself = _is_plain(op, "multiply") and op.inputs == (self._x, self._x)
        return by_itself or (
            isinstance(op.attributes, Activation) and self._is(op, "square") and op.inputs == (self._x,)
        )

    @staticmethod
    def _is(op: Op, function: str) -> bool:
        return isinstance(op.attributes, Activation) and op.attributes.function == function

    def _passes(self, op: Op, name: str) -> bool:
        """Takes one step back; False where it is none of a normalization."""
        shape = self._graph.tensors[self._x].shape
        if self._reduced:
            return isinstance(op.attributes, Reshape)
        match op.attributes:
            case Activation("rsqrt", _) if self._inverse and not self._rooted:
                self._inverse, self._rooted = False, True
            case Activation("sqrt", _) if not self._inverse and not self._rooted:
                self._rooted = True
            case Activation("clamp", (low, high)) if not self._inverse and not self._rooted and low > 0:
                self._epsilon = float(low) ** 2
                return bool(np.isinf(high))
            case Binary(function, _) if len(op.inputs) == 1:
                return self._bounded(op, function)
            case Reduce("sum" | "mean" as function, _, _, _):
                self._reduced, self._mean = True, function == "mean"
                return _reduces(self._graph, op, function, shape)
            case Repeat(times):
                return prod(times) == times[-1] == shape[-1]
            case Reshape():
                return prod(self._graph.tensors[name].shape) in (prod(shape[:-1]), prod(shape))
            case _:
                return False
        return True

    def _bounded(self, op: Op, function: str) -> bool:
        """A bound, a summand, or the reciprocal of a length."""
        ((role, held),) = op.constants.items()
        bound = self._graph.constants[held].data
        if bound.size != 1 or bound.item() <= 0:
            return False
        number = float(bound.item())
        if function == "divide":
            reciprocal = role == "left" and number == 1 and self._inverse and not self._rooted
            self._inverse = self._inverse and not reciprocal
            return reciprocal
        if function in ("add", "maximum") and self._rooted:
            self._epsilon = number
        elif function == "maximum" and not self._inverse:
            self._epsilon = number**2
        elif function == "minimum" and self._inverse:
            self._epsilon = max(MIN_SQUARED_NORM, number**-2.0)
        else:
            return False
        return True

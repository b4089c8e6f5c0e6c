"""Fuses normalizations of vectors, which model files spell as a division by the root of their squares' sum or mean,
into one operation.

In integers that is more than speed: computed one by one, the squares of vectors of different lengths would need a range
that leaves no resolution for the short ones, and the reciprocal of a zero vector's length has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.reduce import Reduce
from nnbuild.passes.additions import Additions
from nnbuild.passes.fold_affine import MOST_SPREAD, fold_affine
from nnbuild.passes.readers import Readers
from nnbuild.passes.remove_dead import remove_dead
from nnbuild.passes.rows import Reduced, is_move, is_same_order, laid_out, origins, same_vectors

MIN_SQUARED_NORM = 1e-12
"""Added to the squares where the file adds nothing; Keras uses the same bound."""

TINY = float(np.finfo(np.float32).tiny)
"""What is added at least: the square of a smaller bound would be 0 in float32, and a vector of zeros divided by it."""


@dataclass(frozen=True)
class _Norm:
    """Vectors `x`, the operations that find their lengths, and what is added to the mean or sum of their squares.

    `rows` has the number of its vector for each value, in the shape of the result. It is `exact` where nothing else but
    an addition of epsilon keeps the root from zero.
    """

    x: str
    rows: Array
    size: int
    steps: Sequence[Op]
    epsilon: float
    mean: bool
    exact: bool
    centred: bool = False


def fuse_norms(graph: Graph) -> Graph:
    """The graph, which is to have integers, with `LayerNorm`s in place of normalizations of vectors: of L2, of the root
    mean square, and of mean and variance."""
    return fold_affine(_fused_in(graph, everything=True), MOST_SPREAD)


def fuse_exact_norms(graph: Graph) -> Graph:
    """Those whose `LayerNorm` computes the same floats, roundings aside."""
    return _fused_in(graph, everything=False)


def _fused_in(graph: Graph, everything: bool) -> Graph:
    while norms := _norms(graph, everything):
        new, ops = Additions(graph), list[Op]()
        steps = {step.name for norm in norms.values() for step in norm.steps}
        for op in graph.ops:
            ops += _fused(new, op, norms[op.name]) if op.name in norms else () if op.name in steps else (op,)
        graph = remove_dead(new.finish(ops))
    return graph


def _norms(graph: Graph, everything: bool) -> dict[str, _Norm]:
    """What operations normalize, by their names; none of them is a step of another."""
    readers, outputs = Readers(graph), set(graph.outputs)
    makers = readers.makers

    def alone(steps: Sequence[Op], last: Op) -> bool:
        """Whether nothing else reads what these steps compute."""
        made = {name for step in steps for name in step.outputs}
        users = [reader for name in made for reader in readers.of(name)]
        return not made & outputs and all(any(user is one for one in (*steps, last)) for user in users)

    norms, taken = dict[str, _Norm](), set[str]()
    for op in graph.ops:
        found = _find_norm(graph, op, makers)
        if found is None or not alone(found.steps, op) or not (everything or (found.exact and found.mean)):
            continue
        found = _with_centre(graph, found, op, makers, alone)
        own = {op.name, *(step.name for step in found.steps)}
        if not own & taken and laid_out(found.rows, found.size) is not None:
            norms[op.name] = found
            taken |= own
    return norms


def _fused(new: Additions, op: Op, found: _Norm) -> list[Op]:
    size, ops, moves = found.size, list[Op](), laid_out(found.rows, found.size)
    assert moves is not None
    held = {} if found.mean else {"scale": np.full((size,), 1 / np.sqrt(size), np.float32)}
    epsilon = max(found.epsilon if found.mean else found.epsilon / size, TINY)
    name = new.seen(ops, op, found.x, found.rows.shape)
    for move in moves[0]:
        ops.append(new.op(op, move, name))
        name = ops[-1].outputs[0]
    ops.append(replace(new.op(op, LayerNorm(1, epsilon, centred=found.centred), name, **held), name=op.name))
    for move in moves[1]:
        ops.append(new.op(op, move, ops[-1].outputs[0]))
    ops[-1] = replace(ops[-1], outputs=op.outputs)
    return ops


def _with_centre(
    graph: Graph, found: _Norm, op: Op, makers: dict[str, Op], alone: Callable[[Sequence[Op], Op], bool]
) -> _Norm:
    """The same of vectors less their mean, if that is what is normalized."""
    start, moves = list(origins(makers, found.x).items())[-1]
    less = makers.get(start)
    if less is None or not found.mean or not _is_plain(less, "subtract") or len(less.inputs) != 2:
        return found
    x, shape = less.inputs[0], graph.tensors[less.inputs[0]].shape
    end, after = list(origins(makers, less.inputs[1]).items())[-1]
    step = makers.get(end)
    if shape != graph.tensors[start].shape or step is None or not all(map(is_same_order, moves)):
        return found
    if step.outer or not isinstance(step.attributes, Reduce) or step.attributes.function != "mean":
        return found
    shared = _shared(makers, x, step.inputs[0])
    if shared is None:
        return found
    name, seen, before = shared
    rows = Reduced(step, before, after).rows_of(graph, name, seen, shape)
    whole = replace(found, x=x, steps=(*found.steps, *moves, less, step, *after), centred=True)
    return whole if rows is not None and same_vectors(rows, found.rows) and alone(whole.steps, op) else found


def _shared(makers: dict[str, Op], x: str, other: str) -> tuple[str, tuple[Op, ...], tuple[Op, ...]] | None:
    """A tensor that both hold the values of, and the moves from it to each."""
    one, another = origins(makers, x), origins(makers, other)
    return next(((name, one[name], another[name]) for name in one if name in another), None)


def _is_plain(op: Op, function: str) -> bool:
    attributes = op.attributes
    return (
        isinstance(attributes, Binary)
        and attributes.function == function
        and attributes.clamp == NO_CLAMP
        and not op.outer
    )


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
        self._rooted = False
        self._reduced: Op | None = None
        self._before, self._after = list[Op](), list[Op]()
        """The moves of the squares and of their sums, the last one first."""
        self._epsilon = MIN_SQUARED_NORM
        self._bounds = list[str]()
        """What keeps the length from zero: functions within the root, or "outside" of it."""

    def back(self, name: str) -> _Norm | None:
        if self._graph.tensors[name].quant is not None:
            return None
        steps = list[Op]()
        while name in self._makers and not self._makers[name].outer:
            op = self._makers[name]
            steps.append(op)
            if self._squares(op):
                return self._found(op, tuple(steps))
            if not self._passes(op):
                return None
            name = op.inputs[0]
        return None

    def _found(self, squares: Op, steps: tuple[Op, ...]) -> _Norm | None:
        shared = _shared(self._makers, self._x, squares.inputs[0])
        if shared is None or self._reduced is None or not self._rooted or self._inverse:
            return None
        name, seen, before = shared
        reduced = Reduced(self._reduced, (*before, *self._before[::-1]), tuple(self._after[::-1]))
        shape = self._graph.tensors[self._x].shape
        rows = reduced.rows_of(self._graph, name, seen, shape)
        if rows is None:
            return None
        size = rows.size // prod(self._graph.tensors[self._reduced.outputs[0]].shape)
        mean = isinstance(self._reduced.attributes, Reduce) and self._reduced.attributes.function == "mean"
        return _Norm(self._x, rows, size, steps, self._epsilon, mean, self._bounds == ["add"])

    def _squares(self, op: Op) -> bool:
        if isinstance(op.attributes, Activation):
            return self._is(op, "square")
        return _is_plain(op, "multiply") and len(op.inputs) == 2 and self._same(*op.inputs)

    def _same(self, one: str, other: str) -> bool:
        """Whether both tensors have the same values in the same order."""
        shared = _shared(self._makers, one, other)
        alike = self._graph.tensors[one].shape == self._graph.tensors[other].shape
        return alike and shared is not None and all(map(is_same_order, (*shared[1], *shared[2])))

    @staticmethod
    def _is(op: Op, function: str) -> bool:
        return isinstance(op.attributes, Activation) and op.attributes.function == function

    def _passes(self, op: Op) -> bool:
        """Takes one step back; False where it is none of a normalization."""
        if is_move(op):
            (self._after if self._reduced is None else self._before).append(op)
            return True
        if self._reduced is not None:
            return False
        match op.attributes:
            case Activation("rsqrt", _) if self._inverse and not self._rooted:
                self._inverse, self._rooted = False, True
            case Activation("sqrt", _) if not self._inverse and not self._rooted:
                self._rooted = True
            case Activation("clamp", (low, high)) if low > 0 and np.isinf(high):
                return self._bounded("maximum", float(low))
            case Activation("clamp", (low, high)) if high > 0 and np.isinf(low):
                return self._bounded("minimum", float(high))
            case Binary(function, _) if len(op.inputs) == 1:
                return self._by_constant(op, function)
            case Reduce("sum" | "mean"):
                self._reduced = op
            case _:
                return False
        return True

    def _by_constant(self, op: Op, function: str) -> bool:
        """A summand, or the reciprocal of a length."""
        ((role, held),) = op.constants.items()
        bound = self._graph.constants[held].data
        if bound.size != 1 or bound.item() <= 0 or bound.ndim > len(self._graph.tensors[op.inputs[0]].shape):
            return False
        if function == "divide":
            reciprocal = role == "left" and bound.item() == 1 and self._inverse and not self._rooted
            self._inverse = self._inverse and not reciprocal
            return reciprocal
        return self._bounded(function, float(bound.item()))

    def _bounded(self, function: str, number: float) -> bool:
        """What keeps the length from zero."""
        self._bounds.append(function if self._rooted else "outside")
        if function in ("add", "maximum") and self._rooted:
            self._epsilon = number
        elif function == "maximum" and not self._inverse:
            self._epsilon = number**2
        elif function == "minimum" and self._inverse:
            self._epsilon = max(MIN_SQUARED_NORM, number**-2.0)
        else:
            return False
        return True

"""Takes factors out of normalizations as Keras' layers are exported: x * f + (shift - mean * f), where f is the
reciprocal of a deviation times a gamma, becomes (x - mean) / deviation * gamma + shift.

That takes fewer operations, rounds less, and shows the passes that follow what is normalized. Exporters move the parts
into any layout before they meet, so each sum is written out: which elements of which tensors every product has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.reduce import Reduce
from nnbuild.passes.additions import Additions
from nnbuild.passes.readers import Readers, computes
from nnbuild.passes.rows import is_move
from nnbuild.passes.terms import Term, narrowed, of_last_axes, split, terms_of

LARGEST = 2**22
"""Elements of a tensor that is looked into."""


def factor_out(graph: Graph) -> Graph:
    for find in (_of_sum, _of_product):
        readers, new, ops = Readers(graph), Additions(graph), list[Op]()
        for op in graph.ops:
            found = next(find(readers, op), None)
            ops += (op,) if found is None else _rewritten(readers, new, op, found)
        graph = new.finish(ops)
    return graph


@dataclass(frozen=True)
class _Normalization:
    """(x - mean) * factor * gamma + shift: x is seen in a shape in which the mean and the factor have one element for
    all of an axis, or one for each; the constants are of its last axes. The moves lead from x to the result."""

    x: str
    moves: tuple[Op, ...]
    shape: Shape
    mean: tuple[str, Shape] | None
    factor: tuple[str, Shape]
    gamma: Array
    shift: Array


def _of_sum(readers: Readers, op: Op) -> Iterator[_Normalization]:
    """x * factor * gamma + (shift - mean * factor * gamma)."""
    if not any(computes(op, function, 2, clamped=True) for function in ("add", "subtract")):
        return
    size = readers.size(op.outputs[0])
    for name in op.inputs if size <= LARGEST else ():
        after = list[Op]()
        while (part := readers.inner(name)) is not None and is_move(part):
            after.insert(0, part)
            name = part.inputs[0]
        if part is None or not computes(part, "multiply", 2):
            continue
        sides = [side for side in part.inputs if readers.size(side) == size]
        found = [each for side in sides for each in _of_side(readers, op, side, after)]
        yield from sorted(found, key=lambda each: not _is_own_mean(readers, each))


def _of_side(readers: Readers, op: Op, name: str, after: Sequence[Op]) -> Iterator[_Normalization]:
    """Of what a product has, or of what it was before it was moved."""
    moves, size = tuple(after), readers.size(name)
    while True:
        terms = terms_of(readers, op, name)
        found = _parts(readers, name, moves, terms) if terms is not None else None
        if found is not None:
            yield found
        maker = readers.makers.get(name)
        if maker is None or not is_move(maker) or readers.size(maker.inputs[0]) != size:
            return
        moves, name = (maker, *moves), maker.inputs[0]


def _is_own_mean(readers: Readers, found: _Normalization) -> bool:
    """Whether the mean is one of x as it lies there."""
    maker = readers.makers.get(found.mean[0]) if found.mean is not None else None
    return maker is not None and isinstance(maker.attributes, Reduce) and readers.root(maker.inputs[0]) == found.x


def _of_product(readers: Readers, op: Op) -> Iterator[_Normalization]:
    """x * (factor * gamma), where the two are as large as x only together: of root mean squares."""
    size = readers.size(op.outputs[0])
    if not computes(op, "multiply", 2, clamped=True) or size > LARGEST:
        return
    for name, scale in permutations(op.inputs):
        if readers.size(name) == size == readers.size(scale) and readers.inner(scale) is not None:
            x = readers.root(name)
            terms = terms_of(readers, op, x) or ()
            found = _normalization(readers, x, (), terms[0]) if len(terms) == 1 else None
            if found is not None and prod(found.factor[1]) < size and (found.gamma != 1).any():
                yield found


def _parts(readers: Readers, x: str, moves: tuple[Op, ...], terms: Sequence[Term]) -> _Normalization | None:
    """The product with x, the same product with its negated mean, and constants."""
    scaled = [term for term in terms if x in term.places]
    others = [term for term in terms if x not in term.places and term.places]
    if len(scaled) != 1 or len(others) != 1:
        return None
    (whole,), (less,) = scaled, others
    shared = whole.places.keys() & less.places.keys()
    if any(not np.array_equal(less.places[name], whole.places[name]) for name in shared):
        return None
    if not np.array_equal(less.constant, -whole.constant) or shared != whole.places.keys() - {x}:
        return None
    means = {name: at for name, at in less.places.items() if name not in shared}
    shift = sum((term.constant for term in terms if not term.places), np.zeros(whole.constant.shape))
    return _normalization(readers, x, moves, whole, means, shift) if len(means) == 1 else None


def _normalization(
    readers: Readers,
    x: str,
    moves: tuple[Op, ...],
    whole: Term,
    means: dict[str, Array] | None = None,
    shift: Array | float = 0.0,
) -> _Normalization | None:
    """Of a product of x and one factor, less the mean."""
    factors = {name: at for name, at in whole.places.items() if name != x}
    own = whole.places.get(x)
    if len(factors) != 1 or own is None or not np.array_equal(np.sort(own.reshape(-1)), np.arange(own.size)):
        return None
    turned = not np.array_equal(own.reshape(-1), np.arange(own.size))
    seen, back = (readers.shape(x), np.argsort(own.reshape(-1))) if turned else (own.shape, np.arange(own.size))

    def laid_out(values: Array) -> Array:
        """As x is."""
        return np.broadcast_to(values, own.shape).reshape(-1)[back].reshape(seen)

    met = {name: laid_out(places) for name, places in (factors | (means or {})).items()}
    shape = split(*met.values())
    fitted = [(name, _fitting(readers, name, places.reshape(shape))) for name, places in met.items()]
    sized = [(name, size) for name, size in fitted if size is not None]
    if len(sized) < len(met):
        return None
    gamma, shift = of_last_axes(laid_out(whole.constant), laid_out(np.asarray(shift)))
    return _Normalization(x, moves if turned else (), shape, sized[1] if means else None, sized[0], gamma, shift)


def _fitting(readers: Readers, name: str, places: Array) -> Shape | None:
    """The shape in which all of a tensor's elements, in their order, are broadcast to these places."""
    small = narrowed(places)
    whole = small.size == readers.size(name) and np.array_equal(small.reshape(-1), np.arange(small.size))
    return small.shape if whole else None


def _rewritten(readers: Readers, new: Additions, last: Op, found: _Normalization) -> list[Op]:
    chain, whole = list[Op](), readers.shape(last.outputs[0])
    own = readers.shape(found.x) if found.moves else whole

    def step(attributes: Attributes, *inputs: str, **constants: Array) -> str:
        chain.append(new.op(last, attributes, *inputs, **constants))
        return chain[-1].outputs[0]

    def seen(name: str, shape: Shape) -> str:
        return new.seen(chain, last, name, shape)

    made = seen(found.x, found.shape)
    if found.mean is not None:
        made = step(Binary("subtract"), made, seen(*found.mean))
    made = step(Binary("multiply"), made, seen(*found.factor))
    made = seen(made, _with_last(own, found.gamma.size))
    for function, values, idle in (("multiply", found.gamma, 1.0), ("add", found.shift, 0.0)):
        if (values != idle).any():
            made = step(Binary(function), made, right=values)
    if isinstance(last.attributes, Binary) and last.attributes.clamp != NO_CLAMP:
        made = step(Activation("clamp", last.attributes.clamp.ends), made)
    for move in found.moves:
        made = step(move.attributes, seen(made, readers.shape(move.inputs[0])))
    seen(made, whole)
    chain[-1] = replace(chain[-1], outputs=last.outputs)
    return chain


def _with_last(shape: Shape, size: int) -> Shape:
    """The shape with its last axes, of so many elements, as one."""
    lead = len(shape) - 1
    while prod(shape[lead:]) < size:
        lead -= 1
    return (*shape[:lead], prod(shape[lead:]))

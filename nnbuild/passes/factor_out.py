"""Takes factors out of normalizations as Keras' layers are exported: x * f + (shift - mean * f), where f is the
reciprocal of a deviation times a gamma, becomes (x - mean) / deviation * gamma + shift.

That takes fewer operations, rounds less, and shows the passes that follow what is normalized.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from nnbuild.base.names import unused
from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.reshape import Reshape
from nnbuild.passes.remove_dead import remove_dead


def factor_out(graph: Graph) -> Graph:
    search = _Search(graph)
    for index, op in enumerate(graph.ops):
        found = next(search.normalizations(op), None)
        if found is not None:
            return factor_out(_rewritten(graph, search, index, found))
    return remove_dead(_differences_once(graph, search))


@dataclass(frozen=True)
class _Normalization:
    """(x - mean) * factor + shift. The mean has yet to go through reshapes to fit x."""

    x: str
    mean: str
    moves: tuple[Reshape, ...]
    factor: str
    shift: Mapping[str, str]


class _Search:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = {name: op for op in graph.ops for name in op.outputs}
        self._reads = Counter(name for op in graph.ops for name in op.inputs)
        self.pinned = {*graph.outputs, *(name for state in graph.states for name in (state.before, state.after))}

    def normalizations(self, op: Op) -> Iterator[_Normalization]:
        if not _is(op, "add", 2):
            return
        for whole, rest in permutations(op.inputs):
            scaled = self._inner(whole)
            if scaled is None or not _is(scaled, "multiply", 2):
                continue
            for other, negated, shift in self._products(rest):
                for (x, factor), (mean, same) in product(permutations(scaled.inputs), permutations(other.inputs)):
                    found = self._negated(mean) if negated else (mean, ())
                    fits = factor == same and self._shape(x) == self._shape(op.outputs[0])
                    if fits and found is not None:
                        yield _Normalization(x, *found, factor, shift)

    def _products(self, name: str) -> Iterator[tuple[Op, bool, Mapping[str, str]]]:
        """(the product, whether it is one of the negated mean, the constant that is added) of what is added."""
        part = self._inner(name)
        if part is not None and _is(part, "multiply", 2):
            yield part, True, {}
        if part is None or not (_is(part, "add", 1) or (_is(part, "subtract", 1) and "left" in part.constants)):
            return
        inner = self._inner(part.inputs[0])
        if inner is not None and _is(inner, "multiply", 2):
            yield inner, _is(part, "add", 1), {"right": next(iter(part.constants.values()))}

    def _negated(self, name: str) -> tuple[str, tuple[Reshape, ...]] | None:
        """The tensor whose negation this is, and the reshapes between them."""
        moves: list[Reshape] = []
        while (op := self.makers.get(name)) is not None and not op.outer:
            if op.attributes == Activation("negative"):
                return op.inputs[0], tuple(reversed(moves))
            if not isinstance(op.attributes, Reshape):
                return None
            moves.append(op.attributes)
            name = op.inputs[0]
        return None

    def _inner(self, name: str) -> Op | None:
        """What computes a tensor that only one operation reads."""
        return self.makers.get(name) if self._reads[name] == 1 and name not in self.pinned else None

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.graph.tensors[name].shape

    def difference(self, op: Op) -> tuple[object, ...]:
        """What two differences of the same values share; reshapes of what is subtracted count for nothing."""
        x, less = op.inputs
        return x, self._root(less), self._shape(less)

    def _root(self, name: str) -> str:
        while (op := self.makers.get(name)) is not None and isinstance(op.attributes, Reshape) and not op.outer:
            name = op.inputs[0]
        return name


def _is(op: Op, function: str, inputs: int) -> bool:
    return op.attributes == Binary(function) and len(op.inputs) == inputs and not op.outer


class _Draft:
    """A graph's tensors and operations, with new ones in the place of some."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors = dict(graph.tensors)
        self._names = {op.name for op in graph.ops}

    def op(self, like: Op, attributes: Attributes, *inputs: str, **constants: str) -> Op:
        """A new operation beside one, with a new tensor for its output."""
        name = unused(f"{like.name}/part", self._names)
        self._names.add(name)
        made = unused(f"{like.outputs[0]}/part", self.tensors)
        shapes = [self.tensors[given].shape for given in inputs]
        (shape,) = attributes.shapes(
            shapes, {role: self.graph.constants[c].data.shape for role, c in constants.items()}
        )
        self.tensors[made] = replace(self.tensors[like.outputs[0]], name=made, shape=shape, layer=None)
        return Op(name, attributes, inputs, (made,), constants, like.layer)

    def finish(self, ops: Sequence[Op]) -> Graph:
        return replace(self.graph, ops=tuple(ops), tensors=self.tensors)


def _rewritten(graph: Graph, search: _Search, index: int, found: _Normalization) -> Graph:
    last, draft, chain = graph.ops[index], _Draft(graph), list[Op]()

    def step(attributes: Attributes, *inputs: str, **constants: str) -> str:
        chain.append(draft.op(last, attributes, *inputs, **constants))
        return chain[-1].outputs[0]

    mean = found.mean
    for move in found.moves:
        mean = step(move, mean)
    made, scale = step(Binary("subtract"), found.x, mean), search.makers.get(found.factor)
    if scale is not None and _is(scale, "multiply", 1):  # first the deviation's reciprocal, then gamma
        made = step(Binary("multiply"), step(Binary("multiply"), made, scale.inputs[0]), **scale.constants)
    else:
        made = step(Binary("multiply"), made, found.factor)
    if found.shift:
        step(Binary("add"), made, **found.shift)
    chain[-1] = replace(chain[-1], outputs=last.outputs)
    return draft.finish([*graph.ops[:index], *chain, *graph.ops[index + 1 :]])


def _differences_once(graph: Graph, search: _Search) -> Graph:
    """Squares of differences, and differences, each of one that is computed once."""
    plain = {search.difference(op) for op in graph.ops if _is(op, "subtract", 2)}
    draft, ops, once, renamed = _Draft(graph), list[Op](), dict[object, str](), dict[str, str]()
    for op in graph.ops:
        key = search.difference(op) if len(op.inputs) == 2 else None
        op = replace(op, inputs=tuple(renamed.get(name, name) for name in op.inputs))
        if _is(op, "subtract", 2):
            if key in once and op.outputs[0] not in search.pinned:
                renamed[op.outputs[0]] = once[key]
                continue
            once.setdefault(key, op.outputs[0])
        elif _is(op, "squared_difference", 2) and key in plain:
            if key not in once:
                ops.append(draft.op(op, Binary("subtract"), *op.inputs))
                once[key] = ops[-1].outputs[0]
            op = replace(op, attributes=Activation("square"), inputs=(once[key],))
        ops.append(op)
    return draft.finish(ops)

"""A mutable graph, which passes edit and then freeze again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Shape
from nnbuild.ops.binary import Binary


class GraphEditor:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.ops = {op.name: op for op in graph.ops}
        self._place = {op.name: place for place, op in enumerate(graph.ops)}
        self.tensors = dict(graph.tensors)
        self.constants = dict(graph.constants)
        self._readers: dict[str, Counter[str]] = {}
        self._makers: dict[str, str] = {}
        self._uses = Counter(name for op in graph.ops for name in op.constants.values())
        for op in graph.ops:
            self._index(op)
        ends = (name for state in graph.states for name in (state.before, state.after))
        self.pinned = {*graph.inputs, *graph.outputs, *ends}
        self.external = {*graph.inputs, *(state.before for state in graph.states)}

    def finish(self) -> Graph:
        ops = tuple(sorted(self.ops.values(), key=lambda op: self._place[op.name]))
        return replace(self._graph, tensors=self.tensors, constants=self.constants, ops=ops)

    def shape(self, op: Op, tensor: str) -> Shape:
        """The shape as the operation sees it, without its outer axes."""
        return self.tensors[tensor].shape[len(op.outer) :]

    def maker(self, tensor: str) -> Op | None:
        return self.ops.get(self._makers.get(tensor, ""))

    def readers(self, tensor: str) -> list[Op]:
        return [self.ops[name] for name in self._readers.get(tensor, ())]

    def shares_constants(self, op: Op) -> bool:
        """Whether another operation has one of its constants."""
        return any(self._uses[name] > 1 for name in op.constants.values())

    def only_producer(self, op: Op) -> Op | None:
        """The producer of the operation's only input, if nothing else reads it, so that the two can be merged."""
        (tensor,) = op.inputs if len(op.inputs) == 1 else ("",)
        before = self.maker(tensor)
        if before is None or tensor in self.pinned or sum(self._readers[tensor].values()) != 1:
            return None
        return before if len(before.outputs) == 1 and before.outer == op.outer else None

    def later(self, one: Op, other: Op) -> Op:
        return max(one, other, key=lambda op: self._place[op.name])

    def change(self, op: Op) -> None:
        """Replaces the operation of the same name."""
        self._forget(self.ops[op.name])
        self.ops[op.name] = op
        self._index(op)
        self._uses.update(op.constants.values())

    def remove(self, op: Op) -> None:
        self._forget(op)
        del self.ops[op.name]

    def absorb(self, op: Op, follower: Op) -> None:
        """Replaces both by `op`, which already has their combined meaning and takes over the follower's output."""
        lost = op.outputs[0]
        self.remove(follower)
        self.change(replace(op, outputs=follower.outputs))
        del self.tensors[lost]

    def swap(self, first: Op, second: Op) -> None:
        """Swaps two neighbours, given as they are to be afterwards; both keep their names."""
        places = self._place
        places[first.name], places[second.name] = places[second.name], places[first.name]
        self.change(first)
        self.change(second)

    def bypass(self, op: Op) -> bool:
        """Removes an operation without effect; False if both its input and its output must stay."""
        (before,), (after,) = op.inputs, op.outputs
        if after in self.pinned:
            maker = self.maker(before)
            if before in self.pinned or maker is None:
                return False
            self.remove(op)
            self._rename(before, after, maker)
        else:
            self.remove(op)
            for reader in self.readers(after):
                self._reread(reader, after, before)
            del self.tensors[after]
        return True

    def new_constant(self, op: Op, role: str, data: Array) -> str:
        """Adds a constant that replaces the operation's own in a role, and returns its name; a shared constant is left
        as it is."""
        name = op.constants.get(role, f"{op.layer}/{role}")
        if name in self.constants and self._uses[name] > (role in op.constants):
            number = 1
            while f"{name}_{number}" in self.constants:
                number += 1
            name = f"{name}_{number}"
        self.constants[name] = Constant(name, np.asarray(data, np.float32))
        return name

    def _rename(self, before: str, after: str, maker: Op) -> None:
        self.change(replace(maker, outputs=tuple(after if name == before else name for name in maker.outputs)))
        for reader in self.readers(before):
            self._reread(reader, before, after)
        del self.tensors[before]

    def _reread(self, reader: Op, old: str, new: str) -> None:
        self.change(replace(reader, inputs=tuple(new if name == old else name for name in reader.inputs)))

    def _index(self, op: Op) -> None:
        for name in op.inputs:
            self._readers.setdefault(name, Counter())[op.name] += 1
        for name in op.outputs:
            self._makers[name] = op.name

    def _forget(self, op: Op) -> None:
        for name in op.inputs:
            self._readers[name].pop(op.name, None)
        for name in op.outputs:
            if self._makers.get(name) == op.name:
                del self._makers[name]
        self._uses.subtract(op.constants.values())


def factor_of(draft: GraphEditor, op: Op) -> float | None:
    """The one number by which an operation multiplies all of a tensor, if that is all it does."""
    if op.attributes not in (Binary("multiply"), Binary("divide")) or len(op.inputs) != 1:
        return None
    ((role, name),) = op.constants.items()
    data = draft.constants[name].data
    if data.size != 1 or data.item() == 0 or draft.tensors[op.inputs[0]].shape != draft.tensors[op.outputs[0]].shape:
        return None
    if op.attributes == Binary("multiply"):
        return float(data.item())
    return 1 / float(data.item()) if role == "right" else None


def in_single_precision(**arrays: Array) -> Mapping[str, Array] | None:
    """The float64 results of a fold as float32, or None where they overflow."""
    with np.errstate(all="ignore"):
        narrow = {role: np.asarray(values, np.float32) for role, values in arrays.items()}
    return narrow if all(np.isfinite(values).all() for values in narrow.values()) else None

"""Moves transposes past operations that any order of the axes suits, where fewer numbers have to move then.

Layers with their channels first are read as layers with the channels last between two transposes. Here most of these
vanish: one meets its opposite behind an activation, a sum, a concatenation, or disappears in the weights of a dense
layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from nnbuild.model.graph import Array, Constant, Graph, Op, Tensor
from nnbuild.model.views import View, reshaped, stored, transposed
from nnbuild.ops.base import Attributes
from nnbuild.ops.layout import Value, plain, seen
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.layout_rules import RULES


def lay_out(graph: Graph) -> Graph:
    bare = any(not tensor.shape for tensor in graph.tensors.values())  # views give every tensor an axis
    if bare or not any(isinstance(op.attributes, Transpose) for op in graph.ops):
        return graph
    made = _Draft(graph).finish()
    return made if _moved(made) < _moved(graph) else graph


def _moved(graph: Graph) -> tuple[int, int]:
    """How many numbers transposes move, and how many transposes there are."""
    moves = [op for op in graph.ops if isinstance(op.attributes, Transpose)]
    read = {name for op in graph.ops for name in op.inputs} | {*graph.outputs, *(s.after for s in graph.states)}
    moves = [op for op in moves if op.outputs[0] in read]
    return sum(prod(graph.tensors[op.inputs[0]].shape) for op in moves if not _is_free(graph, op)), len(moves)


def _is_free(graph: Graph, op: Op) -> bool:
    """Whether it only moves axes of size 1."""
    assert isinstance(op.attributes, Transpose)
    return transposed(stored(graph.tensors[op.inputs[0]].shape[len(op.outer) :]), op.attributes.order).is_plain


class _Draft:
    """The graph as it is built again, each value stored in an order that suits its operation."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.pinned = {*graph.outputs, *(state.after for state in graph.states)}
        self.given = {*graph.inputs, *(state.before for state in graph.states)}
        self.tensors = {name: graph.tensors[name] for name in self.given}
        self.constants = dict(graph.constants)
        self.values = {name: self._own(name) for name in self.given}
        self.op = graph.ops[0]
        self._ops: list[Op] = []
        self._moves: dict[tuple[Attributes, str], str] = {}
        self._names = {*graph.tensors, *graph.constants}
        self._op_names = {op.name for op in graph.ops}
        self._labels: dict[str, Tensor] = {}
        """Tensor without a layer of its own -> the output of a layer that it becomes."""

    def finish(self) -> Graph:
        for op in self.graph.ops:
            self.op = op
            self._add(op)
        for name in sorted(self.pinned - self.tensors.keys()):
            self._pin(self.graph.tensors[name])
        return self._named(replace(self.graph, tensors=self.tensors, constants=self.constants, ops=tuple(self._ops)))

    def _pin(self, tensor: Tensor) -> None:
        """An output, or the new value of a state, in its own order and with its own name."""
        self.op = next(op for op in self.graph.ops if tensor.name in op.outputs)
        name = seen(self, plain(self, self.values[tensor.name]).name, tensor.shape)
        if name in self.pinned or name in self._labels or name in self.given:
            self._emit(Reshape(tensor.shape), [name], tensor)
        else:
            self._labels[name] = tensor

    def _add(self, op: Op) -> None:
        if op.kind in (Transpose.kind, Reshape.kind):
            self._relabelled(op)
            return
        inputs = [self.values[name] for name in op.inputs]
        rule = RULES.get(type(op.attributes))
        made = rule(self, op, inputs) if rule is not None and not all(v.view.is_plain for v in inputs) else None
        if made is not None:
            self.values[op.outputs[0]] = made
            return
        names = [
            seen(self, plain(self, v).name, self.graph.tensors[n].shape) for v, n in zip(inputs, op.inputs, strict=True)
        ]
        self._ops.append(replace(op, inputs=tuple(names)))
        for name in op.outputs:
            self.tensors[name] = self.graph.tensors[name]
            self.values[name] = self._own(name)

    def _relabelled(self, op: Op) -> None:
        """A transpose or reshape: nothing moves until an operation needs it."""
        value, tensor = self.values[op.inputs[0]], self.graph.tensors[op.outputs[0]]
        if isinstance(op.attributes, Transpose):
            first = len(op.outer)
            view = transposed(value.view, (*range(first), *(first + axis for axis in op.attributes.order)))
        else:
            found = reshaped(value.view, tensor.shape)
            value = value if found is not None else plain(self, value)
            view = found or stored(tensor.shape)
        self.values[tensor.name] = replace(value, view=view)
        nameless = value.name not in self.given and self.tensors[value.name].layer is None
        if nameless and tensor.layer is not None and tensor.name not in self.pinned:
            self._labels.setdefault(value.name, tensor)

    def _own(self, name: str) -> Value:
        tensor = self.graph.tensors[name]
        return Value(name, stored(tensor.shape), tensor.dtype)

    def _named(self, graph: Graph) -> Graph:
        """Gives a tensor the name of the layer's output that it is, where nothing else has it."""
        taken: dict[str, str] = {}
        for old, tensor in self._labels.items():
            if tensor.name not in self.tensors:
                taken.setdefault(tensor.name, old)
        names = {old: name for name, old in taken.items() if old not in self.pinned}

        def called(each: Sequence[str]) -> tuple[str, ...]:
            return tuple(names.get(name, name) for name in each)

        tensors = {
            names.get(name, name): replace(tensor, name=names[name], layer=self._labels[name].layer)
            if name in names
            else tensor
            for name, tensor in graph.tensors.items()
        }
        ops = tuple(replace(op, inputs=called(op.inputs), outputs=called(op.outputs)) for op in graph.ops)
        return replace(graph, tensors=tensors, ops=ops)

    # What the rules use.

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def constant(self, role: str) -> Constant:
        return self.constants[self.op.constants[role]]

    def moved(self, attributes: Attributes, name: str) -> str:
        """A reordered or reshaped tensor; repeated requests share one."""
        key = (attributes, name)
        if key not in self._moves:
            tensor, base = self.tensors[name], f"{self.op.layer}/{attributes.kind}"
            like = replace(tensor, name=_unique(self._names, base), layer=None)
            self._moves[key] = self._emit(attributes, [name], like)
        return self._moves[key]

    def made(self, attributes: Attributes, names: Sequence[str], view: View, **constants: Array) -> Value:
        """The current operation on values in another order; `constants` replace its own."""
        like = self.graph.tensors[self.op.outputs[0]]
        if like.name in self.pinned:
            like = replace(like, name=_unique(self._names, like.name), layer=None)
        held = {
            role: name if role not in constants else self._constant(name, constants[role])
            for role, name in self.op.constants.items()
        }
        return Value(self._emit(attributes, names, like, held), view, like.dtype)

    def _emit(
        self, attributes: Attributes, names: Sequence[str], like: Tensor, held: Mapping[str, str] | None = None
    ) -> str:
        held = held or {}
        sizes = {role: self.constants[name].data.shape for role, name in held.items()}
        (shape,) = attributes.shapes([self.tensors[name].shape for name in names], sizes)
        self.tensors[like.name] = replace(like, shape=shape)
        name = _unique(self._op_names, f"{self.op.layer}/{attributes.kind}")
        self._ops.append(
            replace(
                Op(name, attributes, tuple(names), (like.name,), held, self.op.layer), arithmetic=self.op.arithmetic
            )
        )
        return like.name

    def _constant(self, name: str, data: Array) -> str:
        before = self.constants[name]
        if data.shape == before.data.shape and (data == before.data).all():
            return name
        made = _unique(self._names, name)
        self.constants[made] = Constant(made, data, before.quant)
        return made


def _unique(taken: set[str], base: str) -> str:
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name

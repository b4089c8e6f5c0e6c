"""Who computes and who reads the tensors of a graph."""

from __future__ import annotations

from math import prod

from nnbuild.model.graph import Graph, Op, Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.reshape import Reshape


class Readers:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = {name: op for op in graph.ops for name in op.outputs}
        self.pinned = {*graph.outputs, *(name for state in graph.states for name in (state.before, state.after))}
        self._readers: dict[str, list[Op]] = {}
        for op in graph.ops:
            for name in op.inputs:
                self._readers.setdefault(name, []).append(op)

    def of(self, name: str) -> list[Op]:
        """The operations that read a tensor, once for each time."""
        return self._readers.get(name, [])

    def inner(self, name: str) -> Op | None:
        """What computes a tensor that only one operation reads."""
        return self.makers.get(name) if len(self.of(name)) == 1 and name not in self.pinned else None

    def root(self, name: str) -> str:
        """The tensor that this is, but for its shape."""
        while (op := self.makers.get(name)) is not None and isinstance(op.attributes, Reshape) and not op.outer:
            name = op.inputs[0]
        return name

    def shape(self, name: str) -> Shape:
        return self.graph.tensors[name].shape

    def size(self, name: str) -> int:
        return prod(self.shape(name))


def computes(op: Op, function: str, inputs: int, *, clamped: bool = False) -> bool:
    """Whether it is this function of so many tensors; with `clamped` its result may be."""
    binary = op.attributes
    if not isinstance(binary, Binary) or binary.function != function or len(op.inputs) != inputs or op.outer:
        return False
    return clamped or binary == Binary(function)

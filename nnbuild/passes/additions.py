"""New operations in a graph, with names of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nnbuild.base.names import unused
from nnbuild.model.graph import Array, Constant, Graph, Op, Shape
from nnbuild.ops.base import Attributes
from nnbuild.ops.reshape import Reshape


class Additions:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors, self._constants = dict(graph.tensors), dict(graph.constants)
        self._names = {op.name for op in graph.ops}

    def op(self, like: Op, attributes: Attributes, *inputs: str, **constants: Array) -> Op:
        """An operation of the same layer as another, with a new tensor for its output."""
        name = unused(f"{like.name}/part", self._names)
        self._names.add(name)
        held = {role: unused(f"{name}/{role}", self._constants) for role in constants}
        for role, values in constants.items():
            self._constants[held[role]] = Constant(held[role], values.astype(np.float32))
        shapes = {role: values.shape for role, values in constants.items()}
        return Op(name, attributes, inputs, (self._made(like, attributes, inputs, shapes),), held, like.layer)

    def instead(self, op: Op, attributes: Attributes, *inputs: str) -> Op:
        """The operation with other attributes and inputs, and with a new tensor for its output."""
        shapes = {role: self._constants[name].data.shape for role, name in op.constants.items()}
        made = self._made(op, attributes, inputs, shapes)
        return replace(op, attributes=attributes, inputs=inputs, outputs=(made,), outer=())

    def _made(self, like: Op, attributes: Attributes, inputs: Sequence[str], constants: Mapping[str, Shape]) -> str:
        name = unused(f"{like.outputs[0]}/part", self._tensors)
        (shape,) = attributes.shapes([self._tensors[given].shape for given in inputs], constants)
        self._tensors[name] = replace(self._tensors[like.outputs[0]], name=name, shape=shape, layer=None)
        return name

    def seen(self, ops: list[Op], like: Op, name: str, shape: Shape) -> str:
        """The tensor in this shape, after a reshape if it has another."""
        if self._tensors[name].shape == shape:
            return name
        ops.append(self.op(like, Reshape(shape), name))
        return ops[-1].outputs[0]

    def finish(self, ops: Sequence[Op]) -> Graph:
        return replace(self._graph, ops=tuple(ops), tensors=self._tensors, constants=self._constants)

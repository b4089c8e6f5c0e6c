"""One operation in its place in a graph: its tensors and constants at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnbuild.graph import Array, Constant, Graph, Op, Shape, Tensor


@dataclass(frozen=True, eq=False)
class Site:
    """One operation with its tensors and constants at hand; shapes come without the axes of `Op.outer`."""

    op: Op
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constants: Mapping[str, Constant]

    @property
    def dtypes(self) -> frozenset[str]:
        return frozenset(tensor.dtype for tensor in self.inputs + self.outputs)

    def shape(self, index: int = 0) -> Shape:
        return self.inputs[index].shape[len(self.op.outer) :]

    def output_shape(self, index: int = 0) -> Shape:
        return self.outputs[index].shape[len(self.op.outer) :]

    def constant(self, role: str) -> Array:
        return self.constants[role].data


def site_of(graph: Graph, op: Op) -> Site:
    return Site(
        op,
        tuple(graph.tensors[name] for name in op.inputs),
        tuple(graph.tensors[name] for name in op.outputs),
        {role: graph.constants[name] for role, name in op.constants.items()},
    )

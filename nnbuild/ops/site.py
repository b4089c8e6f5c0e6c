"""One operation in a graph, with its tensors and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from nnbuild.model.graph import A, Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.ops.base import Attributes

B = TypeVar("B", bound=Attributes)


@dataclass(frozen=True, eq=False)
class Site(Generic[A]):
    """One operation with its tensors and constants; shapes come without the axes of `Op.outer`.

    A `Site[Conv2D]` is one of a convolution; a `Site` is one of any operation.

    `tail` holds operations to be fused with it, each on the result of the one before it, which no other operation
    reads: `reads` and `writes` are the tensors that the whole chain reads and writes.

    shared: whether other operations of the program have the same weights, so that kernels best store these apart from
    what differs.
    """

    op: Op[A]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constants: Mapping[str, Constant]
    tail: tuple[Site, ...] = ()
    shared: bool = False

    @property
    def attributes(self) -> A:
        return self.op.attributes

    def of(self, kind: type[B]) -> Site[B]:
        """The same site, checked to be one of this operation."""
        if not isinstance(self.op.attributes, kind):
            raise TypeError(f"{self.op.name} is a {self.op.kind}, not a {kind.__name__}")
        return cast(Site[B], self)

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operation and those of its tail, in order."""
        return (self.op, *(site.op for site in self.tail))

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """The operation's own inputs, then the other inputs of the tail."""
        inputs, results = [] if self.attributes.unread else list(self.inputs), {self.outputs[0].name}
        for site in self.tail:
            inputs += [tensor for tensor in site.inputs if tensor.name not in results]
            results.add(site.outputs[0].name)
        return tuple(inputs)

    @property
    def writes(self) -> tuple[Tensor, ...]:
        return self.tail[-1].outputs if self.tail else self.outputs

    @property
    def dtypes(self) -> frozenset[str]:
        return frozenset(tensor.dtype for tensor in (*self.attributes.in_format(self.inputs), *self.outputs))

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

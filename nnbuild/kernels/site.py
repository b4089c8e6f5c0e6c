"""What a kernel is told of the operation it prints, and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nnbuild.graph import Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.literals import C_TYPES
from nnbuild.writer import Writer


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

    def c_type(self, tensor: Tensor) -> str:
        return C_TYPES[tensor.dtype]


@dataclass(frozen=True, eq=False)
class Demand:
    """What a kernel needs at one site.

    extent: how many pieces the work divides into; the printed function computes those from `begin` to `end`.
    scratch: bytes it may write while it runs and forget afterwards, seen as `scratch_type`.
    packed: constants in the order in which it reads them, flat, by the name it will use for them.
    in_place: (output, input) pairs that may share storage when the output begins at or before the input.
    """

    extent: int
    scratch: int = 0
    scratch_type: str = "float32"
    packed: Mapping[str, Array] = field(default_factory=dict)
    in_place: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Names:
    """What things are called in the function being printed. The range is always `begin` to `end`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packed: Mapping[str, str]
    scratch: str = "scratch"


class Kernel(Protocol):
    """A module of `kernels/<op>/`. `accepts` gives the reason when the kernel cannot serve a site."""

    __name__: str
    needs: frozenset[str]

    def accepts(self, site: Site) -> str | None: ...
    def demand(self, site: Site) -> Demand: ...
    def emit(self, w: Writer, site: Site, names: Names) -> None: ...


def site_of(graph: Graph, op: Op) -> Site:
    return Site(
        op,
        tuple(graph.tensors[name] for name in op.inputs),
        tuple(graph.tensors[name] for name in op.outputs),
        {role: graph.constants[name] for role, name in op.constants.items()},
    )


def only_float(site: Site) -> str | None:
    return None if site.dtypes == {"float32"} else f"it computes float32 only, not {', '.join(sorted(site.dtypes))}"

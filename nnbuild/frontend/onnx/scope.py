"""The names in a graph, as far as it has been read; an inner graph also sees the outer graph's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbuild.frontend.onnx.records import DAMAGED, Attribute, GraphRecord, Node
from nnbuild.model.graph import Array

if TYPE_CHECKING:
    from nnbuild.frontend.onnx.call import Item


@dataclass(frozen=True, eq=False)
class Scaled:
    """The integers from which a constant was dequantized, with one scale, one per index of `axis`, or one per block."""

    integers: Array
    scales: Array
    zeros: Array
    axis: int
    blocks: bool = False


class Scope:
    """`arguments` are the options of the enclosing function call."""

    def __init__(self, outer: Scope | None = None, arguments: Mapping[str, Attribute] | None = None) -> None:
        self.items: dict[str, Item] = {}
        self.outer = outer
        self.readers: dict[str, list[Node]] = {}
        self.ends: set[str] = set()
        self.scaled: dict[str, Scaled] = {}
        self.stepped: set[str] = set()
        """Results of QuantizeLinear that stay floats, in the steps of their integers."""
        self.same: dict[str, str] = {}
        """Names that stand for another one's value."""
        self.arguments: Mapping[str, Attribute] = (
            arguments if arguments is not None else outer.arguments if outer else {}
        )

    @staticmethod
    def of(record: GraphRecord) -> Scope:
        """The constants of a graph before any of its nodes is read."""
        scope = Scope()
        scope.items.update(record.constants)
        return scope

    def wire(self, nodes: Sequence[Node], outputs: Sequence[str]) -> None:
        """Records the readers of each value, so that a node can look ahead."""
        self.ends = set(outputs)
        self.readers.clear()
        for node in nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)

    def get(self, name: str) -> Item | None:
        scope: Scope | None = self
        while scope is not None:
            name = scope.same.get(name, name)
            if name in scope.items:
                return scope.items[name]
            scope = scope.outer
        return None

    def scaled_of(self, name: str) -> Scaled | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.items:
                return scope.scaled.get(name)
            scope = scope.outer
        return None

    def find(self, node: Node, name: str) -> Item:
        found = self.get(name)
        if found is None:
            raise node.error(f"no earlier node computes its input {name!r}.", DAMAGED)
        return found

    def put(self, node: Node, name: str, item: Item) -> None:
        if name in self.items:
            raise node.error(f"its output {name!r} is already computed.", DAMAGED)
        self.items[name] = item

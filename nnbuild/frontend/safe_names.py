"""Makes names from a model file printable before anything else uses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nnbuild.base.sanitize import escape_name, printable
from nnbuild.model.graph import Graph, Op, Tensor


def with_shown_names(graph: Graph) -> Graph:
    """The graph with printable names of layers and tensors."""
    if all(escape_name(name) == name for name in _names(graph)) and all(
        printable(note) == note for note in graph.notes
    ):
        return graph
    return replace(
        graph,
        tensors={escape_name(name): _tensor(tensor) for name, tensor in graph.tensors.items()},
        ops=tuple(_op(op) for op in graph.ops),
        inputs=_all(graph.inputs),
        outputs=_all(graph.outputs),
        states=tuple(
            replace(state, before=escape_name(state.before), after=escape_name(state.after)) for state in graph.states
        ),
        notes=tuple(printable(note) for note in graph.notes),
    )


def _names(graph: Graph) -> Iterable[str]:
    yield from graph.tensors
    yield from (tensor.layer or "" for tensor in graph.tensors.values())
    for op in graph.ops:
        yield from (op.name, op.layer)


def _tensor(tensor: Tensor) -> Tensor:
    return replace(
        tensor, name=escape_name(tensor.name), layer=escape_name(tensor.layer) if tensor.layer is not None else None
    )


def _op(op: Op) -> Op:
    return replace(
        op, name=escape_name(op.name), layer=escape_name(op.layer), inputs=_all(op.inputs), outputs=_all(op.outputs)
    )


def _all(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(escape_name(name) for name in names)

"""Moves reshapes behind operations that do not depend on the shape, and merges consecutive ones.

One-dimensional convolutions come with a reshape on either side. Between two of them both vanish, and a normalization or
activation after one ends up next to it, where it can be folded.
"""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.lrn import LRN
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax
from nnbuild.passes.graph_editor import GraphEditor


def sink_reshapes(graph: Graph) -> Graph:
    """reshape, operation -> operation, reshape; and an operation on two tensors that are reshaped alike."""
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        if not _sink_two(draft, draft.ops[name]):
            _sink(draft, name)
    return draft.finish()


def _sink_two(draft: GraphEditor, op: Op) -> bool:
    makers = [made for made in map(draft.maker, op.inputs) if made is not None and made.kind == Reshape.kind]
    if not isinstance(op.attributes, Binary) or len(makers) != 2 or any(each.outer for each in (op, *makers)):
        return False
    last = draft.later(*makers)
    sources = tuple(made.inputs[0] for made in makers)
    alike = draft.tensors[sources[0]].shape == draft.tensors[sources[1]].shape
    seen = last.outputs[0] in draft.pinned or draft.readers(last.outputs[0]) != [op]
    if not alike or len({made.attributes for made in makers}) != 1 or seen:
        return False
    _swap(draft, last, replace(op, inputs=sources))
    return True


def _sink(draft: GraphEditor, name: str) -> None:
    op = draft.ops[name]
    before = draft.only_producer(op)
    if before is None or not isinstance(before.attributes, Reshape) or len(op.outputs) != 1:
        return
    moved = _before_reshape(draft, op, draft.shape(before, before.inputs[0]))
    if moved is None:
        return
    _swap(draft, before, replace(op, attributes=moved, inputs=before.inputs))


def _swap(draft: GraphEditor, before: Op, op: Op) -> None:
    """The two operations change places, and the tensor between them changes its shape and meaning."""
    (middle,), (end,), shape = before.outputs, op.outputs, draft.tensors[op.inputs[0]].shape
    draft.swap(replace(op, outputs=(middle,)), replace(before, inputs=(middle,), outputs=(end,)))
    draft.tensors[middle] = replace(draft.tensors[middle], shape=shape, layer=None)


def _before_reshape(draft: GraphEditor, op: Op, shape: Shape) -> Activation | Affine | Binary | Softmax | LRN | None:
    """The operation's attributes for a tensor of that shape; None where there are none."""
    seen = draft.shape(op, op.inputs[0])
    same_rows = bool(shape) and bool(seen) and shape[-1] == seen[-1]
    match op.attributes:
        case Activation() as activation:
            return activation
        case Affine(axis=axis) as affine if same_rows and axis == len(seen) - 1:
            return replace(affine, axis=len(shape) - 1)
        case Softmax(axis=axis, count=1) as softmax if same_rows and axis == len(seen) - 1:
            return replace(softmax, axis=len(shape) - 1)
        case LRN() as lrn if same_rows:
            return lrn
        case Binary() as binary if op.constants:
            (constant,) = op.constants.values()
            size = draft.constants[constant].data.shape
            narrow = len(size) <= 1 and (size in ((), (1,)) or (same_rows and size == seen[-1:]))
            return binary if narrow and shape and seen else None
        case _:
            return None


def collapse_reshapes(graph: Graph) -> Graph:
    """Merges a reshape of a reshape, and removes one that changes nothing."""
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        if op.kind != Reshape.kind:  # not an `Offset`, whose result means other numbers
            continue
        before = draft.maker(op.inputs[0])
        if before is not None and before.kind == Reshape.kind and before.outer == op.outer:
            op = replace(op, inputs=before.inputs)  # the first one is dead if nothing else reads it
            draft.change(op)
        if draft.tensors[op.inputs[0]].shape == draft.tensors[op.outputs[0]].shape:
            draft.bypass(op)
    return draft.finish()

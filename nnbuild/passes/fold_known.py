"""Computes what depends on known values alone, and gives known operands to operations as their constants."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.known import Known
from nnbuild.ops.select import Select
from nnbuild.passes.graph_editor import GraphEditor

MOST = 1 << 20
"""Elements of a constant that may be made."""
ROLES = {Binary: ("left", "right"), Compare: ("left", "right"), Select: ("", "chosen", "other")}
"""What constants stand in for which inputs."""


def fold_known(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        known = [_known(draft, each) for each in op.inputs]
        if all(known) and _may_be_computed(draft, op):
            _compute(draft, op)
        elif any(known) and type(op.attributes) in ROLES and not op.constants:
            _take(draft, op)
    return draft.finish()


def _known(draft: GraphEditor, tensor: str) -> Op | None:
    """What makes it, if that is known before the model runs."""
    maker = draft.maker(tensor)
    found = draft.tensors[tensor]
    plain = found.dtype == "float32" and found.quant is None
    return maker if maker is not None and isinstance(maker.attributes, Known) and plain and not maker.outer else None


def _may_be_computed(draft: GraphEditor, op: Op) -> bool:
    if len(op.outputs) != 1 or op.outer or isinstance(op.attributes, Known) or op.outputs[0] in draft.pinned:
        return False
    out = draft.tensors[op.outputs[0]]
    return out.dtype == "float32" and out.quant is None and prod(out.shape) <= MOST


def _compute(draft: GraphEditor, op: Op) -> None:
    makers = [draft.maker(name) for name in op.inputs]
    given = [draft.constants[maker.constants["values"]].data[None] for maker in makers if maker is not None]
    held = {role: draft.constants[name].data for role, name in op.constants.items()}
    with np.errstate(all="ignore"):
        (values,) = op.attributes.reference(given, held)
    if not np.isfinite(values).all() or makers[0] is None:
        return
    name = f"{op.name}/values"
    while name in draft.constants:
        name += "_"
    draft.constants[name] = Constant(name, np.asarray(values[0], np.float32, order="C"))
    draft.change(replace(op, attributes=Known(), inputs=makers[0].inputs[:1], constants={"values": name}))


def _take(draft: GraphEditor, op: Op) -> None:
    """One known operand becomes a constant."""
    roles = ROLES[type(op.attributes)]
    for place, (role, tensor) in enumerate(zip(roles, op.inputs, strict=True)):
        maker = _known(draft, tensor)
        if role and maker is not None:
            rest = tuple(name for at, name in enumerate(op.inputs) if at != place)
            draft.change(replace(op, inputs=rest, constants={role: maker.constants["values"]}))
            return

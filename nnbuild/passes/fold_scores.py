"""A factor of the product of two tensors, as attention has it, becomes one of the weights that make one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.matmul import MatMul
from nnbuild.passes.graph_editor import GraphEditor, factor_of, in_single_precision
from nnbuild.passes.rows import is_move


def fold_scores(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        op = draft.ops[name]
        factor, product = factor_of(draft, op), draft.only_producer(op)
        if factor is None or product is None or not isinstance(product.attributes, MatMul):
            continue
        makers = (_maker(draft, operand) for operand in product.inputs)
        maker = next((maker for maker in makers if maker is not None), None)
        if maker is not None:
            _fold(draft, maker, factor, op)
    return draft.finish()


def _maker(draft: GraphEditor, name: str) -> Op | None:
    """The layer whose results an operand holds, if nothing else reads them or has its weights."""
    while name not in draft.pinned and len(draft.readers(name)) == 1 and (op := draft.maker(name)) is not None:
        if isinstance(op.attributes, Dense | Conv2D):
            return op if op.attributes.clamp == NO_CLAMP and not draft.shares_constants(op) else None
        if not is_move(op):
            return None
        name = op.inputs[0]
    return None


def _fold(draft: GraphEditor, maker: Op, factor: float, op: Op) -> None:
    values = {role: draft.constants[name].data.astype(np.float64) * factor for role, name in maker.constants.items()}
    narrow = in_single_precision(**values)
    if narrow is not None and draft.bypass(op):
        held = {role: draft.new_constant(maker, role, data) for role, data in narrow.items()}
        draft.change(replace(draft.ops[maker.name], constants=held))

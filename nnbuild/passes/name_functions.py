"""Recognizes functions that files write as several operations: x * sigmoid(x) is swish.

What leads from one tensor to another by operations on single elements is a function of one number. It is known by its
values, whatever the order and the constants by which a file has them computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.functions import apply
from nnbuild.passes.graph_editor import GraphEditor

NAMES = ("swish", "gelu", "gelu_tanh", "hard_swish", "mish", "softplus", "softsign", "sigmoid", "tanh", "hard_sigmoid")
MOST = 12
"""Operations that one function is written by."""
POINTS = np.concatenate([np.linspace(-12, 12, 1201), [-80.0, -40.0, -20.0, 20.0, 40.0, 80.0]])[:, None]
"""Samples of one element each."""
CLOSE = 1e-6
"""Difference of values up to which two functions are one: a file's constants have single precision."""


def name_functions(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        last = draft.ops.get(name)
        if last is None or not _is_elementwise(draft, last):
            continue
        source, chain, function = _found(draft, last)
        if function is None:
            continue
        for op in chain:
            if op is not last:
                draft.remove(op)
                del draft.tensors[op.outputs[0]]
        draft.change(Op(last.name, Activation(function), (source,), last.outputs, {}, last.layer, last.outer))
    return draft.finish()


def _found(draft: GraphEditor, last: Op) -> tuple[str, list[Op], str | None]:
    """The tensor that the operation's result is a function of, the operations between, and the function's name."""
    chain, leaves = [last], set(last.inputs)
    while len(chain) <= MOST:
        if len(leaves) == 1 and len(chain) > 1:
            (source,) = leaves
            function = _name(draft, source, chain)
            if function is not None:
                return source, chain, function
        makers = (draft.maker(leaf) for leaf in sorted(leaves))
        within = [op for op in makers if op is not None and _is_inner(draft, op, chain)]
        if not within:
            break
        chain = [within[0], *chain]
        leaves = {name for op in chain for name in op.inputs} - {op.outputs[0] for op in chain}
    return "", [], None


def _is_elementwise(draft: GraphEditor, op: Op) -> bool:
    """Whether each element of its result is one function of the same element of its inputs."""
    if not isinstance(op.attributes, Activation | Binary) or op.outer:
        return False
    tensors = [draft.tensors[name] for name in (*op.inputs, *op.outputs)]
    alike = all(
        (tensor.shape, tensor.dtype, tensor.quant) == (tensors[-1].shape, "float32", None) for tensor in tensors
    )
    return alike and all(np.ptp(draft.constants[name].data) == 0 for name in op.constants.values())


def _is_inner(draft: GraphEditor, op: Op, chain: Sequence[Op]) -> bool:
    """Whether only the chain reads its result."""
    (made,) = op.outputs if len(op.outputs) == 1 else ("",)
    read = made and made not in draft.pinned and all(reader in chain for reader in draft.readers(made))
    return bool(read) and _is_elementwise(draft, op)


def _name(draft: GraphEditor, source: str, chain: Sequence[Op]) -> str | None:
    values: dict[str, Array] = {source: POINTS}
    waiting = list(chain)
    with np.errstate(all="ignore"):
        while waiting:
            op = next(each for each in waiting if all(name in values for name in each.inputs))
            held = {role: draft.constants[name].data.reshape(-1)[:1] for role, name in op.constants.items()}
            (values[op.outputs[0]],) = op.attributes.reference([values[name] for name in op.inputs], held)
            waiting.remove(op)
        found = values[chain[-1].outputs[0]]
        for function in NAMES:
            wanted = apply(function, (), POINTS)
            if np.all(np.abs(found - wanted) <= CLOSE * np.maximum(1, np.abs(wanted))):
                return function
    return None

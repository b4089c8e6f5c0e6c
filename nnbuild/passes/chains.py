"""Chains of operations on single elements: what leads from one tensor to another is a function of one number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nnbuild.model.graph import Op
from nnbuild.passes.graph_editor import GraphEditor

MOST = 12
"""Operations of a chain."""

Joins = Callable[[Op], bool]


def chains(draft: GraphEditor, last: Op, joins: Joins) -> Iterator[tuple[str, list[Op]]]:
    """Ever longer chains of operations that may join, each with the one tensor that its result is a function of. They
    end with `last`; nothing else reads what they compute before it."""
    chain, leaves = [last], set(last.inputs)
    while len(chain) <= MOST:
        if len(leaves) == 1:
            yield next(iter(leaves)), list(chain)
        makers = (draft.maker(leaf) for leaf in sorted(leaves))
        within = [op for op in makers if op is not None and joins(op) and _is_inner(draft, op, chain)]
        if not within:
            return
        chain = [within[0], *chain]
        leaves = {name for op in chain for name in op.inputs} - {op.outputs[0] for op in chain}


def on_elements(draft: GraphEditor, op: Op) -> bool:
    """Whether tensors have one shape, and constants one value each."""
    tensors = [draft.tensors[name] for name in (*op.inputs, *op.outputs)]
    same = not op.outer and len(op.outputs) == 1 and all(tensor.shape == tensors[0].shape for tensor in tensors)
    return same and all(np.ptp(draft.constants[name].data) == 0 for name in op.constants.values())


def in_order(chain: Sequence[Op], source: str) -> list[Op]:
    """The operations, each behind those whose results it reads."""
    known, waiting, ordered = {source}, list(chain), []
    while waiting:
        op = next(each for each in waiting if known.issuperset(each.inputs))
        waiting.remove(op)
        ordered.append(op)
        known.update(op.outputs)
    return ordered


def replace_chain(draft: GraphEditor, chain: Sequence[Op], by: Op) -> None:
    """`by` has the name and the output of the last operation."""
    for op in chain:
        if op.name != by.name:
            draft.remove(op)
            del draft.tensors[op.outputs[0]]
    draft.change(by)


def _is_inner(draft: GraphEditor, op: Op, chain: Sequence[Op]) -> bool:
    """Whether only the chain reads its result."""
    (made,) = op.outputs if len(op.outputs) == 1 else ("",)
    return made != "" and made not in draft.pinned and all(reader in chain for reader in draft.readers(made))

"""What is computed of a model's inputs alone, element by element."""

from __future__ import annotations

from nnbuild.model.graph import Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.known import Known
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.graph_editor import GraphEditor

ELEMENTWISE = (Activation, Affine, Binary, Compare, Convert, Known, Select)
PICKS = (Pick, Slice)
MOVES = (Concatenate, *PICKS, Repeat, Reshape, Transpose)


def from_inputs(draft: GraphEditor, op: Op) -> list[Op]:
    """The operation and all those before it; none, if others than moves and elementwise ones are among them."""
    found, seen, pending = [op], {op.name}, [*op.inputs]
    while pending:
        maker = draft.maker(pending.pop())
        if maker is not None and maker.name not in seen:
            if not isinstance(maker.attributes, (*ELEMENTWISE, *MOVES)):
                return []
            found.append(maker)
            seen.add(maker.name)
            pending += maker.inputs
    return found

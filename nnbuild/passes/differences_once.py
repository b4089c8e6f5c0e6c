"""A difference of two tensors, and its square, are computed from one subtraction, as variances are beside what they
normalize."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.passes.additions import Additions
from nnbuild.passes.readers import Readers, computes


def differences_once(graph: Graph) -> Graph:
    readers, new, ops = Readers(graph), Additions(graph), list[Op]()
    plain = {_difference(readers, op) for op in graph.ops if computes(op, "subtract", 2)}
    once, renamed = dict[object, str](), dict[str, str]()
    for op in graph.ops:
        key = _difference(readers, op) if len(op.inputs) == 2 else None
        op = replace(op, inputs=tuple(renamed.get(name, name) for name in op.inputs))
        shape = readers.shape(op.outputs[0])
        if computes(op, "subtract", 2):
            if key in once and op.outputs[0] not in readers.pinned:
                renamed[op.outputs[0]] = new.seen(ops, op, once[key], shape)
                continue
            once.setdefault(key, op.outputs[0])
        elif computes(op, "squared_difference", 2) and key in plain:
            if key not in once:
                ops.append(new.op(op, Binary("subtract"), *op.inputs))
                once[key] = ops[-1].outputs[0]
            apart = new.seen(ops, op, once[key], shape)
            op = replace(op, attributes=Activation("square"), inputs=(apart,))
        ops.append(op)
    return new.finish(ops)


def _difference(readers: Readers, op: Op) -> tuple[object, ...]:
    """What two differences of the same values share: reshapes before them count for nothing."""
    x, less = op.inputs
    runs = list[tuple[int, int]]()
    """Of axes along which one element is subtracted, or each its own: elements of x, and of what is subtracted."""
    lead = len(readers.shape(x)) - len(readers.shape(less))
    if lead < 0:
        return readers.root(x), readers.root(less), readers.shape(less)
    for n, m in zip(readers.shape(x), (1,) * lead + readers.shape(less), strict=True):
        if n > 1 and runs and (runs[-1][1] == 1) == (m == 1):
            runs[-1] = (runs[-1][0] * n, runs[-1][1] * m)
        elif n > 1:
            runs.append((n, m))
    return readers.root(x), readers.root(less), *runs

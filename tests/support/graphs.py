"""Small graphs made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.base import Attributes


def single(
    attributes: Attributes,
    inputs: Sequence[Shape],
    constants: Mapping[str, Array] | None = None,
    outer: Shape = (),
    stateful: int = 0,
) -> Graph:
    """A graph of one operation. With `stateful` its last inputs are states that its last outputs update."""
    held = {role: np.asarray(value, np.float32) for role, value in (constants or {}).items()}
    names = [f"x{i}" for i in range(len(inputs))]
    shapes = attributes.shapes(list(inputs), {role: value.shape for role, value in held.items()})
    outputs = [f"y{i}" for i in range(len(shapes))]
    tensors = {
        n: Tensor(n, outer + s) for n, s in [*zip(names, inputs, strict=True), *zip(outputs, shapes, strict=True)]
    }
    op = Op("op", attributes, tuple(names), tuple(outputs), {role: role for role in held}, layer="op", outer=outer)
    states = [State(names[-i], outputs[-i]) for i in range(stateful, 0, -1)]
    graph = Graph(
        "net",
        tensors,
        {role: Constant(role, value) for role, value in held.items()},
        (op,),
        tuple(names[: len(names) - stateful]),
        tuple(outputs),
        tuple(states),
    )
    return verify(graph)

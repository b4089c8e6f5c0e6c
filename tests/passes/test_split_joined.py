"""Parts of joined tensors are read where they lay before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.model.graph import Graph, Quant
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.slice import Slice
from nnbuild.passes.split_joined import split_joined

BOXES, SCORES = Slice((0, 0), (1, 1), (5, 4)), Slice((0, 4), (1, 1), (5, 3))
SOME, BACKWARDS = Slice((1, 5), (2, 1), (2, 2)), Slice((0, 6), (1, -2), (5, 2))
BOTH = Slice((0, 3), (1, 1), (5, 2))


def split(taken: Slice, deep: bool = False) -> Graph:
    net = Net("split")
    joined = net.add(Concatenate(1), [net.input(5, 4), net.input(5, 3)])
    if deep:
        joined = net.add(Concatenate(0), [joined, net.add(Activation("tanh"), [joined])])
    return net.graph(net.add(Activation("sigmoid"), [net.add(taken, [joined])]))


def kinds(graph: Graph) -> set[str]:
    return {op.kind for op in graph.ops} - {"activation"}


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("taken", "left"),
    [(BOXES, set()), (SCORES, set()), (SOME, {"slice"}), (BACKWARDS, {"slice"}), (BOTH, {"slice", "concatenate"})],
)
def test_a_slice_reads_the_part_that_it_takes(taken: Slice, left: set[str], deep: bool) -> None:
    graph = split(taken, deep)
    made = passes.run(graph)
    assert kinds(made) == left
    chance = np.random.default_rng(1)
    given = {name: chance.normal(size=(3, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs}
    (output,) = graph.outputs
    np.testing.assert_array_equal(interpret.run(made, given)[output], interpret.run(graph, given)[output])


@pytest.mark.parametrize("scale", [0.5, 0.25])
def test_integers_that_were_scaled_to_be_joined_are_others(scale: float) -> None:
    graph = split(BOXES)
    (first, second), (joined, taken, _) = graph.inputs, (op.outputs[0] for op in graph.ops)
    quants = {first: Quant((scale,)), second: Quant((0.5,)), joined: Quant((0.5,)), taken: Quant((0.5,))}
    tensors = {n: replace(t, dtype="int8", quant=quants[n]) if n in quants else t for n, t in graph.tensors.items()}
    made = split_joined(replace(graph, tensors=tensors))
    assert made.ops[1].inputs == ((first,) if scale == 0.5 else (joined,))

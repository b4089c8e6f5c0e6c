"""A state's new value overwrites the old one only where nothing reads that afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph, Op, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.reshape import Reshape
from nnbuild.passes.states_in_place import states_in_place
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.batch import Entry, run_batch
from tests.support.graphs import single

UNITS = 3
CHANCE = np.random.default_rng(0)
WEIGHTS = {"kernel": CHANCE.normal(size=(2, 4 * UNITS)), "recurrent": CHANCE.normal(size=(UNITS, 4 * UNITS))}
LSTM_ALONE = single(LSTM(units=UNITS), [(4, 2), (UNITS,), (UNITS,)], WEIGHTS, stateful=2)


def followed(*ops: Op, shapes: dict[str, tuple[int, ...]], outputs: tuple[str, ...]) -> Graph:
    """An LSTM with the states x1 and x2, and these operations behind it."""
    tensors = {**LSTM_ALONE.tensors, **{name: Tensor(name, shape) for name, shape in shapes.items()}}
    return verify(replace(LSTM_ALONE, tensors=tensors, ops=(*LSTM_ALONE.ops, *ops), outputs=outputs))


def right(graph: Graph, folder: Path) -> bool:
    x = np.random.default_rng(1).normal(size=(5, 4, 2)).astype(np.float32)
    wanted = interpret.run(graph, {"x0": x}, "float64")
    plan = make_plan(verify(states_in_place(graph)), "m", Target())
    found = run_batch([Entry(plan, {"x0": x})], folder)[0]
    return all(np.allclose(found[name], wanted[name], atol=1e-5) for name in graph.outputs)


def test_nothing_is_copied_where_nothing_reads_late() -> None:
    assert states_in_place(LSTM_ALONE).ops == LSTM_ALONE.ops


def test_a_late_reader_reads_a_copy_made_before(tmp_path: Path) -> None:
    """The state itself is not copied: in 16 bits, it would go through the reader's 8."""
    change = Op("change", Binary("subtract"), ("y0", "x1"), ("change",))
    graph = followed(change, shapes={"change": (UNITS,)}, outputs=("change",))
    made = states_in_place(graph)
    assert [op.name for op in made.ops] == ["x1/kept:op", "op", "change"]
    assert made.ops[-1].inputs == ("y0", "x1/kept") and made.states == graph.states
    assert right(graph, tmp_path)


@pytest.mark.slow
def test_both_states_and_their_views_may_be_read_late(tmp_path: Path) -> None:
    view = Op("view", Reshape((UNITS, 1)), ("x2",), ("view",))
    joined = Op("joined", Concatenate(0), ("view", "view"), ("joined",))
    change = Op("change", Binary("multiply"), ("x1", "x2"), ("change",))
    shapes = {"view": (UNITS, 1), "joined": (2 * UNITS, 1), "change": (UNITS,)}
    graph = followed(view, joined, change, shapes=shapes, outputs=("joined", "change"))
    assert right(graph, tmp_path)
    early = replace(graph, ops=(view, *graph.ops[:1], *graph.ops[2:]))
    assert right(verify(early), tmp_path)


@pytest.mark.parametrize("outputs", [("y0", "x1"), ("x1",)])
def test_an_old_state_may_be_an_output(outputs: tuple[str, ...], tmp_path: Path) -> None:
    assert right(followed(shapes={}, outputs=outputs), tmp_path)


def test_a_state_may_become_another_ones_old_value(tmp_path: Path) -> None:
    graph = LSTM_ALONE
    tensors = {**graph.tensors, "older": Tensor("older", (UNITS,)), "sum": Tensor("sum", (UNITS,))}
    add = Op("sum", Binary("add"), ("older", "y0"), ("sum",))
    states = (*graph.states, State("older", "x1"))
    assert right(
        verify(replace(graph, tensors=tensors, ops=(*graph.ops, add), states=states, outputs=("sum",))), tmp_path
    )

"""Rings with spare rows: the same bits, fewer moves, for so much memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.drawn import drawn
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.ring_slack import MAX_SHARE, add_ring_slack, ring_slack
from nnbuild.plan.target import Target
from tests.frontend.tflite_files import File, to_bytes
from tests.support.compiled import build, run
from tests.support.streaming_files import Net, wake_word

STEPS = 60
PLAIN = Target(alignment=4)


def graph_of(file: File, folder: Path) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return passes.finalize(passes.run(load(path)))


def small(seed: int = 0, dtype: str = "int8", initial: int | None = None) -> File:
    blocks = (((7,), 32), ((11, 15), 32))
    return wake_word(seed, dtype, new=3, features=16, first=(32, 5), blocks=blocks, end=9, initial=initial)


@pytest.fixture(scope="module")
def ring_net(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return graph_of(small(), tmp_path_factory.mktemp("ring"))


def bytes_of(graph: Graph) -> int:
    return sum(graph.tensors[state.before].nbytes for state in graph.states)


def test_they_save_most_within_their_share(ring_net: Graph) -> None:
    spare = ring_slack(add_ring_slack(ring_net, PLAIN))
    assert spare
    assert len({each.turns for each in spare.values()}) == 1
    assert 0 < sum(each.size for each in spare.values()) <= bytes_of(ring_net) // MAX_SHARE
    plan = make_plan(ring_net, "net", PLAIN)
    assert plan.banks == next(iter(spare.values())).turns
    assert plan.state <= bytes_of(ring_net) * (1 + 1 / MAX_SHARE) + 8 * len(ring_net.states)


@pytest.mark.parametrize(
    "target",
    [
        replace(PLAIN, optimize="ram"),
        replace(PLAIN, optimize="size"),
        replace(PLAIN, keep_tensors=True),
        replace(PLAIN, chunked=True),
        replace(PLAIN, max_ram=100_000),
        replace(PLAIN, alignment=64),
    ],
    ids=["ram", "size", "apart", "pieces", "room", "alignment"],
)
def test_there_are_none_where_memory_counts_or_rows_must_stay(ring_net: Graph, target: Target) -> None:
    assert not ring_slack(add_ring_slack(ring_net, target))


def test_rows_that_are_seen_before_they_move_have_none(ring_net: Graph) -> None:
    """What else reads the old rows finds them at their place no more; outputs are read when it is another turn."""
    for seen in ([state.before for state in ring_net.states], [state.after for state in ring_net.states]):
        assert not ring_slack(add_ring_slack(replace(ring_net, outputs=(*ring_net.outputs, *seen)), PLAIN))


def found_and_wanted(graph: Graph, plan: Plan, folder: Path, reset_each: bool = False) -> tuple[list, list]:
    chance = np.random.default_rng(1)
    steps = {name: drawn(graph, name, chance, STEPS) for name in graph.inputs}
    got = run(build(plan, folder, compiler="gcc", flags=["-O1", "-DNN_PORTABLE"], reset_each=reset_each), plan, steps)
    wanted = interpret.run(graph, steps, reset_each=reset_each)
    return [got[name] for name in graph.outputs], [wanted[name] for name in graph.outputs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "isa", "initial"), [("int8", "c99", 5), ("float32", "c99", None), ("int8", "armv7em_dsp", None)]
)
def test_steps_keep_their_bits(dtype: str, isa: str, initial: int | None, tmp_path: Path) -> None:
    graph = graph_of(small(3, dtype, initial), tmp_path)
    plan = make_plan(graph, "net", replace(PLAIN, isa=isas()[isa]))
    assert plan.banks > 1
    got, wanted = found_and_wanted(graph, plan, tmp_path)
    for ours, right in zip(got, wanted, strict=True):
        assert len(np.unique(right)) > 1
        if dtype == "float32":
            np.testing.assert_allclose(ours, right, atol=1e-4)
        else:
            np.testing.assert_array_equal(ours, right)


def test_a_reset_begins_anew_at_any_turn(tmp_path: Path) -> None:
    graph = graph_of(small(4, "int8", 7), tmp_path)
    got, wanted = found_and_wanted(graph, make_plan(graph, "net", PLAIN), tmp_path, reset_each=True)
    np.testing.assert_array_equal(got[0], wanted[0])


def test_rows_of_odd_sizes_stay(tmp_path: Path) -> None:
    """Rows that end between words would be read where no kernel may begin."""
    net = Net(2)
    x = net.tensor("input", (1, 1, 30))
    net.once()
    out = net.ring(net.reshape(x, (1, 1, 1, 30)), 19, "ring")
    graph = graph_of(net.file([x], [net.end(net.depthwise(out, 20))]), tmp_path)
    assert not ring_slack(add_ring_slack(graph, PLAIN))
    assert make_plan(graph, "net", PLAIN).banks == 1

"""The plan of whole networks: lifetimes, sharing, the peak and who is alive there."""

from __future__ import annotations

import itertools

import numpy as np

from nnbuild.model.graph import Constant, Graph, Op, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.reshape import Reshape
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.graphs import single


class Net:
    """Builds a graph one operation after the other; every size is a number of floats."""

    def __init__(self, **inputs: int) -> None:
        self.tensors = {name: Tensor(name, (size,)) for name, size in inputs.items()}
        self.inputs = tuple(inputs)
        self.constants: dict[str, Constant] = {}
        self.ops: list[Op] = []

    def op(self, name: str, attributes: Attributes, *inputs: str, shape: tuple[int, ...]) -> None:
        self.tensors[name] = Tensor(name, shape)
        self.ops.append(Op(f"{name}_op", attributes, inputs, (name,), layer=name))

    def dense(self, name: str, source: str, units: int) -> None:
        data = np.ones((self.tensors[source].shape[0], units), np.float32)
        self.constants[name] = Constant(name, data)
        self.tensors[name] = Tensor(name, (units,))
        self.ops.append(Op(f"{name}_op", Dense(), (source,), (name,), {"kernel": name}, layer=name))

    def graph(self, *outputs: str, states: tuple[State, ...] = ()) -> Graph:
        carried = {state.before for state in states}
        inputs = tuple(name for name in self.inputs if name not in carried)
        return verify(Graph("net", self.tensors, self.constants, tuple(self.ops), inputs, outputs, states))

    def plan(self, *outputs: str, states: tuple[State, ...] = (), apart: bool = False) -> Plan:
        return make_plan(self.graph(*outputs, states=states), "net", Target(alignment=16, keep_tensors=apart))


def ranges(plan: Plan) -> dict[str, range]:
    return {
        name: range(place.offset, place.offset + place.size)
        for name, place in plan.locations.items()
        if place.space == "arena"
    }


def shares(plan: Plan, a: str, b: str) -> bool:
    first, second = ranges(plan)[a], ranges(plan)[b]
    return first.start < second.stop and second.start < first.stop


def test_the_peak_names_its_layer_and_who_is_alive() -> None:
    net = Net(x=8)
    net.dense("wide", "x", 64)
    net.dense("wider", "wide", 128)
    net.dense("out", "wider", 4)
    plan = net.plan("out")
    assert plan.peak is not None
    assert (plan.peak.step, plan.peak.layer) == (1, "wider")
    assert set(plan.peak.alive) == {("wide", 256), ("wider", 512)}
    assert plan.peak.size == plan.arena == plan.arena_bound == 768


def test_what_is_shared_counts_once() -> None:
    net = Net(x=64)
    net.op("bent", Activation("tanh"), "x", shape=(64,))
    plan = net.plan("bent")
    assert shares(plan, "x", "bent")
    assert plan.peak is not None
    assert plan.peak.size == plan.arena == 256


def test_a_skip_connection_keeps_its_tensor() -> None:
    net = Net(x=16)
    net.dense("a", "x", 16)
    net.dense("b", "a", 16)
    net.op("sum", Binary("add"), "a", "b", shape=(16,))
    plan = net.plan("sum")
    assert not shares(plan, "a", "b")
    assert plan.arena == 128


def test_an_output_read_later_is_not_overwritten() -> None:
    net = Net(x=16)
    net.dense("early", "x", 16)
    net.dense("late", "early", 16)
    net.op("end", Activation("tanh"), "late", shape=(16,))
    plan = net.plan("early", "end")
    for name in ("late", "end"):
        assert not shares(plan, "early", name)


def test_an_input_that_is_an_output_lasts() -> None:
    net = Net(x=16)
    net.dense("a", "x", 16)
    net.dense("b", "a", 16)
    plan = net.plan("x", "b")
    assert not shares(plan, "x", "a")
    assert not shares(plan, "x", "b")


def test_a_result_nobody_reads_does_not_spoil_others() -> None:
    net = Net(x=16)
    net.dense("dead", "x", 16)
    net.dense("a", "x", 16)
    plan = net.plan("a")
    assert not shares(plan, "dead", "x")


def test_a_reshape_is_another_name_for_the_same_bytes() -> None:
    net = Net(x=16)
    net.dense("a", "x", 16)
    net.op("square", Reshape((4, 4)), "a", shape=(4, 4))
    net.dense("b", "a", 16)
    net.op("bent", Activation("tanh"), "square", shape=(4, 4))
    plan = net.plan("b", "bent")
    assert plan.locations["square"] == plan.locations["a"]
    assert not shares(plan, "a", "b")
    assert len(plan.steps) == 3


def test_apart_keeps_everything() -> None:
    net = Net(x=16)
    net.dense("a", "x", 16)
    net.op("b", Activation("tanh"), "a", shape=(16,))
    net.op("c", Activation("tanh"), "b", shape=(16,))
    plan = net.plan("c", apart=True)
    for one, other in itertools.combinations(("x", "a", "b", "c"), 2):
        assert not shares(plan, one, other)


def test_states_lie_outside_of_the_arena() -> None:
    net = Net(x=4, held=4)
    net.op("next", Binary("add"), "x", "held", shape=(4,))
    plan = net.plan("next", states=(State("held", "next"),))
    assert plan.locations["held"] == plan.locations["next"]
    assert plan.locations["held"].space == "state"
    assert (plan.state, plan.arena) == (16, 16)


def test_equal_constants_are_stored_once() -> None:
    net = Net(x=16)
    net.dense("a", "x", 16)
    net.dense("b", "a", 16)
    plan = net.plan("b")
    assert len(plan.constants) == 1


def test_the_same_graph_gives_the_same_plan() -> None:
    for name, maker in list(cases())[::9]:
        first, second = (make_plan(maker(), "net", Target()) for _ in range(2))
        assert first.locations == second.locations, name
        assert [step.function for step in first.steps] == [step.function for step in second.steps]
        assert list(first.constants) == list(second.constants)
        assert first.peak == second.peak


def test_alignment_is_kept() -> None:
    net = Net(x=3)
    net.dense("a", "x", 5)
    net.dense("b", "a", 7)
    for alignment in (4, 16, 64):
        plan = make_plan(net.graph("b"), "net", Target(alignment=alignment))
        assert all(place.offset % alignment == 0 for place in plan.locations.values())
        assert plan.arena % alignment == 0


def test_an_operation_that_runs_for_each_index_of_outer_axes_is_priced_for_all() -> None:
    def cycles(outer: tuple[int, ...]) -> float:
        graph = single(Activation("tanh"), [(3, 8)], outer=outer)
        (step,) = make_plan(graph, "net", Target()).steps
        return step.choice.price.cycles

    assert cycles((4, 5)) == 20 * cycles(())

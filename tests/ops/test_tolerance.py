"""Tolerances of programs: the effect of rounding, by output and by sample; zero where nothing rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, Quant, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.nearness import near
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.tolerance import rounded, standards

RNG = np.random.default_rng(1)
EIGHTH = Quant((0.125,), 0)


def chain(*steps: tuple[Attributes, Tensor, dict[str, Array]], start: Tensor | None = None) -> Graph:
    """Operations in sequence on an input x[8]."""
    start = start or Tensor("x", (8,))
    tensors, constants, ops = {"x": start}, {}, []
    before = "x"
    for index, (attributes, tensor, held) in enumerate(steps):
        names = {role: f"c{index}_{role}" for role in held}
        constants.update({names[role]: Constant(names[role], value) for role, value in held.items()})
        tensors[tensor.name] = tensor
        ops.append(Op(f"op{index}", attributes, (before,), (tensor.name,), names))
        before = tensor.name
    return verify(Graph("net", tensors, constants, tuple(ops), ("x",), (before,)))


def kernel(*shape: int) -> dict[str, Array]:
    return {"kernel": RNG.normal(size=shape).astype(np.float32)}


def dense(name: str, inputs: int = 8, units: int = 8) -> tuple[Attributes, Tensor, dict[str, Array]]:
    return Dense(), Tensor(name, (units,)), kernel(inputs, units)


def numbers(count: int = 20, size: int = 8) -> Array:
    return np.random.default_rng(2).normal(size=(count, size)).astype(np.float32)


def magnitudes(x: Array, graph: Graph) -> Array:
    """By sample: the largest sum of absolute products of one dense layer."""
    weights = graph.constants["c0_kernel"].data
    return np.asarray((np.abs(x) @ np.abs(weights)).max(axis=1))


def test_one_layer_is_allowed_16_ulps_of_what_it_adds_up() -> None:
    graph, x = chain(dense("y")), numbers()
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert np.allclose(found.tolerance / (magnitudes(x, graph) * np.finfo(np.float32).eps), 16)
    assert found.values.dtype == np.float32


@pytest.mark.parametrize("positive", [True, False])
def test_sums_of_thousands_of_one_sign_may_drift(positive: bool) -> None:
    """Their partial sums only grow, and so do the errors of these; sums of both signs are allowed no more."""
    size = 2**14
    weights = kernel(size, 4)["kernel"]
    signed = {"kernel": np.abs(weights) if positive else weights}
    graph = chain((Dense(), Tensor("y", (4,)), signed), start=Tensor("x", (size,)))
    x = np.abs(numbers(4, size))
    found = standards(graph, {"x": x}, ["y"])["y"]
    units = found.tolerance / (magnitudes(x, graph) * np.finfo(np.float32).eps)
    assert np.allclose(units, 16 * 2**3.5 if positive else 16)


def test_what_is_moved_errs_as_what_made_it() -> None:
    """Numbers that nearly cancel, as those of a normalization, are far smaller than what they were made of."""
    cancelling = {"kernel": np.array([[3e3], [-3e3 + 1]], np.float32)}
    graph = chain(
        *((Dense(), Tensor("y", (1,)), cancelling), (Reshape((1, 1)), Tensor("r", (1, 1)), {})),
        start=Tensor("x", (2,)),
    )
    found = standards(graph, {"x": np.ones((4, 2), np.float32)}, ["y", "r"])
    np.testing.assert_array_equal(found["y"].tolerance, found["r"].tolerance)


def test_smallest_floats_use_their_own_last_place() -> None:
    """Below 2^-126 a unit in the last place does not shrink any more."""
    graph = chain(dense("y"))
    tiny = np.float32(2.0**-140) * numbers(4)
    allowed = standards(graph, {"x": tiny}, ["y"])["y"].tolerance
    assert (allowed >= 16 * 2.0**-149).all() and (allowed < 2.0**-140).all()
    nothing = standards(graph, {"x": 0 * tiny}, ["y"])["y"].tolerance
    np.testing.assert_array_equal(nothing, 0.0)


@pytest.mark.parametrize("count", [2, 4, 16])
def test_equal_numbers_have_equal_errors(count: int) -> None:
    """Their sum has the error of one of them, times their number."""
    shape = Tensor("g", (count,))
    graph = chain(
        (Activation("gelu_tanh"), shape, {}),
        (Reduce("sum", 0, 1, keep=True), Tensor("y", (1,)), {}),
        start=Tensor("x", (count,)),
    )
    samples = np.array([[-4.0], [3.0], [2.0]], np.float32).repeat(count, axis=1)
    found = standards(graph, {"x": samples}, ["g", "y"])
    assert found["y"].tolerance[0] >= 0.9 * count * found["g"].tolerance[0]


def test_earlier_layers_count_up_to_a_cap() -> None:
    """A sum that nearly cancels passes on its terms' errors; these are measured, and capped."""
    cancelling = {"kernel": np.array([[1.0], [-1.0]], np.float32)}
    grown = {"kernel": np.array([[3e3, 3e3 + 1]], np.float32)}
    graph = chain(
        (Dense(), Tensor("a", (2,)), grown), (Dense(), Tensor("y", (1,)), cancelling), start=Tensor("x", (1,))
    )
    x = np.linspace(1, 2, 20, dtype=np.float32)[:, None]
    found = standards(graph, {"x": x}, ["y"])["y"]
    error = np.abs(interpret.run(graph, {"x": x})["y"] - interpret.run(graph, {"x": x}, "float64")["y"]).max()
    assert error <= found.tolerance.min()
    assert found.tolerance.max() <= 16 * 2.0**-23 * 6002 * 2 * 1.01, "no more than the last sum itself"


@pytest.mark.parametrize("attributes", [LSTM(units=2), GRU(units=2), SimpleRNN(units=2)])
def test_gates_err_by_last_bits_of_one(attributes: Recurrent) -> None:
    """However small what they leave of a state is."""
    shapes = {"kernel": (3, 2 * attributes.gates), "recurrent": (2, 2 * attributes.gates)}
    held = {role: np.zeros(shape, np.float32) for role, shape in shapes.items()}
    held["kernel"][:, 2 * attributes.value_gate :][:, :2] = 1e-4
    tensors = {"x": Tensor("x", (4, 3)), **{f"y{i}": Tensor(f"y{i}", (2,)) for i in range(attributes.states)}}
    outputs = tuple(f"y{i}" for i in range(attributes.states))
    constants = {role: Constant(role, values) for role, values in held.items()}
    op = Op("op", attributes, ("x",), outputs, {role: role for role in held})
    graph = verify(Graph("net", tensors, constants, (op,), ("x",), outputs[:1]))
    found = standards(graph, {"x": numbers(5, 12).reshape(5, 4, 3)}, ["y0"])["y0"]
    eps = np.finfo(np.float32).eps
    assert (found.tolerance >= (4 * eps if attributes.gates > 1 else 0)).all()
    assert (found.tolerance < 4.1 * eps).all()


def test_moves_alone_are_exact() -> None:
    graph = chain((Reshape((2, 4)), Tensor("y", (2, 4)), {}))
    assert rounded(graph) == frozenset()
    assert not standards(graph, {"x": numbers()}, ["y"])["y"].tolerance.any()


def into(name: str, dtype: str = "int8") -> tuple[Attributes, Tensor, dict[str, Array]]:
    return Convert(), Tensor(name, (8,), dtype, EIGHTH), {}


def out_of(name: str) -> tuple[Attributes, Tensor, dict[str, Array]]:
    return Convert(), Tensor(name, (8,)), {}


def test_conversions_alone_are_exact() -> None:
    """A float edge of an integer model rounds once, the same everywhere."""
    graph = chain(into("q"), out_of("y"))
    assert rounded(graph) == frozenset()
    assert not standards(graph, {"x": numbers()}, ["y"])["y"].tolerance.any()


def test_behind_a_float_an_integer_may_be_a_step_off() -> None:
    graph = chain(dense("a"), into("y"))
    assert rounded(graph) == {"a", "y"}
    found = standards(graph, {"x": numbers()}, ["y"])["y"]
    assert found.values.dtype == np.int8
    assert (found.tolerance == 1).all()


def test_int8_behind_a_float_is_never_more_than_a_step_off() -> None:
    """However large the floats before it: here their last bit moves the output by many steps."""
    steps = Tensor("q", (8,), "int8", Quant((2.0**-26,), 0))
    graph = chain(dense("a"), dense("b"), (Convert(), steps, {}))
    found = standards(graph, {"x": 100 * numbers()}, ["q", "b"])
    assert (found["b"].tolerance > 4 * 2.0**-26).all()
    assert (found["q"].tolerance == 1).all()


def test_means_of_integers_are_as_far_off_as_these() -> None:
    """A step of int8 is 128 steps of the 16 bits that it becomes, and a mean of such numbers may be off by as much."""
    fine = Quant((0.125 / 128,), 0)
    graph = chain(
        dense("a"),
        (Convert(), Tensor("b", (8,), "int8", EIGHTH), {}),
        (Convert(), Tensor("c", (8,), "int16", fine), {}),
        (Reduce("mean", 0, 1, keep=True), Tensor("y", (1,), "int16", fine), {}),
    )
    found = standards(graph, {"x": numbers()}, ["b", "c", "y"])
    assert (found["b"].tolerance == 1).all()
    assert (found["c"].tolerance >= 128).all() and (found["y"].tolerance == 128).all()


def test_floats_behind_integers_are_summed_exactly() -> None:
    """A reference in float32 would drift by as much as the program may."""
    numbers = Tensor("x", (4096, 2), "int8", Quant((0.1,), 3))
    floats = (Convert(), Tensor("floats", (4096, 2)), {})
    graph = chain(floats, (Reduce("mean", 0, 1), Tensor("y", (2,)), {}), start=numbers)
    x = np.random.default_rng(1).integers(0, 128, (20, 4096, 2)).astype(np.int8)
    wanted = ((x - 3.0) * np.float32(0.1)).astype(np.float32).astype(np.float64).mean(axis=1)
    np.testing.assert_array_equal(standards(graph, {"x": x}, ["y"])["y"].values, wanted.astype(np.float32))


def test_floats_that_hold_an_integer_behind_a_float_may_be_its_step_off() -> None:
    """As the integer itself, however small the output is in a sample: a float32 may lie on the other side of a half."""
    graph = chain(dense("d"), into("q"), out_of("y"), (Reshape((2, 4)), Tensor("r", (2, 4)), {}))
    for name in ("y", "r"):
        found = standards(graph, {"x": numbers() / 64}, [name])[name]
        assert found.tolerance == pytest.approx(0.125), name
        assert found.tolerance.max() > 0.125, "a step times its scale is rounded, too"


@pytest.mark.parametrize(("function", "steps"), [("add", 2), ("subtract", 2), ("maximum", 1), ("multiply", 0)])
def test_sums_of_integers_behind_floats_may_be_a_step_of_each_off(function: str, steps: int) -> None:
    graph = chain(dense("d"), into("q"), out_of("y"), (Binary("add"), Tensor("z", (8,)), {"right": np.zeros(8, "f")}))
    last = Op("twice", Binary(function), ("y", "z"), ("sum",), {})
    tensors = {**graph.tensors, "sum": Tensor("sum", (8,))}
    graph = verify(replace(graph, tensors=tensors, ops=(*graph.ops, last), outputs=("sum",)))
    found = standards(graph, {"x": numbers() / 64}, ["sum"])["sum"]
    if steps:
        assert found.tolerance.min() >= 0.125 * steps
    assert found.tolerance.max() < 0.125 * steps + 0.01


def test_an_integer_at_a_boundary_is_found_in_every_sample_behind_it() -> None:
    """A sum that lies on a half may round to either side: what is computed from the integer may differ by that step."""
    graph = chain(
        (Dense(), Tensor("d", (8,)), {"kernel": np.eye(8, dtype=np.float32)}),
        into("q"),
        out_of("f"),
        (Dense(), Tensor("y", (8,)), {"kernel": np.full((8, 8), 0.25, np.float32)}),
    )
    x = np.full((200, 8), 8.0, np.float32)
    x[:, 0] = 0.125 * (np.arange(200) % 16 + 0.5)
    assert standards(graph, {"x": x}, ["y"])["y"].tolerance.min() >= 0.03125


@pytest.mark.parametrize("at_run_time", [True, False])
def test_steps_of_scales_that_are_computed_may_move_twice_what_is_seen(at_run_time: bool) -> None:
    """A last bit of such a scale moves many steps at once, and the recomputations are some draws of what may come."""
    eye = {"kernel": np.eye(8, dtype=np.float32)}
    graph = chain((Dense(), Tensor("d", (8,)), eye), into("q"), out_of("f"), (Dense(), Tensor("y", (8,)), eye))
    if at_run_time:
        one = Op("one", Binary("divide"), ("x", "x"), ("ones",), {})
        scaled = Op("scaled", Binary("multiply"), ("d", "ones"), ("e",), {})
        first, quantized, *rest = graph.ops
        tensors = {**graph.tensors, **{name: Tensor(name, (8,)) for name in ("ones", "e")}}
        ops = (first, one, scaled, replace(quantized, inputs=("e",)), *rest)
        graph = verify(replace(graph, tensors=tensors, ops=ops))
    x = np.full((200, 8), 8.0, np.float32)
    x[:, 0] = 0.125 * (np.arange(200) % 16 + 0.5)
    found = standards(graph, {"x": x}, ["y"])["y"].tolerance
    assert (found >= 0.25).all() if at_run_time else (found < 0.2).all()


def test_an_integer_at_a_boundary_excuses_what_it_changes_in_its_sample_alone() -> None:
    """The difference of large numbers is small, and changes by a step of theirs."""
    kernel = np.zeros((8, 8), np.float32)
    kernel[:2] = [[4.0], [-4.0]]
    graph = chain(
        (Dense(), Tensor("d", (8,)), {"kernel": np.eye(8, dtype=np.float32)}),
        into("q"),
        out_of("f"),
        (Dense(), Tensor("y", (8,)), {"kernel": kernel}),
    )
    x = np.full((200, 8), 8.0, np.float32)
    x[::10, 0] += 0.0625
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert (found.tolerance[::10] >= 0.5).all()
    assert (np.delete(found.tolerance, np.s_[::10]) < 0.13).all()


def test_states_carry_rounding_errors() -> None:
    tensors = {n: Tensor(n, (2,), "int8", EIGHTH) for n in ("s", "i", "t")} | {
        "x": Tensor("x", (2,)),
        "f": Tensor("f", (2,)),
    }
    tensors["f2"] = Tensor("f2", (2,))
    graph = Graph(
        "net",
        tensors,
        {},
        (
            Op("a", Convert(), ("s",), ("f",), {}),
            Op("b", Binary("add"), ("f", "x"), ("f2",), {}),
            Op("c", Convert(), ("f2",), ("t",), {}),
            Op("d", Convert(), ("s",), ("i",), {}),
        ),
        ("x",),
        ("i",),
        (State("s", "t"),),
    )
    assert "i" in rounded(verify(graph)), "through the state"


@pytest.mark.parametrize("big", [3e38, -3e38])
def test_overflow_loosens_no_other_sample(big: float) -> None:
    graph, x = chain(dense("a"), dense("y")), numbers()
    alone = standards(graph, {"x": x}, ["y"])["y"]
    x[7] = big
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert not np.isfinite(found.values[7]).all(), "what float32 gives"
    others = np.arange(len(x)) != 7
    assert np.array_equal(found.values[others], alone.values[others])
    assert np.isfinite(found.tolerance).all()
    assert (found.tolerance[others] <= 1.5 * alone.tolerance[others]).all()


@pytest.mark.parametrize("beside", [1.0, 5.5, 8.0], ids=["none", "beyond float32", "beyond float64"])
def test_overflow_does_not_affect_neighbours(beside: float) -> None:
    """An output that overflows neither loosens the tolerance of its neighbours nor takes the tolerance of rounding
    away."""
    exponential = Activation("exponential", ())
    graph = chain((exponential, Tensor("a", (8,)), {}), (exponential, Tensor("y", (8,)), {}))
    x = np.linspace(0.5, 4.25, 32, dtype=np.float32).reshape(4, 8)
    alone = standards(graph, {"x": x}, ["y"])["y"]
    x[3, 0] = beside
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert np.isinf(found.values[3, 0]) == (beside > 5)
    assert np.allclose(found.tolerance, alone.tolerance, rtol=0.5)
    with np.errstate(over="ignore"):
        single = interpret.run(graph, {"x": x}, "float32")["y"]
    assert near(found.values, single, found.tolerance).all()


def test_a_softmax_of_near_ties_is_held_tightly() -> None:
    graph = chain(dense("a"), (Softmax(), Tensor("y", (8,)), {}))
    found = standards(graph, {"x": numbers() * 1e-3}, ["y"])["y"]
    assert (found.tolerance < 1e-6).all()


def test_samples_are_computed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x = chain(dense("a"), (Activation("tanh"), Tensor("y", (8,)), {})), numbers()
    whole = standards(graph, {"x": x}, ["y"])["y"]
    monkeypatch.setattr("nnbuild.ops.tolerance.LARGEST", 100)
    parts = standards(graph, {"x": x}, ["y"])["y"]
    assert np.array_equal(whole.values, parts.values)
    assert np.allclose(whole.tolerance, parts.tolerance, rtol=3)


@pytest.mark.parametrize("attributes", [Compare("greater"), Arg("max")])
def test_choices_by_floats_are_equal_unless_a_last_bit_decides(attributes: Attributes) -> None:
    """A truth value has one step between right and wrong, and an index next to the right one is as wrong as any."""
    graph = chain(dense("a", units=2))
    index = isinstance(attributes, Arg)
    y = Tensor("y", (1,) if index else (2,), "int32" if index else "int8", WHOLE)
    held = {} if index else {"right": Constant("right", np.zeros(1, np.float32))}
    choice = Op("op1", attributes, ("a",), ("y",), {role: role for role in held})
    graph = verify(
        Graph("net", {**graph.tensors, "y": y}, graph.constants | held, (*graph.ops, choice), ("x",), ("y",))
    )
    x = numbers(200)
    x[0] = 0  # a tie of both, and nothing on either side of zero
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert (found.tolerance[1:] == 0).all()
    assert len(np.unique(found.values[1:])) == 2


def test_any_place_of_many_equal_numbers_is_right() -> None:
    """In float32 all their sigmoids are 1, and the first is taken; of hundreds, recomputing does not find each."""
    places = Tensor("y", (1,), "int32", WHOLE)
    graph = chain((Activation("sigmoid"), Tensor("a", (300,)), {}), (Arg("max"), places, {}), start=Tensor("x", (300,)))
    x = np.random.default_rng(4).uniform(20, 30, (3, 300)).astype(np.float32)
    x[1] -= 25  # no sigmoid is 1
    found = standards(graph, {"x": x}, ["y"])["y"]
    first = np.argmax(1 / (1 + np.exp(-x)), axis=1)
    assert near(found.values, first[:, None].astype(np.int32), found.tolerance).all()
    assert found.tolerance[1] == 0


def test_numbers_too_small_for_a_float_are_equal() -> None:
    """The smallest of a softmax: below 2^-149 all are 0 in float32, and the first is taken."""
    places = Tensor("y", (1,), "int32", WHOLE)
    graph = chain((Softmax(), Tensor("a", (4,)), {}), (Arg("min"), places, {}), start=Tensor("x", (4,)))
    x = np.array([[200, 0, -30, -10], [3, 0, 2, 1]], np.float32)
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert near(found.values, np.array([[1], [1]], np.int32), found.tolerance).all()
    assert found.tolerance.tolist() == [3, 0]


@pytest.mark.parametrize("seed", range(4))
def test_float32_in_another_order_stays_within(seed: int) -> None:
    """Sums in reverse order, in plain float32, of layers that add 300 numbers."""
    chance = np.random.default_rng(seed)
    weights = [chance.normal(size=(300, 300)).astype(np.float32) / 17 for _ in range(4)]
    steps = [(Dense(), Tensor(f"y{i}", (300,)), {"kernel": w}) for i, w in enumerate(weights)]
    graph = chain(*steps, start=Tensor("x", (300,)))
    x = chance.normal(size=(6, 300)).astype(np.float32)
    values = x
    for w in weights:
        values = np.cumsum((values[:, :, None] * w)[:, ::-1], axis=1, dtype=np.float32)[:, -1]
    found = standards(graph, {"x": x}, ["y3"])["y3"]
    error = np.abs(values.astype(np.float64) - found.values).max(axis=1)
    assert (error <= found.tolerance).all()
    assert (found.tolerance <= 1e-4 * np.abs(found.values).max(axis=1)).all()


@pytest.mark.parametrize(
    ("function", "parameters", "edge"), [("even_steps", (-8.0, 8.0, 0.5), 1.25), ("floor", (), 1.0)]
)
def test_floats_that_are_rounded_to_steps_may_be_one_off(
    function: str, parameters: tuple[float, ...], edge: float
) -> None:
    """As fake quantization rounds them: what lies on a boundary may fall to either side, like an integer."""
    weights = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)
    graph = chain(
        (Dense(), Tensor("d", (8,)), {"kernel": weights}),
        (Activation(function, parameters), Tensor("s", (8,)), {}),
        (Dense(), Tensor("y", (8,)), {"kernel": np.eye(8, dtype=np.float32)}),
    )
    x = np.linalg.solve(weights.T.astype(np.float64), np.full((8, 4), edge)).T.astype(np.float32)
    found = standards(graph, {"x": x}, ["y"])["y"]
    assert (found.tolerance >= 0.4).all(), "every sum lies where a step begins"

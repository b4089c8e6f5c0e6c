"""What integers would compute too coarsely: masks that a model gives, divisors near zero, and tiny shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.dense import Dense
from nnbuild.ops.known import Known
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import RANDOM_WARNING, Recipe, quantize_with
from tests.support.graphs import single

FORMS = pytest.mark.parametrize("form", ["int8", "int16"])
WIDTH = 8
Step = tuple[str, Attributes, list[str], dict[str, Array]]


def joined(inputs: list[str], steps: list[Step]) -> Graph:
    """A graph of these operations, each with its result's name, inputs and constants; the last gives the output."""
    tensors = {name: Tensor(name, (WIDTH,)) for name in inputs}
    constants, ops = dict[str, Constant](), []
    for name, attributes, reads, held in steps:
        whole = isinstance(attributes, Compare)
        shapes = {role: np.shape(value) for role, value in held.items()}
        (shape,) = attributes.shapes([tensors[each].shape for each in reads], shapes)
        tensors[name] = Tensor(name, shape, "int8" if whole else "float32", WHOLE if whole else None, name)
        constants |= {f"{name} {role}": Constant(f"{name} {role}", np.float32(value)) for role, value in held.items()}
        ops.append(Op(name, attributes, tuple(reads), (name,), {role: f"{name} {role}" for role in held}, layer=name))
    return verify(Graph("net", tensors, constants, tuple(ops), tuple(inputs), (steps[-1][0],)))


def quantized(graph: Graph, form: str, given: Mapping[str, Array]) -> tuple[Graph, Array, Array]:
    """The integer graph, its output and the float graph's."""
    ranges = calibrate(graph, lambda: [given], "minmax", 16 if form == "int16" else 8)
    made = quantize_with(graph, Recipe(form=form, float_edge=True), ranges)
    return made, interpret.run(made, given)[made.outputs[0]], interpret.run(graph, given)[graph.outputs[0]]


def in_floats(graph: Graph) -> set[str]:
    return {op.name for op in graph.ops if op.kind != "convert" and graph.tensors[op.outputs[0]].dtype == "float32"}


@FORMS
def test_what_is_not_finite_until_other_values_are_selected(form: str) -> None:
    """As a power transform computes both of its branches: the logarithms of some numbers, and others beside them."""
    x = np.float32(np.random.default_rng(1).uniform(-3, 3, size=(200, WIDTH)))
    graph = joined(
        ["x"],
        [
            ("line", Activation("linear"), ["x"], {}),
            ("log", Activation("log"), ["line"], {}),
            ("twice", Binary("multiply"), ["log"], {"right": np.full(1, 2)}),
            ("seen", Compare("greater"), ["x"], {"right": np.ones(1)}),
            ("y", Select(), ["seen", "twice", "line"], {}),
        ],
    )
    made, found, wanted = quantized(graph, form, {"x": x})
    assert np.isfinite(wanted).all() and np.abs(found - wanted).max() < (0.05 if form == "int8" else 1e-3)
    assert {"log", "twice", "y"} <= in_floats(made)
    assert [note for note in made.notes if "not finite" in note] == [
        "layer 'log': some of its results are not finite, as a logarithm of a negative number, which floats alone "
        "hold, and it is computed in floats"
    ]


@FORMS
def test_columns_of_different_units_behind_powers_of_their_own(form: str) -> None:
    """Which of the columns have a logarithm is known beforehand."""
    units = np.geomspace(1, 1e4, WIDTH)
    x = np.float32(np.random.default_rng(1).uniform(0.5, 1, size=(200, WIDTH)) * units)
    graph = joined(
        ["x"],
        [
            ("which", Known(), ["x"], {"values": np.arange(WIDTH) % 2}),
            ("chosen", Compare("greater"), ["which"], {"right": np.zeros(1)}),
            ("log", Activation("log"), ["x"], {}),
            ("both", Select(), ["chosen", "log", "x"], {}),
            (
                "scaled",
                Affine(),
                ["both"],
                {"scale": np.where(np.arange(WIDTH) % 2, 0.3, 1 / units), "shift": -units * 0},
            ),
            ("y", Dense(), ["scaled"], {"kernel": np.eye(WIDTH)}),
        ],
    )
    _, found, wanted = quantized(graph, form, {"x": x})
    assert np.abs(found - wanted).max() < (0.03 if form == "int8" else 1e-3) * np.abs(wanted).max()


@FORMS
@pytest.mark.parametrize("deep", [-1e4, -1e9, float(np.finfo(np.float32).min), 1e9])
def test_masks_that_a_model_gives_are_given(deep: float, form: str) -> None:
    """And take no steps away from the values beside them; what reads them reads both."""
    chance = np.random.default_rng(1)
    x = np.float32(chance.normal(size=(200, WIDTH)))
    given = {"x": x, "m": np.float32(np.sign(chance.normal(size=x.shape)))}
    graph = joined(
        ["x", "m"],
        [
            ("seen", Compare("greater"), ["m"], {"right": np.zeros(1)}),
            ("masked", Select(), ["seen", "x"], {"other": np.full(1, deep)}),
            ("y", Reshape((2, 4)), ["masked"], {}),
        ],
    )
    made, found, wanted = quantized(graph, form, given)
    far = np.abs(wanted) >= 1000
    np.testing.assert_array_equal(found[far], wanted[far])
    assert np.abs(found - wanted)[~far].max() < 0.02
    assert in_floats(made) == {"masked", "y"}
    assert made.notes[0] == (
        f"layer 'masked': no format of {form} holds both {x.min():.3g} to {x.max():.3g} and the mask beside it, and it "
        "is computed in floats"
    )


@FORMS
@pytest.mark.parametrize("added", [False, True])
def test_scores_of_a_softmax_may_be_small_beside_their_mask(added: bool, form: str) -> None:
    """As in attention that is hardly trained: shares depend on the size of a step alone."""
    chance = np.random.default_rng(5)
    x = np.float32(chance.normal(scale=0.01, size=(200, WIDTH)))
    given = {"x": x, "m": np.float32(np.sign(chance.normal(size=x.shape)))}
    seen: Step = ("seen", Compare("greater"), ["m"], {"right": np.zeros(1)})
    mask: Step = ("mask", Select(), ["seen"], {"chosen": np.zeros(1), "other": np.full(1, -1e9)})
    chosen: Step = ("masked", Select(), ["seen", "x"], {"other": np.full(1, -1e9)})
    masked = [seen, mask, ("masked", Binary("add"), ["x", "mask"], {})] if added else [seen, chosen]
    graph = joined(["x", "m"], [*masked, ("y", Softmax(), ["masked"], {})])
    made, found, wanted = quantized(graph, form, given)
    shown = (given["m"] > 0).any(axis=1)
    assert np.abs(found - wanted)[shown].max() < (0.02 if form == "int8" else 0.001)
    assert in_floats(made) == set() and made.notes == (RANDOM_WARNING,)


@FORMS
def test_a_number_of_the_values_own_size_is_held_beside_them(form: str) -> None:
    graph = joined(
        ["x"],
        [
            ("seen", Compare("greater"), ["x"], {"right": np.zeros(1)}),
            ("y", Select(), ["seen", "x"], {"other": np.full(1, -5.0)}),
        ],
    )
    made, *_ = quantized(graph, form, {"x": np.float32(np.random.default_rng(1).normal(size=(200, WIDTH)))})
    assert in_floats(made) == set()


@FORMS
@pytest.mark.parametrize("epsilon", [1e-3, 1e-7])
def test_what_is_divided_by_is_not_rounded_to_zero(epsilon: float, form: str) -> None:
    chance = np.random.default_rng(2)
    b = np.float32(np.abs(chance.normal(size=(200, WIDTH))) ** 3 * 10)
    graph = joined(
        ["a", "b"],
        [
            ("d", Binary("add"), ["b"], {"right": np.full(1, epsilon)}),
            ("y", Binary("divide"), ["a", "d"], {}),
        ],
    )
    made, found, wanted = quantized(graph, form, {"a": np.float32(chance.normal(size=b.shape)) * b, "b": b})
    assert np.linalg.norm(found - wanted) < 0.01 * np.linalg.norm(wanted)
    assert in_floats(made) == {"d", "y"}
    assert made.notes[0].startswith(f"layer 'y': what it divides by or takes, {b.min() + epsilon:.3g} to ")
    assert made.notes[0].endswith(f", comes too near 0 for steps of {form}, and it is computed in floats")


@FORMS
def test_dividends_as_small_as_their_divisors_keep_their_shares(form: str) -> None:
    """As in a softmax by its formula, which takes no maximum off: its sums differ by orders of magnitude."""
    x = np.float32(np.random.default_rng(3).normal(scale=3, size=(200, WIDTH)))
    graph = joined(
        ["x"],
        [
            ("e", Activation("exponential"), ["x"], {}),
            ("s", Reduce("sum", 0, 1, True), ["e"], {}),
            ("y", Binary("divide"), ["e", "s"], {}),
        ],
    )
    made, found, wanted = quantized(graph, form, {"x": x})
    assert np.linalg.norm(found - wanted) < 0.01 * np.linalg.norm(wanted)
    assert in_floats(made) == {"e", "s", "y"}


@FORMS
def test_a_layer_that_is_divided_by_is_computed_in_floats_with_it(form: str) -> None:
    """Its own rounding to 0 would have no quotient."""
    chance = np.random.default_rng(3)
    x = np.float32(chance.normal(size=(400, WIDTH)))
    kernel = chance.normal(size=(WIDTH, WIDTH)).clip(0.01)
    made, found, wanted = quantized(
        joined(
            ["x"],
            [
                ("e", Activation("exponential"), ["x"], {}),
                ("s", Dense(), ["e"], {"kernel": kernel**8 / 100}),
                ("y", Binary("divide"), ["s"], {"left": np.ones(1)}),
            ],
        ),
        form,
        {"x": x},
    )
    assert {"s", "y"} <= in_floats(made)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found - wanted) < (0.2 if form == "int8" else 0.01) * np.linalg.norm(wanted)


@FORMS
def test_divisors_with_enough_steps_stay_integers(form: str) -> None:
    chance = np.random.default_rng(2)
    graph = joined(
        ["a", "b"],
        [("t", Reduce("sum", 0, 1, True), ["b"], {}), ("y", Binary("divide"), ["a", "t"], {})],
    )
    given = {"a": chance.normal(size=(200, WIDTH)), "b": chance.uniform(0.2, 1, (200, WIDTH))}
    made, found, wanted = quantized(graph, form, {name: np.float32(values) for name, values in given.items()})
    assert in_floats(made) == set()
    assert np.linalg.norm(found - wanted) < 0.03 * np.linalg.norm(wanted)


@FORMS
@pytest.mark.parametrize("function", ["sigmoid", "tanh", "softmax"])
def test_results_far_below_the_steps_of_their_format(function: str, form: str) -> None:
    width = 10000 if function == "softmax" else WIDTH
    shift, size = (-9.0, 1.0) if function == "sigmoid" else (0.0, 0.001 if function == "tanh" else 1.0)
    x = np.float32(shift + size * np.random.default_rng(4).normal(size=(30, width)))
    graph = single(Softmax() if function == "softmax" else Activation(function), [(width,)])
    made, found, wanted = quantized(graph, form, {"x0": x})
    assert np.linalg.norm(found - wanted) < 0.03 * np.linalg.norm(wanted)
    assert made.notes[0] == (
        f"layer 'op': its results, {wanted.min():.3g} to {wanted.max():.3g}, are less than "
        f"{16 if form == 'int8' else 256} steps of {form}, and it is computed in floats"
    )


@FORMS
def test_an_output_that_integers_leave_to_floats_is_told(form: str) -> None:
    x = np.float32(np.random.default_rng(4).normal(size=(30, WIDTH))) * 1e-3
    graph = single(Activation("tanh"), [(WIDTH,)])
    ranges = calibrate(graph, lambda: [{"x0": x}], "minmax", 16 if form == "int16" else 8)
    made = quantize_with(graph, Recipe(form=form), ranges)
    assert made.tensors[made.outputs[0]].dtype == "float32"
    told = f"output {made.outputs[0]!r} is float32, because layer 'op' is computed in floats"
    assert told in made.notes and told not in quantize_with(graph, Recipe(form=form, float_edge=True), ranges).notes


@FORMS
def test_usual_results_keep_their_format(form: str) -> None:
    x = np.float32(np.random.default_rng(4).normal(size=(30, WIDTH)))
    for attributes in (Softmax(), Activation("sigmoid"), Activation("tanh")):
        made, *_ = quantized(single(attributes, [(WIDTH,)]), form, {"x0": x})
        assert in_floats(made) == set()

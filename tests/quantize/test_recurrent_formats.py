"""Which formats the tensors and constants around recurrent layers get, and which rules follow from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.kernels.recurrent.integer_cells import Sums
from nnbuild.model.graph import Graph, Quant
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent, rules_of
from nnbuild.ops.recurrent_rules import OTHER_GATE, curve_of, gate_curve, power_of
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import site_of
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.rewrite import rewrite
from tests.support.graphs import single
from tests.support.recurrent import bidirectional, classifier, stacked

RELU = ("relu", (float("inf"), 0.0, 0.0))


def quantized(graph: Graph, form: str = "int8", keep: dict[str, str] | None = None) -> Graph:
    chance = np.random.default_rng(0)
    samples = {name: chance.normal(size=(8, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs}
    return rewrite(graph, calibrate(graph, lambda: [samples], "minmax", 8), keep or {}, form, False)


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_states_have_fixed_formats_where_the_activation_has_bounds(form: str) -> None:
    made = quantized(classifier(LSTM(units=4), 0), form)
    for state in made.states:
        assert made.tensors[state.before].quant == made.tensors[state.after].quant
    assert (made.tensors["after0"].dtype, made.tensors["after0"].quant) == ("int16", Quant((2.0**-15,)))
    assert (made.tensors["after1"].dtype, made.tensors["after1"].quant) == ("int32", Quant((2.0**-20,)))
    assert made.constants["kernel"].data.dtype == made.constants["dense"].data.dtype == form
    assert made.constants["bias"].data.dtype == {"int8": "int32", "int16": "int64"}[form]


def test_a_state_without_bounds_is_calibrated_over_all_time_steps() -> None:
    """The hidden state grows and shrinks again; its final value alone would tell nothing."""
    constants = {"kernel": np.ones((1, 1)), "recurrent": np.full((1, 1), 0.5)}
    graph = single(SimpleRNN(units=1, activation=RELU), [(3, 1)], constants)
    samples = {"x0": np.array([[[0.0], [20.0], [-40.0]]], np.float32)}
    ranges = calibrate(graph, lambda: [samples], "minmax", 8)
    assert (ranges["y0"].low, ranges["y0"].high) == (0.0, 20.0)
    made = rewrite(graph, ranges, {}, "int8", False)
    assert made.tensors["y0"].quant == Quant((2.0**-9,))


def test_a_second_layer_reads_16_bits_and_a_dense_one_8() -> None:
    made = quantized(stacked(LSTM(units=4)))
    second, dense = (next(op for op in made.ops if op.name == name) for name in ("second", "dense"))
    assert made.tensors[second.inputs[0]].dtype == "int16"
    assert made.tensors[dense.inputs[0]].dtype == "int8"
    assert [op.name for op in made.ops if op.kind == "convert"] == [dense.inputs[0]]


def test_a_layer_kept_in_float_stays_float() -> None:
    made = quantized(stacked(GRU(units=4)), keep={"first": "float"})
    assert made.tensors["sequence"].dtype == "float32"
    assert made.tensors["b0"].dtype == "int16"


def test_both_ways_share_one_format() -> None:
    made = quantized(bidirectional(LSTM(units=4)), "int16")
    assert {made.tensors[name].quant for name in ("ahead", "behind", "turned")} == {Quant((2.0**-15,))}


def test_gates_reach_their_ends() -> None:
    for function in ("sigmoid", "hard_sigmoid", "hard_sigmoid_fifth"):
        curve = gate_curve((function, ()))
        ends = curve.apply(np.array([-curve.limit, 0, curve.limit]))
        assert ends.tolist() == [0, 1 << (curve.power - 1), 1 << curve.power]
    assert gate_curve(("tanh", ())).power == gate_curve(RELU).power == OTHER_GATE


@pytest.mark.parametrize(
    "name", ["tanh", "sigmoid", "softsign", "hard_sigmoid", "elu", "selu", "swish", "gelu", "linear"]
)
def test_curves_follow_their_functions(name: str) -> None:
    parameters = (1.0,) if name == "elu" else ()
    curve = curve_of((name, parameters), 12)
    x = np.linspace(-6, 6, 4001)
    steps = np.round(x / curve.in_scale).astype(np.int64)
    exact = Activation(name, parameters).reference([steps * curve.in_scale], {})[0]
    assert np.abs(curve.apply(steps) / 2.0**curve.power - exact).max() < 2.0**-9


def test_sums_have_32_bits_where_their_weights_prove_it() -> None:
    for form, narrow in (("int8", True), ("int16", False)):
        graph = quantized(classifier(GRU(units=4), 0), form)
        rules = rules_of(site_of(graph, graph.ops[0]))
        assert rules.of_state.narrow == narrow


def test_a_scale_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        power_of(Quant((0.3,)))
    graph = quantized(classifier(LSTM(units=4), 0))
    tensors = {n: replace(t, quant=Quant((0.3,))) if n == "after1" else t for n, t in graph.tensors.items()}
    site = site_of(replace(graph, tensors=tensors), graph.ops[0])
    assert "power of two" in str(Sums().accepts(site))


def test_states_too_coarse_for_their_values_are_refused() -> None:
    graph = quantized(classifier(LSTM(units=4), 0))
    tensors = {n: replace(t, quant=Quant((2.0**-44,))) if n == "after1" else t for n, t in graph.tensors.items()}
    site = site_of(replace(graph, tensors=tensors), graph.ops[0])
    assert "do not go together" in str(Sums().accepts(site))


@pytest.mark.parametrize("layer", [LSTM(units=3), GRU(units=3), GRU(units=3, reset_after=False), SimpleRNN(units=3)])
def test_a_single_step_is_near_the_float_one(layer: Recurrent) -> None:
    """Each form against float, so that no gate can take another's place."""
    chance = np.random.default_rng(4)
    width = layer.gates * layer.units
    constants = {
        "kernel": chance.normal(size=(2, width)),
        "recurrent": chance.normal(size=(3, width)),
        "bias": chance.normal(size=layer.bias_shape()),
    }
    graph = single(layer, [(5, 2), *[(3,)] * layer.states], constants)
    samples = {n: chance.normal(size=(40, *graph.tensors[n].shape)).astype(np.float32) / 2 for n in graph.inputs}
    made = rewrite(graph, calibrate(graph, lambda: [samples], "minmax", 8), {}, "int16", False)
    exact, found = interpret.run(graph, samples, "float64"), interpret.run(made, samples)
    for name in made.outputs:
        scale = made.tensors[name].quant
        assert scale is not None
        np.testing.assert_allclose(found[name] * scale.scale, exact[name], atol=0.002)


def test_a_sigmoid_behind_a_recurrent_layer_is_not_too_steep_for_16_bits() -> None:
    """Headroom reaches away from zero alone: a range from 0.2 to 0.8 lost its values from 0.2 to 0.4."""
    graph = classifier(GRU(units=4), 0)
    ops = tuple(replace(op, attributes=Activation("sigmoid")) if op.name == "softmax" else op for op in graph.ops)
    made = quantized(replace(graph, ops=ops), "int16")
    assert not [note for note in made.notes if "changes too fast" in note]
    assert (made.tensors["y"].dtype, made.tensors["y"].quant) == ("int16", Quant((2.0**-15,)))

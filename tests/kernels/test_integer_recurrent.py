"""LSTM, GRU and SimpleRNN in integer C against the integer reference: bit-exact, in many forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa import registry
from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import site_of
from nnbuild.plan.plan import make_plan
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.rewrite import rewrite
from tests.kernels import made_up_set
from tests.kernels.cases import cases
from tests.kernels.test_variants import runs_here
from tests.support.batch import SANITIZED, Entry, run_batch
from tests.support.graphs import single
from tests.support.quantized import full_range
from tests.support.recurrent import bidirectional, handed_over, masked, stacked

FUNCTIONS = {
    "relu": ("relu", (float("inf"), 0.0, 0.0)),
    "leaky": ("leaky_relu", (0.2,)),
    "linear": ("linear", ()),
    "elu": ("elu", (0.7,)),
    "softsign": ("softsign", ()),
    "hard_swish": ("hard_swish", ()),
    "sigmoid": ("sigmoid", ()),
}
GATHERING = replace(made_up_set.VECTORS, spellings={**made_up_set.VECTORS.spellings, "gather": ""})
SIZES = (1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65)
GATES = {"hard": ("hard_sigmoid_fifth", ()), "tanh": ("tanh", ()), "relu": ("relu", (float("inf"), 0.0, 0.0))}
LAYERS: tuple[Recurrent, ...] = (LSTM(units=4), GRU(units=4), GRU(units=4, reset_after=False), SimpleRNN(units=4))


def quantized(graph: Graph, form: str, seed: int = 0, float_edge: bool = False) -> Graph:
    chance = np.random.default_rng(seed)
    samples = {name: chance.normal(size=(12, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs}
    return rewrite(graph, calibrate(graph, lambda: [samples], "minmax", 8), {}, form, float_edge)


def single_layer(layer: Recurrent, steps: int, features: int, scale: float = 1.0, recurrent: float = 0.4) -> Graph:
    chance = np.random.default_rng(features)
    width = layer.gates * layer.units
    constants = {
        "kernel": chance.normal(size=(features, width)) * scale,
        "recurrent": chance.normal(size=(layer.units, width)) * recurrent,
        "bias": chance.normal(size=layer.bias_shape()),
    }
    return single(layer, [(steps, features)], constants)


def models() -> dict[str, Graph]:
    made = {name: maker() for name, maker in cases() if name.startswith(("lstm", "gru", "simple_rnn"))}
    for index, layer in enumerate(LAYERS):
        for name, function in FUNCTIONS.items():
            made[f"{layer.kind}{index} {name}"] = single_layer(replace(layer, activation=function), 5, 3)
        for name, gate in GATES.items():
            made[f"{layer.kind}{index} gate {name}"] = single_layer(replace(layer, gate_activation=gate), 5, 3)
        made[f"{layer.kind}{index} one"] = single_layer(replace(layer, units=1), 1, 1)
        made[f"{layer.kind}{index} steep"] = single_layer(layer, 7, 9, 300.0)
        made[f"{layer.kind}{index} beyond"] = single_layer(layer, 7, 9, 3e4, 3e4)
        relu = replace(layer, gate_activation=GATES["relu"])
        made[f"{layer.kind}{index} beyond gate relu"] = single_layer(relu, 2, 9, 300.0, 300.0)
        made[f"{layer.kind}{index} flat"] = single_layer(layer, 7, 9, 0.0)
        made[f"{layer.kind}{index} stacked"] = stacked(layer)
        made[f"{layer.kind}{index} both ways"] = bidirectional(layer)
        made[f"{layer.kind}{index} masked"] = masked(replace(layer, units=5))
        made[f"{layer.kind}{index} handed over"] = handed_over(layer)
        made[f"{layer.kind}{index} relu handed over"] = handed_over(replace(layer, activation=FUNCTIONS["relu"]))
    return made


def extreme(graph: Graph, count: int) -> dict[str, Array]:
    """Random integers over the whole range, and its ends."""
    values = full_range(graph, count, seed=3)
    for value in values.values():
        info = np.iinfo(value.dtype)
        value[0], value[1] = info.min, info.max
    return values


def target_for(graph: Graph, kernel: str) -> Target:
    """A target that selects the kernel of this name for every recurrent layer that it can compute."""
    found = re.fullmatch("(.+)_(integers|cells)", kernel)
    target = Target(isas()[found[1] if found else "armv7em_dsp"])
    wanted = {}
    for op in graph.ops:
        for variant in variants(op.kind):
            forced = replace(target, forced_kernels={op.name: kernel})
            if variant.name == kernel and refusal(variant, site_of(graph, op), forced) is None:
                wanted[op.name] = kernel
    return replace(target, forced_kernels=wanted)


@pytest.mark.turns(9)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        *(("int8", "integer"), ("int16", "integer"), ("int16", "halves")),
        *(("int8", "pairs"), ("int8", "pairs_wide"), ("int16", "pairs_wide")),
    ],
)
def test_kernels_equal_the_reference(form: str, kernel: str, tmp_path: Path) -> None:
    compare(form, kernel, tmp_path)


def test_sums_of_bytes_are_taken_apart_before_32_bits_overflow(tmp_path: Path) -> None:
    """256 of the largest weights and inputs, one more, and two whole parts."""
    graphs = {}
    for features in (256, 257, 512):
        layer = LSTM(units=2)
        constants = {
            "kernel": np.where(np.arange(8) % 2, 1.0, -1.0) * np.ones((features, 8)),
            "recurrent": np.ones((2, 8)),
            "bias": np.zeros(8),
        }
        graphs[str(features)] = quantized(single(layer, [(2, features)], constants), "int16")
    compare_all(graphs, "halves", tmp_path, ())


@pytest.mark.turns(18)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("name", ["sse2", "avx2_fma", "avx512", "mve", "neon", "zve32x", "made_up"])
def test_cells_in_vectors_equal_the_reference(name: str, form: str, tmp_path: Path) -> None:
    flags = () if name in ("sse2", "avx2_fma", "avx512") and runs_here(isas()[name]) else ("-DNN_PORTABLE",)
    with registry.added(made_up_set.ISA, GATHERING):
        compare(form, f"{name}_cells", tmp_path, flags, every=1)


@pytest.mark.turns(9)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["avx2_fma", "mve", "zve32x"])
@pytest.mark.parametrize("seed", range(2))
def test_cells_of_many_sizes(name: str, seed: int, tmp_path: Path) -> None:
    """Parts of vectors, wide spreads of weights, dead and near-dead columns, and sums of all lengths."""
    chance = np.random.default_rng(seed)
    graphs = []
    for layer, form, sharp in product(LAYERS, ("int8", "int16"), (1e-2, 0.3, 5.0)):
        units, features = (int(chance.choice(SIZES)) for _ in range(2))
        layer = replace(layer, units=units, backwards=bool(chance.integers(2)))
        width = layer.gates * units
        constants = {
            "kernel": chance.normal(size=(features, width)) * sharp * np.exp(chance.normal(size=width)),
            "recurrent": chance.normal(size=(units, width)) * 2 / np.sqrt(units),
            "bias": chance.normal(size=layer.bias_shape()),
        }
        constants["kernel"][:, chance.random(width) < 0.1] = 0
        constants["recurrent"][:, chance.random(width) < 0.1] *= 1e-6
        graphs.append(quantized(single(layer, [(3, features)], constants), form))
    flags = () if name == "avx2_fma" and runs_here(isas()[name]) else ("-DNN_PORTABLE",)
    compare_all({str(i): graph for i, graph in enumerate(graphs)}, f"{name}_cells", tmp_path, flags)


@pytest.mark.turns(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sse2", "avx2_fma", pytest.param("avx512", marks=pytest.mark.full)])
@pytest.mark.parametrize("flags", [(), ("-DNN_PORTABLE",)], ids=["native", "portable"])
def test_vectors_equal_the_reference(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    if not flags and not runs_here(isas()[name]):
        pytest.skip(f"this processor has no {name}")
    compare("int8", f"{name}_integers", tmp_path, flags)


@pytest.mark.slow
def test_a_set_that_is_added_has_them(tmp_path: Path) -> None:
    with registry.added(made_up_set.ISA, made_up_set.VECTORS):
        compare("int8", "made_up_integers", tmp_path, every=9)


def compare(form: str, kernel: str, tmp_path: Path, flags: tuple[str, ...] = (), every: int = 3) -> None:
    every = 1 if kernel == "integer" else every
    graphs = {name: quantized(graph, form) for name, graph in list(models().items())[::every]}
    compare_all(graphs, kernel, tmp_path, flags)


def compare_all(graphs: Mapping[str, Graph], kernel: str, tmp_path: Path, flags: tuple[str, ...] = ()) -> None:
    inputs = {name: extreme(graph, 6) for name, graph in graphs.items()}
    targets = {name: Target() if kernel == "integer" else target_for(graph, kernel) for name, graph in graphs.items()}
    served = [name for name in graphs if kernel == "integer" or targets[name].forced_kernels]
    assert len(served) > len(graphs) // 2
    entries = [Entry(make_plan(graphs[name], f"net{i}", targets[name]), inputs[name]) for i, name in enumerate(served)]
    for name, found in zip(served, run_batch(entries, tmp_path, (*SANITIZED, *flags)), strict=True):
        wanted = interpret.run(graphs[name], inputs[name])
        for output in graphs[name].outputs:
            np.testing.assert_array_equal(found[output], wanted[output], err_msg=f"{name}, {output}")


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_floats_at_the_edge_enter_states_alike(form: str, tmp_path: Path) -> None:
    graphs = [quantized(handed_over(layer), form, float_edge=True) for layer in LAYERS]
    chance = np.random.default_rng(1)
    inputs = {name: chance.normal(size=(5, *t.shape)).astype(np.float32) * 2 for name, t in graphs[0].tensors.items()}
    inputs |= {name: inputs["given0"] * 1e4 for name in ("given1",) if name in inputs}
    entries = [
        Entry(make_plan(graph, f"net{i}", Target()), {name: inputs[name] for name in graph.inputs})
        for i, graph in enumerate(graphs)
    ]
    for entry, found in zip(entries, run_batch(entries, tmp_path), strict=True):
        wanted = interpret.run(entry.plan.graph, entry.inputs)
        for output in entry.plan.graph.outputs:
            np.testing.assert_array_equal(found[output], wanted[output])

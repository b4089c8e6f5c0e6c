"""Inputs whose columns have different units: their normalization is no part of weights, and comes before quantization
where inputs are floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.model.graph import Array, Constant, Graph, Op
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.reshape import Reshape
from nnbuild.passes.fuse_norms import fuse_norms
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from nnbuild.quantize.report import as_float
from tests.passes.test_passes import Chain, kinds


def network(kind: str, ratio: float, *, hidden: bool = False, bent: bool = False) -> Graph:
    """A normalization of four columns, one of them `ratio` times as large, and what reads it; perhaps behind a hidden
    layer, or an elementwise function."""
    chain = Chain((12, 4) if kind == "conv1d" else (4,), seed=2)
    if hidden:
        chain.add(Dense(), kernel=(4, 4))
        chain.add(Reshape((4,)))
    if bent:
        chain.add(Activation("leaky_relu", (0.3,)))
    chain.add(Affine(len(chain.tensors[chain.last].shape) - 1), scale=(4,), shift=(4,))
    if kind == "conv1d":
        chain.add(Reshape((1, 12, 4)))
        chain.add(Conv2D(), kernel=(1, 3, 4, 8), bias=(8,))
        chain.add(Reshape((80,)))
    else:
        chain.add(Dense(), kernel=(4, 16), bias=(16,))
    chain.add(Dense(), kernel=(chain.tensors[chain.last].shape[0], 2), bias=(2,))
    graph = chain.graph()
    names = next(op.constants for op in graph.ops if op.kind == "affine")
    sizes = np.array([1, 1, 1, ratio])
    changed = {names["scale"]: 1 / sizes, names["shift"]: np.full(4, 0.2)}
    constants = {name: Constant(name, values.astype(np.float32)) for name, values in changed.items()}
    return replace(graph, constants={**graph.constants, **constants})


def samples(graph: Graph, ratio: float) -> Array:
    chance = np.random.default_rng(4)
    return (chance.normal(size=(300, *graph.tensors["x"].shape)) * np.array([1, 1, 1, ratio])).astype(np.float32)


def integers(graph: Graph, x: Array, form: str, float_edge: bool = False) -> Graph:
    folded = fuse_norms(passes.run(graph, form="int8"))
    ranges = calibrate(folded, lambda: iter([{"x": x}]), "minmax", 16 if form == "int16" else 8)
    return quantize_with(folded, Recipe(form, float_edge=float_edge), ranges)


def error(graph: Graph, made: Graph, x: Array) -> float:
    """Root mean square, as a share of the deviation."""
    wanted = interpret.run(graph, {"x": x})[graph.outputs[0]]
    found = interpret.run(made, {"x": x})[made.outputs[0]].astype(np.float64)
    quant = made.tensors[made.outputs[0]].quant
    real = found if quant is None else (found - quant.zero_point) * quant.scale
    return float(np.sqrt(np.square(real - wanted).mean()) / wanted.std())


@pytest.mark.parametrize("kind", ["dense", "conv1d"])
@pytest.mark.parametrize("ratio", [1, 10, 100, 1000])
def test_words_keep_all_columns(kind: str, ratio: float) -> None:
    graph = network(kind, ratio)
    x = samples(graph, ratio)
    assert error(graph, integers(graph, x, "int16"), x) < (0.05 if ratio == 1000 else 0.01)


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("kind", ["dense", "conv1d"])
@pytest.mark.parametrize("ratio", [10, 1000, 1e6])
def test_inputs_in_floats_are_normalized_in_floats(kind: str, ratio: float, form: str) -> None:
    graph = network(kind, ratio)
    x = samples(graph, ratio)
    made = integers(graph, x, form, float_edge=True)
    assert next(op.kind for op in made.ops if made.tensors[op.outputs[0]].dtype == "float32") in ("affine", "reshape")
    assert error(graph, made, x) < 0.05


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("ratio", [10, 1e6, 1e12])
def test_columns_that_are_inputs_are_joined_in_floats(ratio: float, form: str) -> None:
    """Each has a scale of its own, which one scale for all of them would lose."""
    whole = network("dense", ratio)
    x, parts = samples(whole, ratio), {"few": 1, "many": 3}
    tensors = {
        **whole.tensors,
        **{name: replace(whole.tensors["x"], name=name, shape=(n,)) for name, n in parts.items()},
    }
    join = Op("join", Concatenate(0), ("many", "few"), ("x",))
    graph = verify(replace(whole, tensors=tensors, ops=(join, *whole.ops), inputs=("many", "few")))
    given = {"many": x[:, :3], "few": x[:, 3:]}
    made = quantize_with(graph, Recipe(form=form), calibrate(graph, lambda: [given], "minmax", 8))
    assert [made.tensors[name].dtype for name in made.inputs] == [form, form] and made.tensors["x"].dtype == "float32"
    found, wanted = (interpret.run(each, given)[each.outputs[0]] for each in (made, graph))
    found = as_float(made.tensors[made.outputs[0]], found)
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("ratio", [1000, 1e6])
def test_what_is_elementwise_before_is_computed_in_floats_too(ratio: float, form: str) -> None:
    """As a logarithm or a clip of raw features."""
    graph = network("dense", ratio, bent=True)
    x = samples(graph, ratio)
    made = integers(graph, x, form, float_edge=True)
    found = [op.kind for op in made.ops if made.tensors[op.outputs[0]].dtype == "float32"]
    assert found == ["activation", "affine", "convert"]
    assert error(graph, made, x) < 0.05
    (note,) = [note for note in integers(graph, x, form).notes if "columns" in note]
    assert f"the columns of its input differ by a factor of {ratio:.0f}, and share one scale" in note


def test_other_normalizations_are_folded() -> None:
    """Those that hardly differ, those of hidden layers, and those of models that stay in floats."""
    assert "affine" not in kinds(passes.run(network("dense", 2), form="int8"))
    assert "affine" not in kinds(passes.run(network("dense", 100, hidden=True), form="int8"))
    assert "affine" not in kinds(passes.run(network("dense", 100)))


def test_columns_that_share_a_scale_are_noted() -> None:
    graph = network("dense", 100)
    x = samples(graph, 100)
    (note,) = [note for note in integers(graph, x, "int8").notes if "columns" in note]
    assert "differ by a factor of 100, and share one scale; with --io float" in note
    assert not [note for note in integers(graph, x, "int8", float_edge=True).notes if "columns" in note]


def test_factors_beyond_integers_are_computed_in_floats() -> None:
    graph = network("conv1d", 1e7)
    x = samples(graph, 1e7)
    made = integers(graph, x, "int16")
    assert [note for note in made.notes if "its factors differ too much for integers" in note]
    assert [made.tensors[op.outputs[0]].dtype for op in made.ops if op.kind == "affine"] == ["float32"]


@pytest.mark.parametrize("ratio, columns", [(10, ()), (3000, (0, 1, 2))])
def test_columns_of_samples_that_vary_by_less_than_a_step_are_noted(ratio: float, columns: tuple[int, ...]) -> None:
    """Without a normalization, as of a linear model of raw features. What never varies is not missed."""
    chain = Chain((5,), seed=2)
    chain.add(Dense(), kernel=(5, 3), bias=(3,))
    graph = chain.graph()
    x = np.random.default_rng(4).normal(size=(300, 5)) * np.array([1, 1, 1, ratio, 0])
    found = {form: integers(graph, x.astype(np.float32), form).notes for form in ("int8", "int16")}
    notes = [note for note in found["int8"] if note.startswith("input 'x': its columns")]
    assert len(notes) == (1 if columns else 0) and not any("columns" in note for note in found["int16"])
    assert all("its columns 0, 1, 2 (of 5, from 0) vary by less than one step, " in note for note in notes)

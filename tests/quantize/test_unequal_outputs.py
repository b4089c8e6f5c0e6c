"""Outputs that hold large and small values, as a detector's boxes and scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild.model.graph import WHOLE, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.arg import Arg
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

FORMS = pytest.mark.parametrize("form", ["int8", "int16"])
SMALL = {"int8": 1.0, "int16": 0.02}
"""Beside boxes of some hundreds of pixels."""


class Detector(Net):
    def __init__(self, large: float, small: float) -> None:
        super().__init__("detector")
        x = self.input(8)
        boxes = self.add(Binary("multiply"), [self._dense(x, 4)], {"right": np.array([large], np.float32)})
        scores = self.add(Activation("sigmoid"), [self._dense(x, 3)])
        self.scores = self.add(Binary("multiply"), [scores], {"right": np.array([small], np.float32)})
        self.joined = self.add(Concatenate(0), [boxes, self.scores])

    def _dense(self, x: str, width: int) -> str:
        return self.add(Dense(), [x], {"kernel": self.chance.normal(size=(8, width)), "bias": np.zeros(width)})


def quantized(graph: Graph, form: str) -> tuple[Graph, list[float]]:
    """The integer graph, and how far its outputs are from the float graph's, in shares of the largest value of each
    column."""
    given = {"x0": np.random.default_rng(1).normal(size=(200, 8)).astype(np.float32)}
    ranges = calibrate(graph, lambda: [given], "minmax", 16 if form == "int16" else 8)
    made = quantize_with(graph, Recipe(form=form, float_edge=True), ranges)
    wanted, found = interpret.run(graph, given)[graph.outputs[0]], interpret.run(made, given)[made.outputs[0]]
    rows = (each.reshape(200, -1) for each in (wanted, np.abs(found - wanted)))
    largest, errors = (np.abs(each).max(axis=0) for each in rows)
    return made, list(errors / largest)


def forms_of(graph: Graph, kind: str) -> set[str]:
    return {graph.tensors[op.outputs[0]].dtype for op in graph.ops if op.kind == kind}


@FORMS
def test_boxes_and_scores_are_joined_in_floats(form: str) -> None:
    net = Detector(100.0, SMALL[form])
    made, errors = quantized(net.graph(net.add(Reshape((1, 7)), [net.joined])), form)
    assert max(errors) < (0.03 if form == "int8" else 0.01)
    assert forms_of(made, "concatenate") == forms_of(made, "reshape") == {"float32"}
    assert forms_of(made, "dense") == forms_of(made, "activation") == {form}
    (note,) = (note for note in made.notes if "its output holds values that span" in note)
    assert f"less than {16 if form == 'int8' else 256} steps of {form} for both, and it is computed in floats" in note


@FORMS
def test_what_one_format_holds_stays_in_integers(form: str) -> None:
    net = Detector(0.3, 1.0)
    made, errors = quantized(net.graph(net.joined), form)
    assert forms_of(made, "concatenate") == {form} and max(errors) < 0.2


def test_what_the_network_itself_reads_stays_in_integers() -> None:
    net = Detector(100.0, 1.0)
    made, _ = quantized(net.graph(net.add(Activation("tanh"), [net.joined])), "int8")
    assert forms_of(made, "concatenate") == {"int8"}


def test_parts_that_do_not_vary_need_no_steps() -> None:
    net = Detector(100.0, 0.0)
    made, _ = quantized(net.graph(net.joined), "int8")
    assert forms_of(made, "concatenate") == {"int8"}


def test_moves_of_integers_are_no_floats() -> None:
    net = Detector(100.0, 1.0)
    first = net.add(Slice((1,), (1,), (1,)), [net.scores])
    made, _ = quantized(net.graph(net.add(Concatenate(0), [net.joined, first])), "int8")
    assert forms_of(made, "slice") == {"float32"}
    net = Detector(100.0, 1.0)
    second = net.add(Slice((1,), (1,), (1,)), [net.add(Activation("tanh"), [net.scores])])
    made, _ = quantized(net.graph(net.add(Concatenate(0), [net.joined, second])), "int8")
    assert forms_of(made, "slice") == {"int8"}


@FORMS
def test_columns_that_are_scaled_apart(form: str) -> None:
    """As a regression's results are put into their units."""
    net = Detector(1.0, 1.0)
    units = np.array([1e-3, 1e3, 1.0, 50.0, 1.0, 1.0, 0.0])
    made, errors = quantized(net.graph(net.add(Affine(), [net.joined], {"scale": units, "shift": units * 3})), form)
    assert forms_of(made, "affine") == {"float32"}
    assert max(errors[:-1]) < (0.05 if form == "int8" else 0.01)


@FORMS
def test_numbers_of_classes_stay_whole(form: str) -> None:
    net = Net("classes")
    scores = net.add(Dense(), [net.input(8)], {"kernel": net.chance.normal(size=(8, 300)), "bias": np.zeros(300)})
    best = net.add(Arg("max"), [scores])
    seen = net.add(Reshape((1, 1)), [net.add(Convert(), [best])])
    graph = net.graph(seen)
    graph = verify(
        replace(graph, tensors=graph.tensors | {best: replace(graph.tensors[best], dtype="int32", quant=WHOLE)})
    )
    made, _ = quantized(graph, form)
    found = interpret.run(made, {"x0": np.random.default_rng(2).normal(size=(50, 8)).astype(np.float32)})
    assert made.tensors[made.outputs[0]].dtype == "float32"
    np.testing.assert_array_equal(found[made.outputs[0]] % 1, 0)

"""--accuracy-drop: layers are raised until little enough is lost, and it is said which and at what price."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.quantize.accuracy import _candidates, _error_with, accuracy, quantize_within
from nnbuild.quantize.data import Source, labels
from nnbuild.quantize.quantize import Recipe, ranges_of
from nnbuild.quantize.report import predicted
from tests.quantize.small import classifier


@pytest.fixture
def close(tmp_path: Path) -> Source:
    """Samples, most of them ordinary, whose right class is the float model's: so each that turns counts."""
    values = np.random.default_rng(9).normal(size=(1000, 6)).astype(np.float32)
    right = predicted(interpret.run(classifier(), {"x": values})["probs"])
    np.savez(tmp_path / "x.npz", x=values, labels=right)
    return Source(tmp_path / "x.npz")


def made_within(recipe: Recipe, drop: float) -> tuple[Graph, float]:
    graph = classifier()
    made = quantize_within(graph, recipe, ranges_of(graph, recipe), drop)
    known = labels(recipe.source, graph)
    assert known is not None
    return made, accuracy(graph, made, recipe.source, known)


def test_nothing_is_raised_without_need(close: Source) -> None:
    made, reached = made_within(Recipe("int8", close), 20)
    assert {tensor.dtype for tensor in made.tensors.values()} == {"int8"}
    assert made.notes == (f"no layer had to be raised; accuracy on the samples {reached:.2%}",)


def test_layers_are_raised_until_it_suffices(close: Source) -> None:
    plain = made_within(Recipe("int8", close), 100)[1]
    assert plain < 0.999, "the int8 model is too good for this test"
    made, reached = made_within(Recipe("int8", close), 0.1)
    assert reached >= 0.999
    assert made.notes[0].startswith("raised for accuracy: ")
    assert "more bytes of activations" in made.notes[0]
    assert made.notes[0].endswith(f"accuracy on the samples {reached:.2%}")
    assert {tensor.dtype for tensor in made.tensors.values()} != {"int8"}


def test_what_costs_most_is_raised_first(close: Source) -> None:
    graph, recipe = classifier(), Recipe("int8", close)
    ranges = ranges_of(graph, recipe)
    ranked = _candidates(graph, recipe, ranges)
    assert [form for _, form in ranked] == ["int16"] * 3 + ["float"] * 3
    errors = [_error_with(graph, recipe, ranges, layer, form) for layer, form in ranked[:3]]
    assert errors == sorted(errors)
    assert errors[0] < errors[2]


def test_kept_layers_are_not_raised(close: Source) -> None:
    kept = {layer: "int8" for layer in ("first", "second", "probs")}
    with pytest.raises(CheckFailed) as caught:
        made_within(Recipe("int8", close, keep=kept), 0)
    assert str(caught.value).startswith(
        "--accuracy-drop: with every layer raised that --keep leaves free the accuracy is 9"
    )
    assert str(caught.value).endswith("wanted was 100.00%. Keep fewer layers, or allow a larger drop.")


@pytest.mark.parametrize(("drop", "shown"), [(-1.0, "-1"), (101.0, "101"), (float("nan"), "nan")])
def test_drops_that_are_none(close: Source, drop: float, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        made_within(Recipe("int8", close), drop)
    assert str(caught.value) == f"--accuracy-drop {shown}: it is a number of percentage points. Give 0 to 100."


def test_without_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((3, 6)) * [[1], [2], [3]])
    for source in (Source(tmp_path / "x.npz"), Source(None)):
        with pytest.raises(UsageError) as caught:
            made_within(Recipe("int8", source), 1)
        assert str(caught.value) == (
            "--accuracy-drop: the calibration data have no array `labels`. Add the right classes."
        )

"""What `nnbuild quantize` reports: every layer's loss, the outputs', and the accuracy where labels are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild.cli.quantize import as_object, as_text
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.dense import Dense
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from nnbuild.quantize.report import Accuracy, Loss, measure, predicted
from tests.quantize.small import classifier, samples


def loss_of(graph: Graph, source: Source, form: str = "int8") -> Loss:
    recipe = Recipe(form, source)
    return measure(graph, quantize_with(graph, recipe, ranges_of(graph, recipe)), source)


def saved(folder: Path, **arrays: np.ndarray) -> Source:
    np.savez(folder / "samples.npz", x=samples(), **arrays)  # type: ignore[arg-type]
    return Source(folder / "samples.npz")


def test_layers_come_worst_first_with_what_they_lost(tmp_path: Path) -> None:
    loss = loss_of(classifier(), saved(tmp_path))
    assert loss.samples == len(samples())
    assert {layer.layer for layer in loss.layers} == {"first", "second", "probs"}
    ratios = [layer.sqnr for layer in loss.layers]
    assert ratios == sorted(ratios)
    assert all(25 < ratio < 70 for ratio in ratios)
    exact = interpret.run(classifier(), {"x": samples()})
    for layer in loss.layers:
        assert (layer.low, layer.high) == (exact[layer.tensor].min(), exact[layer.tensor].max())
        assert layer.max_error < 16 * layer.scale


def test_int16_loses_less() -> None:
    worst = {form: loss_of(classifier(), Source(None), form).layers[0].sqnr for form in ("int8", "int16")}
    assert worst["int16"] > worst["int8"] + 6


def test_what_lies_beyond_the_format_is_counted(tmp_path: Path) -> None:
    """Calibrated with a tenth of what comes: the larger part saturates."""
    graph, source = classifier(), saved(tmp_path)
    small = calibrate(graph, lambda: [{"x": samples() / 10}], "minmax", 8)
    loss = measure(graph, quantize_with(graph, Recipe(source=source), small), source)
    first = next(layer for layer in loss.layers if layer.layer == "first")
    assert first.saturated > first.values / 10
    assert first.saturated == int(
        (interpret.run(graph, {"x": samples()})["h"] > 127.5 * first.scale + 128 * first.scale).sum()
    )


def test_accuracy_where_labels_are(tmp_path: Path) -> None:
    graph = classifier()
    right = predicted(interpret.run(graph, {"x": samples()})["probs"])
    known = np.where(np.arange(len(right)) % 4 == 0, (right + 1) % 3, right)
    loss = loss_of(graph, saved(tmp_path, labels=known))
    assert loss.accuracy is not None
    assert loss.accuracy.float_model == 0.75
    assert abs(loss.accuracy.quantized - 0.75) <= 0.05
    assert as_text(loss).endswith(f"accuracy {loss.accuracy.quantized:.2%}, float model 75.00%")
    assert as_object(loss)["accuracy"] == {"float_model": 0.75, "quantized": loss.accuracy.quantized}


def test_labels_that_do_not_fit_are_said(tmp_path: Path) -> None:
    loss = loss_of(classifier(), saved(tmp_path, labels=np.array(["yes", "no"])))
    assert loss.accuracy is None
    assert (
        as_text(loss)
        .splitlines()[-1]
        .endswith("array 'labels': Labels are whole numbers, one per sample, or one-hot rows. Save them as int64.")
    )


def test_no_labels_no_accuracy(tmp_path: Path) -> None:
    loss = loss_of(classifier(), saved(tmp_path))
    assert (loss.accuracy, loss.unlabelled) == (None, "")
    assert as_object(loss)["accuracy"] is None
    assert "accuracy" not in as_text(loss)


def test_infinite_ratios_are_null_in_json() -> None:
    loss = loss_of(classifier(scale=0.0), Source(None))
    assert {"sqnr": None}.items() <= next(
        layer for layer in as_object(loss)["layers"] if layer["layer"] == "first"
    ).items()


def test_accuracy_is_named_by_both() -> None:
    assert Accuracy(0.5, 0.25).quantized == 0.25


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_agreement_and_cosine_of_the_output(form: str) -> None:
    output = loss_of(classifier(), Source(None), form).outputs[0]
    assert output.name == "probs"
    assert output.agreement is not None and output.agreement > 0.95
    assert output.cosine > 0.999
    assert 0 < output.mae <= output.rmse < 0.01


def test_one_value_has_no_class() -> None:
    """The largest of one is always the same."""
    net = Net("net")
    graph = net.graph(net.add(Dense(), [net.input(3)], {"kernel": np.ones((3, 1)), "bias": np.ones(1)}))
    loss = loss_of(graph, Source(None), "int8")
    assert loss.outputs[0].agreement is None
    assert "top-1" not in as_text(loss)
    assert "rmse" in as_text(loss)

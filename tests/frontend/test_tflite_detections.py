"""TFLite_Detection_PostProcess against TFLite's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.frontend.test_tflite_zoo import reference
from tests.frontend.tflite_files import to_bytes
from tests.fuzz.tflite_detection_seeds import BOXES, CLASSES, OPTIONS, detector, settings
from tests.support.compiled import run_graph

SAMPLES = 12
CASES: dict[str, dict[str, Any]] = {
    "all classes together": {},
    "two classes of each": {"max_classes_per_detection": 2},
    "all classes of each": {"max_classes_per_detection": CLASSES},
    "each class by itself": {"use_regular_nms": True, "detections_per_class": 3},
    "each class as it likes": {"use_regular_nms": True},
    "one": {"max_detections": 1},
    "few are good enough": {"nms_score_threshold": 0.97},
    "none is": {"nms_score_threshold": 2.0},
    "any": {"nms_score_threshold": -1.0, "max_detections": 50, "nms_iou_threshold": 0.9},
    "no background": {"num_classes": CLASSES + 1},
}


def given(dtype: str = "float32") -> list[Array]:
    chance = np.random.default_rng(3)
    boxes, scores = chance.normal(size=(SAMPLES, BOXES, 4)), chance.uniform(size=(SAMPLES, BOXES, CLASSES + 1))
    if dtype == "int8":
        return [np.clip(values / 0.05, -128, 127).round().astype(np.int8) for values in (boxes, scores)]
    return [values.astype(np.float32) for values in (boxes, scores)]


def found(graph: Graph, inputs: list[Array], folder: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    named = dict(zip(graph.inputs, inputs, strict=True))
    return interpret.run(graph, named), run_graph(graph, named, folder)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_detections(name: str, tmp_path: Path) -> None:
    path, inputs = tmp_path / "detector.tflite", given()
    path.write_bytes(to_bytes(detector(settings(**CASES[name]), sized=False)))
    graph = passes.run(load(path))
    wanted = reference(path, [list(rows) for rows in zip(*inputs, strict=True)])
    most = CASES[name].get("max_detections", OPTIONS["max_detections"])
    for values in found(graph, inputs, tmp_path):
        *outputs, counts = [values[output] for output in graph.outputs]
        np.testing.assert_array_equal(counts.reshape(-1), wanted[3].reshape(-1))
        for sample, count in enumerate(counts.reshape(-1).astype(int)):
            rows = count * (outputs[1].shape[1] // most)
            for output, answer in zip((each[sample] for each in outputs), wanted, strict=False):
                expected = answer[sample].reshape(-1, *output.shape[1:])
                np.testing.assert_allclose(output[:rows], expected[:rows], 1e-5, 1e-6)
                np.testing.assert_array_equal(output[rows:], 0)


def test_integers_are_taken_as_the_numbers_they_mean(tmp_path: Path) -> None:
    """As TFLite Micro does."""
    made = []
    for dtype in ("int8", "float32"):
        inputs, path = given("int8"), tmp_path / f"{dtype}.tflite"
        path.write_bytes(to_bytes(detector(settings(), dtype)))
        graph = load(path)
        as_given = inputs if dtype == "int8" else [values * np.float32(0.05) for values in inputs]
        values = interpret.run(graph, dict(zip(graph.inputs, as_given, strict=True)))
        made.append([values[output] for output in graph.outputs])
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (made[0][3] > 2).all()


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_a_quantized_detector_decodes_in_floats(form: str, tmp_path: Path) -> None:
    path, inputs = tmp_path / "detector.tflite", given()
    path.write_bytes(to_bytes(detector(settings())))
    graph = passes.run(load(path))
    ranges = calibrate(graph, lambda: [dict(zip(graph.inputs, inputs, strict=True))], "minmax", 8)
    made = quantize_with(graph, Recipe(form), ranges)
    assert [made.tensors[name].dtype for name in made.inputs] == [form, form]
    assert {made.tensors[name].dtype for name in made.outputs} == {"float32"}
    assert sum("is float32, because layer 'found0' is computed in floats" in note for note in made.notes) == 4


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"num_classes": 9}, "it has 9 classes, and scores of 6."),
        ({"num_classes": 4}, "it has 4 classes, and scores of 6."),
        ({"max_classes_per_detection": 6}, "its option 'max_classes_per_detection' is 6."),
        ({"max_detections": 0}, "its option 'max_detections' is 0."),
        ({"nms_iou_threshold": 1.5}, "its option 'nms_iou_threshold' is 1.5."),
        ({"y_scale": 0.0}, "its option 'y_scale' is 0."),
        ({"max_detections": 9}, "its output 0 is [1, 8, 4], not [1, 9, 4]."),
    ],
)
def test_refusals(changes: dict[str, Any], cause: str, tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(to_bytes(detector(settings(**changes))))
    with pytest.raises(ModelError, match=re.escape(cause)):
        load(path)


@pytest.mark.parametrize("content", [b"", b"damaged", settings()[:20]])
def test_damaged_options(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(to_bytes(detector(content)))
    with pytest.raises(ModelError, match="its option"):
        load(path)

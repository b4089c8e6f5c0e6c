"""MediaPipe's custom operators against numbers that MediaPipe 0.10 itself computes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

import nnbuild
from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.frontend.tflite_files import File, to_bytes
from tests.fuzz.tflite_mediapipe_seeds import CHANNELS, COLUMNS, LANDMARKS, ROWS, cropped, enlarged
from tests.support.compiled import run_graph

BYTES = [
    222, 149, 10, 24, 85, 110, 159, 122, 67, 40, 177, 188, 8, 29, 115, 100, 227, 132, 107, 110, 170, 150, 44, 188, 193,
    244, 201, 72, 81, 166, 166, 178, 222, 74, 240, 0, 19, 249, 241, 76, 35, 80, 11, 228, 169, 149, 62, 120, 48, 197,
    121, 7, 65, 180, 133, 95, 64, 23, 155, 169, 133, 238, 237, 53, 155, 161, 63, 76, 124, 189, 74, 184, 167, 55, 99,
    212, 215, 168, 1, 174, 57, 209, 233, 109, 244, 194, 83, 224, 98, 26,
]  # fmt: skip
IMAGE = np.array(BYTES, np.float32).reshape(1, ROWS, COLUMNS, CHANNELS) / 255
MATRIX = [[0.64553, -0.36389, 0, 0.32362], [1.24669, 0.18842, 0, -0.32443], [0, 0, 1, 0], [0, 0, 0, 1]]
CROP = [
    [[0, 0, 0], [0.41198, 0.64332, 0.57094], [0.2011, 0.83042, 0.35439]],
    [[0, 0, 0], [0.45251, 0.77091, 0.58781], [0.27288, 0.80004, 0.31267]],
    [[0, 0, 0], [0, 0, 0], [0.39548, 0.59443, 0.4581]],
    [[0, 0, 0], [0, 0, 0], [0.52292, 0.34956, 0.48362]],
]
MOVED = [[1.50846, 4.56745, 0.03922], [-0.03983, 0.45894, 0.43137], [1.06317, 3.23568, 0.26275]]


def answers(file: File, folder: Path, image: Array = IMAGE) -> list[list[Array]]:
    """The outputs, computed exactly and by the compiled program."""
    path = folder / "network.tflite"
    path.write_bytes(to_bytes(file))
    graph = passes.run(load(path))
    given = {graph.inputs[0]: image}
    found = interpret.run(graph, given), run_graph(graph, given, folder)
    return [[values[name][0] for name in graph.outputs] for values in found]


@pytest.mark.parametrize("depth", [2, 3])
def test_crops_around_landmarks(depth: int, tmp_path: Path) -> None:
    for matrix, crop, moved in answers(cropped(depth), tmp_path):
        np.testing.assert_allclose(matrix, MATRIX, atol=1e-5)
        np.testing.assert_allclose(crop, CROP, atol=1e-5)
        np.testing.assert_allclose(moved[:3], np.array(MOVED)[:, :depth], atol=1e-5)


def test_landmarks_in_one_place_have_a_direction(tmp_path: Path) -> None:
    image = np.full_like(IMAGE, 0.5)
    for matrix, crop, _ in answers(cropped(), tmp_path, image):
        np.testing.assert_allclose(matrix[:2], [[0, 0, 0, 2], [0, 0, 0, 2.5]], atol=1e-6)
        np.testing.assert_allclose(crop, 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("file", "first", "last", "total"),
    [
        (enlarged(), [2.15845, -0.4744, 2.10257], [0.94331, 0.13339, 1.51992], -128.12315),
        (enlarged(2, (3, 2), (3, 3)), [-1.84771, -1.80983, -1.16479], [-1.99478, 0.28793, -1.50142], -287.14362),
    ],
    ids=["same", "valid"],
)
def test_transposed_convolutions_with_a_bias(
    file: File, first: list[float], last: list[float], total: float, tmp_path: Path
) -> None:
    for (made,) in answers(file, tmp_path):
        np.testing.assert_allclose(made.reshape(-1)[:3], first, atol=1e-5)
        np.testing.assert_allclose(made.reshape(-1)[-3:], last, atol=1e-5)
        assert abs(float(made.sum()) - total) < 1e-3


def test_integers(tmp_path: Path) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(to_bytes(enlarged()))
    samples = np.random.default_rng(2).random((16, ROWS, COLUMNS, CHANNELS), np.float32)
    assert nnbuild.compile(path, quantize="int8", calibrate=samples).check(samples).passed


def options(file: File, place: int, content: bytes) -> File:
    operators = list(file.operators)
    operators[place] = replace(operators[place], custom_options=content)
    return replace(file, operators=operators)


REFUSED = {
    "no options": (options(enlarged(), 0, b""), "its options have 0 bytes."),
    "padding": (options(enlarged(), 0, b"\0" * 12), "its padding is number 0."),
    "strides": (options(enlarged(), 0, b"\1\0\0\0" + b"\0" * 8), "its strides are 0 and 0."),
    "no map": (options(cropped(), 2, b"damaged"), "its option"),
    "a landmark beyond": (cropped(left_rotation_idx=30), "its option 'left_rotation_idx' is 30."),
    "landmarks beyond": (cropped(subset_idxs=[3, 30]), "its subset is [3, 30]."),
    "a scale": (cropped(scale_x=0.0), "its option 'scale_x' is 0."),
    "an old version": (
        cropped().with_tensor(2, shape=(1, 1, LANDMARKS, 3)),
        "operator 2 (CUSTOM Landmarks2TransformMatrix) for 'matrix': its landmarks are [1, 1, 30, 3].",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, tmp_path: Path) -> None:
    file, cause = REFUSED[name]
    path = tmp_path / "network.tflite"
    path.write_bytes(to_bytes(file))
    with pytest.raises(ModelError, match=re.escape(cause)):
        load(path)

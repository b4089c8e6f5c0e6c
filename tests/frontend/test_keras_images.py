"""Blocks of pixels, borders of images and pools of a given number of windows, compared with Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

SHAPE = (4, 6, 8)
GIVEN = np.random.default_rng(3).normal(size=(2, *SHAPE)).astype(np.float32)
Build = Callable[[Any, Any], Any]

CASES: dict[str, Build] = {
    "depth_to_space": lambda keras, x: keras.ops.depth_to_space(x, 2),
    "space_to_depth": lambda keras, x: keras.ops.space_to_depth(x, 2),
    "reflect": lambda keras, x: keras.ops.pad(x, ((0, 0), (3, 1), (0, 5), (0, 0)), mode="reflect"),
    "symmetric": lambda keras, x: keras.ops.pad(x, ((0, 0), (4, 1), (0, 6), (2, 0)), mode="symmetric"),
    "nothing": lambda keras, x: keras.ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, 0)), mode="reflect"),
    "adaptive_average": lambda keras, x: keras.layers.AdaptiveAveragePooling2D((2, 3))(x),
    "adaptive_maximum": lambda keras, x: keras.layers.AdaptiveMaxPooling2D(2)(x),
    "adaptive_average_of_a_row": lambda keras, x: keras.layers.AdaptiveAveragePooling1D(6)(
        keras.layers.Reshape((24, 8))(x)
    ),
    "adaptive_pool": lambda keras, x: keras.ops.adaptive_average_pool(x, (1, 2), data_format="channels_last"),
}
REFUSED: dict[str, tuple[Build, str]] = {
    "windows of two sizes": (
        lambda keras, x: keras.layers.AdaptiveAveragePooling2D((4, 4))(x),
        "does not divide into equal windows for an output of \\(4, 4\\). Choose an output_size",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_images_are_as_keras_makes_them(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x = keras.Input(SHAPE)
    expect_same(keras.Model(x, CASES[case](keras, x)), tmp_path, GIVEN)


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    build, cause = REFUSED[case]
    x, path = keras.Input(SHAPE), tmp_path / "model.keras"
    keras.Model(x, build(keras, x)).save(path)
    with pytest.raises(ModelError, match=cause):
        load(path)


@pytest.mark.parametrize("ending", ["h5", "keras"])
def test_tensorflows_names_for_them(ending: str, tmp_path: Path) -> None:
    tensorflow, keras = pytest.importorskip("tensorflow"), pytest.importorskip("tf_keras")
    x = keras.Input(SHAPE)
    y = tensorflow.pad(tensorflow.nn.depth_to_space(x, 2), [[0, 0], [2, 2], [1, 1], [0, 0]], mode="REFLECT")
    expect_same(keras.Model(x, tensorflow.nn.space_to_depth(y, 2)), tmp_path, GIVEN, ending=ending)

"""Blocks of pixels, borders of images and pools of a given number of windows, compared with Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from tests.frontend.keras_oracle import expect_integers, expect_same

pytestmark = pytest.mark.oracle

SHAPE = (4, 6, 8)
GIVEN = np.random.default_rng(3).normal(size=(2, *SHAPE)).astype(np.float32)
Build = Callable[[Any, Any], Any]


def colours(keras: Any, x: Any) -> Any:
    return keras.ops.concatenate([x[..., :2], x[..., 5:6]], -1)


CASES: dict[str, Build] = {
    "depth_to_space": lambda keras, x: keras.ops.depth_to_space(x, 2),
    "space_to_depth": lambda keras, x: keras.ops.space_to_depth(x, 2),
    "reflect": lambda keras, x: keras.ops.pad(x, ((0, 0), (3, 1), (0, 5), (0, 0)), mode="reflect"),
    "symmetric": lambda keras, x: keras.ops.pad(x, ((0, 0), (4, 1), (0, 6), (2, 0)), mode="symmetric"),
    "infinity": lambda keras, x: keras.ops.max_pool(
        keras.ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-float("inf")), 3, 2
    ),
    "nothing": lambda keras, x: keras.ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, 0)), mode="reflect"),
    "adaptive_average": lambda keras, x: keras.layers.AdaptiveAveragePooling2D((2, 3))(x),
    "adaptive_maximum": lambda keras, x: keras.layers.AdaptiveMaxPooling2D(2)(x),
    "adaptive_average_of_a_row": lambda keras, x: keras.layers.AdaptiveAveragePooling1D(6)(
        keras.layers.Reshape((24, 8))(x)
    ),
    "blurred": lambda keras, x: keras.ops.image.gaussian_blur(x, (3, 5), (1.0, 2.0)),
    "blurred channels": lambda keras, x: keras.ops.image.gaussian_blur(x, data_format="channels_first"),
    "cropped": lambda keras, x: keras.ops.image.crop_images(x, 1, 2, target_height=2, target_width=3),
    "cropped to the end": lambda keras, x: keras.ops.image.crop_images(x, 1, None, 0, 2, None, 3),
    "bordered": lambda keras, x: keras.ops.image.pad_images(x, 1, 2, target_height=7, target_width=9),
    "hue of colours": lambda keras, x: keras.ops.image.rgb_to_hsv(keras.ops.abs(colours(keras, x))),
    "hue of grey": lambda keras, x: keras.ops.image.rgb_to_hsv(keras.ops.relu(keras.ops.repeat(x[..., :1], 3, -1))),
    "colours of hue": lambda keras, x: keras.ops.image.hsv_to_rgb(keras.ops.sigmoid(colours(keras, x))),
    "colours of hue, first": lambda keras, x: keras.ops.image.hsv_to_rgb(
        keras.ops.sigmoid(x[:, :3]), data_format="channels_first"
    ),
    "unfolded": lambda keras, x: keras.ops.nn.unfold(x, (2, 3), padding=1, stride=(1, 2)),
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


@pytest.mark.slow
def test_integers_of_the_c(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x, path = keras.Input(SHAPE, name="x"), tmp_path / "model.keras"
    names = ("blurred", "bordered", "colours of hue", "unfolded")
    keras.Model(x, [CASES[name](keras, x) for name in names]).save(path)
    given = np.random.default_rng(6).normal(size=(16, *SHAPE)).astype(np.float32)
    expect_integers(path, {"x": given}, tmp_path, (0.02, 1e-4))


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

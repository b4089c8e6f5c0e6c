"""LocallyConnected1D and 2D in each form in which Keras 2 stores them, compared with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_same
from tests.support.many import run_many

pytestmark = pytest.mark.oracle
OF_IMAGES = (7, 6, 3)


def local(keras: Any, form: int, axes: int, **options: Any) -> Any:
    shape = OF_IMAGES if axes == 2 else OF_IMAGES[1:]
    x = keras.Input(shape, name="x")
    kind = getattr(keras.layers, f"LocallyConnected{axes}D")
    made = keras.Model(x, kind(4, 3, implementation=form, activation="relu", **options)(x))
    chance = np.random.default_rng(4)
    made.set_weights([chance.normal(size=w.shape, scale=0.5) for w in made.get_weights()])
    return made


def samples(axes: int, count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(count, *OF_IMAGES[2 - axes :])).astype(np.float32)


@pytest.mark.parametrize("ending", ["h5", "keras"])
@pytest.mark.parametrize(("form", "padding"), [(1, "valid"), (2, "valid"), (2, "same"), (3, "valid"), (3, "same")])
@pytest.mark.parametrize("axes", [1, 2])
def test_each_form(axes: int, form: int, padding: str, ending: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("tf_keras")
    made = local(keras, form, axes, padding=padding, strides=2 if padding == "valid" else 1)
    expect_same(made, tmp_path, samples(axes, 2), ending=ending)


def test_without_a_bias(tmp_path: Path) -> None:
    keras = pytest.importorskip("tf_keras")
    expect_same(local(keras, 1, 2, use_bias=False, strides=(2, 1)), tmp_path, samples(2, 2))


def test_channels_first_are_refused(tmp_path: Path) -> None:
    keras = pytest.importorskip("tf_keras")
    local(keras, 1, 2, data_format="channels_first").save(tmp_path / "model.keras")
    with pytest.raises(ModelError, match=r"for channels that come first\. Put the channels last"):
        load(tmp_path / "model.keras")


@pytest.mark.slow
def test_integers_of_the_c(tmp_path: Path) -> None:
    keras, path, x = pytest.importorskip("tf_keras"), tmp_path / "model.keras", samples(2, 64)
    local(keras, 1, 2).save(path)
    exact = passes.run(load(path))
    wanted = interpret.run(exact, {"x": x}, "float64")[exact.outputs[0]]
    runs = []
    for form in ("int8", "int16"):
        graph = nnbuild.compile(path, quantize=form, calibrate={"x": x}, io="float").compiled.graph
        runs.append((graph, {graph.inputs[0]: x}))
    for (graph, given), found, error in zip(runs, run_many(runs, tmp_path), (0.002, 1e-4), strict=True):
        (name,), whole = graph.outputs, interpret.run(graph, given)
        np.testing.assert_array_equal(found[name], whole[name])
        assert np.square(whole[name] - wanted).mean() < error * wanted.var()

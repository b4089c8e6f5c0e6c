"""Sizes that the user gives to inputs whose shapes Keras files leave open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild import cli, passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.frontend.import_options import ImportOptions
from nnbuild.ops import interpret
from tests.frontend.keras_files import called, dense, functional, h5_bytes, input_layer, layer, put, sequential

WEIGHTS = {"a": [np.ones((3, 2), np.float32), np.zeros(2, np.float32)]}


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """A dense layer over rows of 3, any number of them."""
    config = functional([called(input_layer("x", [None, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    return put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS))


def sized(path: Path, **shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    graph = load(path, options=ImportOptions(shapes))
    return [graph.tensors[name].shape for name in (*graph.inputs, *graph.outputs)]


def test_open_axes_take_the_sizes_given(opened: Path) -> None:
    assert sized(opened, x=(1, 5, 3)) == [(5, 3), (5, 2)]


def test_sizes_in_the_file_may_be_changed(tmp_path: Path) -> None:
    config = functional([called(input_layer("x", [7, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    assert sized(put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS)), x=(1, 5, 3)) == [(5, 3), (5, 2)]


def test_a_sequential_model_that_has_no_shape_takes_one(tmp_path: Path) -> None:
    path = put(tmp_path / "net.h5", h5_bytes(sequential(dense("a", 2), layer("Flatten", "f")), WEIGHTS))
    assert sized(path, a_input=(1, 5, 3)) == [(5, 3), (10,)]


def test_the_command_line_takes_sizes(opened: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(opened), "--shape", "x=1,5,3"]) == 0
    assert "input x: float32 [5, 3]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("x", (1, 5), r"--shape x: it has 3 axes, \[None, None, 3\] in the file, .* Give a number for each"),
        ("x", (4, 5, 3), r"--shape x: its first axis is the batch, .* Give it sizes: --shape x=1,5,3"),
        ("x", (1, 5, 4), r"layer 'a': its kernel has the shape \(3, 2\) in the file, but needs \(4, 2\)"),
        ("y", (1, 5, 3), r"layer 'x': its shape \(None, 3\) leaves axes open, .* Give it sizes: --shape x=1,N,3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(opened: Path, name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(NnbuildError, match=message):
        sized(opened, **{name: shape})


def test_an_unknown_input_is_refused(tmp_path: Path) -> None:
    config = functional([called(input_layer("x", [7, 3])), called(dense("a", 2), "x")], ["x"], ["a"])
    with pytest.raises(NnbuildError, match=r"--shape y: the inputs of the model are x\."):
        sized(put(tmp_path / "net.h5", h5_bytes(config, WEIGHTS)), y=(1, 5, 3))


@pytest.mark.oracle
def test_a_network_that_was_saved_without_a_size_is_keras_own_at_any(tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(3)
    image = keras.Input((None, None, 3), name="image")
    model = keras.applications.MobileNetV2(include_top=False, weights=None, alpha=0.35, input_tensor=image)
    path = tmp_path / "net.keras"
    model.save(path)
    given = np.random.default_rng(3).uniform(0, 1, (1, 65, 83, 3)).astype(np.float32)
    graph = passes.run(load(path, options=ImportOptions({"image": given.shape})))
    (found,) = (interpret.run(graph, {graph.inputs[0]: given})[name] for name in graph.outputs)
    wanted = np.asarray(model(given))
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)

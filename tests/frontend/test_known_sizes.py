"""Operations on the sizes of tensors, and on constants beside tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_files import (
    functional,
    h5_bytes,
    input_layer,
    keras_bytes,
    layer,
    number,
    operation_bytes,
    put,
    wire,
)

X = np.linspace(-2, 3, 60, dtype=np.float32).reshape(2, 5, 6)
HELD = np.linspace(-1, 1, 30, dtype=np.float32).reshape(1, 5, 6)
SIZES = ("shape", "compat.v1.shape", "x", {"out_type": "int32"})


def op(name: str, function: str, first: Any, named: dict[str, Any]) -> dict[str, Any]:
    """One call as Keras 2 writes it: a list of nodes of operands, or the first operand and named ones."""
    made = layer("TFOpLambda", name, function=function)
    return {**made, "name": name, "inbound_nodes": first if isinstance(first, list) else [[first, 0, 0, named]]}


def of_keras2(path: Path, *ops: tuple[str, str, Any, dict[str, Any]], output: str | None = None) -> np.ndarray:
    first = {**input_layer("x", (5, 6)), "name": "x", "inbound_nodes": []}
    config = functional([first, *(op(*each) for each in ops)], ["x"], [output or ops[-1][0]])
    path = path / "net.h5"
    path.write_bytes(h5_bytes(config, {}))
    return answer(path)


def of_keras3(path: Path, class_name: str, operands: list[Any], **options: Any) -> np.ndarray:
    return answer(put(path / "net.keras", operation_bytes((5, 6), class_name, operands, **options)))


def answer(path: Path) -> np.ndarray:
    graph = load(path)
    return interpret.run(graph, {graph.inputs[0]: X})[graph.outputs[0]]


@pytest.mark.parametrize("rest", [[-1], [30], [-1, 3], [6, 5]])
def test_the_open_batch_of_a_shape_is_the_batch(rest: list[int], tmp_path: Path) -> None:
    found = of_keras3(tmp_path, "Reshape", [wire("x")], newshape=[None, *rest])
    np.testing.assert_array_equal(found, X.reshape(2, *rest))


def test_an_open_size_elsewhere_mixes_samples(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="across samples"):
        of_keras3(tmp_path, "Reshape", [wire("x")], newshape=[5, None])


def test_a_target_of_computed_sizes(tmp_path: Path) -> None:
    found = of_keras2(
        tmp_path,
        SIZES,
        ("batch", "__operators__.getitem", "shape", {"slice_spec": 0}),
        ("last", "__operators__.getitem", "shape", {"slice_spec": -1}),
        ("half", "compat.v1.floor_div", "last", {"y": 2}),
        ("y", "reshape", "x", {"shape": [["batch", 0, 0], -1, ["half", 0, 0]]}),
    )
    np.testing.assert_array_equal(found, X.reshape(2, 10, 3))


def test_a_target_of_joined_sizes(tmp_path: Path) -> None:
    found = of_keras2(
        tmp_path,
        SIZES,
        ("first", "__operators__.getitem", "shape", {"slice_spec": {"start": None, "stop": -1, "step": None}}),
        (
            "both",
            "concat",
            [[["first", 0, 0, {"axis": 0}], [["_CONSTANT_VALUE", -1, 3], ["_CONSTANT_VALUE", -1, 2]]]],
            {},
        ),
        ("y", "reshape", "x", {"shape": ["both", 0, 0]}),
    )
    np.testing.assert_array_equal(found, X.reshape(2, 5, 3, 2))


def test_numbers_of_sizes_stand_for_tensors(tmp_path: Path) -> None:
    batch = ["batch", 0, 0, {}]
    found = of_keras2(
        tmp_path,
        SIZES,
        ("batch", "__operators__.getitem", "shape", {"slice_spec": 0}),
        ("ones", "ones", [[batch, ["_CONSTANT_VALUE", -1, 5, {}], ["_CONSTANT_VALUE", -1, 2, {}]]], {}),
        ("y", "concat", [[["ones", 0, 0, {"axis": -1}], ["x", 0, 0, {"axis": -1}]]], {}),
    )
    np.testing.assert_array_equal(found, np.concatenate([np.ones((2, 5, 2)), X], -1))


def test_a_size_as_a_factor(tmp_path: Path) -> None:
    found = of_keras2(
        tmp_path,
        SIZES,
        ("last", "__operators__.getitem", "shape", {"slice_spec": -1}),
        ("float", "cast", "last", {"dtype": "float32"}),
        ("y", "math.truediv", "x", {"y": ["float", 0, 0]}),
    )
    np.testing.assert_allclose(found, X / 6, rtol=1e-6)


def test_the_size_that_keras_3_computes(tmp_path: Path) -> None:
    first = {**layer("InputLayer", "x", batch_shape=[None, 5, 6]), "name": "x", "inbound_nodes": []}
    made = {"module": "keras.src.ops.numpy", "class_name": "Size", "config": {"name": "size"}, "name": "size"}
    size = {**made, "inbound_nodes": [{"args": [wire("x")], "kwargs": {}}]}
    made = {"module": "keras.src.ops.numpy", "class_name": "TrueDivide", "config": {"name": "y"}, "name": "y"}
    share = {**made, "inbound_nodes": [{"args": [wire("x"), wire("size")], "kwargs": {}}]}
    data = keras_bytes(functional([first, size, share], ["x"], ["y"]), {})
    np.testing.assert_allclose(answer(put(tmp_path / "net.keras", data)), X / 30, rtol=1e-6)


@pytest.mark.parametrize(
    ("what", "of"),
    [
        (("y", "zeros", [[["shape", 0, 0, {}], ["_CONSTANT_VALUE", -1, 2**19, {}]]], {}), "known"),
        (("y", "__operators__.getitem", "shape", {"slice_spec": 7}), "known"),
        (("y", "compat.v1.floor_div", "shape", {"y": 0}), "known"),
        (("y", "range", "shape", {"limit": 3}), "known"),
        (("y", "tile", "shape", {"multiples": [2**17]}), "known"),
        (("y", "math.add", "wide", {"y": ["high", 0, 0]}), "known"),
        (("y", "math.multiply", "shape", {"y": 2}), "a size"),
    ],
)
def test_sizes_that_no_model_has_are_refused(what: Any, of: str, tmp_path: Path) -> None:
    wide = ("wide", "ones", [[["_CONSTANT_VALUE", -1, n, {}] for n in (1, 2**10)]], {})
    high = ("high", "ones", [[["_CONSTANT_VALUE", -1, n, {}] for n in (2**10, 1)]], {})
    with pytest.raises(ModelError, match=of):
        of_keras2(tmp_path, SIZES, wide, high, what)


def test_many_sizes_together_are_too_many(tmp_path: Path) -> None:
    each = [(f"zeros{n}", "zeros", [[["_CONSTANT_VALUE", -1, 2**18, {}]]], {}) for n in range(17)]
    with pytest.raises(ModelError, match=r"layer 'zeros16'.* the model more than 4194304"):
        of_keras2(tmp_path, *each)


KERNEL = np.linspace(-1, 1, 24, dtype=np.float32)
PAIRS = X[:, :4].reshape(2, 2, 2, 6)
WINDOWS = np.stack([X[:, :-1], X[:, 1:]], 2)


@pytest.mark.parametrize(
    ("function", "named", "wanted"),
    [
        ("compat.v1.gather", {"indices": [0, 2], "axis": 1, "batch_dims": 0}, X[:, [0, 2]]),
        ("nn.max_pool1d", {"ksize": 2, "strides": 2, "padding": "VALID"}, PAIRS.max(2)),
        ("nn.avg_pool1d", {"ksize": [2], "strides": [2], "padding": "VALID"}, PAIRS.mean(2)),
        (
            "compat.v1.nn.conv1d",
            {"filters": KERNEL.reshape(2, 6, 2).tolist(), "stride": 1, "padding": "VALID", "data_format": "NWC"},
            np.einsum("btkc,kco->bto", WINDOWS, KERNEL.reshape(2, 6, 2)),
        ),
        ("nn.bias_add", {"bias": HELD[0, 0].tolist(), "data_format": "NHWC"}, X + HELD[0, 0]),
        ("tensordot", {"b": HELD[0].T.tolist(), "axes": 1}, X @ HELD[0].T),
        ("linalg.matmul", {"b": HELD[0].tolist(), "transpose_b": True}, X @ HELD[0].T),
        ("linalg.matrix_transpose", {}, X.swapaxes(1, 2)),
        ("sort", {"axis": 1, "direction": "DESCENDING"}, -np.sort(-X, 1)),
        ("math.cumsum", {"axis": 1, "exclusive": True}, X.cumsum(1) - X),
        ("math.cumsum", {"axis": -1, "reverse": True}, X[..., ::-1].cumsum(-1)[..., ::-1]),
        ("slice", {"begin": [0, 1, 2], "size": [-1, 2, -1]}, X[:, 1:3, 2:]),
        ("keras.backend.batch_flatten", {}, X.reshape(2, 30)),
        ("math.argmax", {"axis": 1, "output_type": "int32"}, X.argmax(1)),
        ("ensure_shape", {"shape": [None, 5, 6]}, X),
        ("compat.v1.floor_div", {"y": 0.75}, np.floor(X / np.float32(0.75))),
    ],
)
def test_functions_of_tensorflow(function: str, named: dict[str, Any], wanted: np.ndarray, tmp_path: Path) -> None:
    found = of_keras2(tmp_path, ("y", function, "x", named))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_an_image_is_resized_or_mirrored(tmp_path: Path) -> None:
    image = ("image", "__operators__.getitem", "x", {"slice_spec": ["...", None]})
    found = of_keras2(tmp_path, image, ("y", "image.resize", "image", {"size": [10, 6], "method": "nearest"}))
    np.testing.assert_array_equal(found[..., 0], X.repeat(2, 1))
    found = of_keras2(tmp_path, image, ("y", "image.flip_left_right", "image", {}))
    np.testing.assert_array_equal(found[..., 0], X[..., ::-1])
    with pytest.raises(ModelError, match="preserve_aspect_ratio"):
        of_keras2(tmp_path, image, ("y", "image.resize", "image", {"size": [9, 6], "preserve_aspect_ratio": True}))


def test_an_einsum_without_its_tensors_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="without the tensors"):
        of_keras2(tmp_path, ("y", "einsum", [["_CONSTANT_VALUE", -1, "bij,bkj->bik", {}]], {}))


def of_layer(path: Path, *shape: int, **options: Any) -> np.ndarray:
    spec = {**layer(**options), "name": "y", "inbound_nodes": [[["x", 0, 0, {}]]]}
    first = {**input_layer("x", shape), "name": "x", "inbound_nodes": []}
    path = path / "net.h5"
    path.write_bytes(h5_bytes(functional([first, spec], ["x"], ["y"]), {}))
    graph = load(path)
    return interpret.run(graph, {graph.inputs[0]: X.reshape(2, *shape)})[graph.outputs[0]]


def test_zeros_up_to_a_threshold(tmp_path: Path) -> None:
    least = X[1, 2, 3]
    found = of_layer(tmp_path, 5, 6, class_name="ThresholdedReLU", name="y", theta=float(least))
    np.testing.assert_array_equal(found, X * np.greater(X, least))


def test_a_random_crop_of_keras_2_takes_the_middle(tmp_path: Path) -> None:
    """At inference the crop of its aspect ratio is resized, here by 1."""
    found = of_layer(tmp_path, 5, 3, 2, class_name="RandomCrop", name="y", height=3, width=3)
    np.testing.assert_array_equal(found, X.reshape(2, 5, 3, 2)[:, 1:4])


@pytest.mark.parametrize(
    ("class_name", "operands", "wanted"),
    [
        ("Concatenate", [[wire("x"), number(HELD)]], np.concatenate([X, HELD.repeat(2, 0)], -1)),
        ("Concatenate", [[number(HELD), wire("x")]], np.concatenate([HELD.repeat(2, 0), X], -1)),
        ("Stack", [[wire("x"), number(HELD)]], np.stack([X, HELD.repeat(2, 0)], -1)),
        ("Hypot", [wire("x"), number(HELD)], np.hypot(X, HELD)),
    ],
)
def test_a_constant_beside_a_tensor_counts(class_name: str, operands: Any, wanted: np.ndarray, tmp_path: Path) -> None:
    """Once constants in a list of tensors were left out."""
    found = of_keras3(tmp_path, class_name, operands, **({} if class_name == "Hypot" else {"axis": -1}))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)

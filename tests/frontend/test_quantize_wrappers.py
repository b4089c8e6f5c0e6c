"""Layers in the wrappers of tensorflow-model-optimization: files as quantize_model() leaves them, made here by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.numeric.steps import steps
from nnbuild.ops import interpret
from nnbuild.ops.functions import apply
from tests.frontend.keras_files import dense, input_layer, keras_bytes, layer, put, sequential

CHANCE = np.random.default_rng(5)
KERNEL, BIAS = CHANCE.normal(size=(4, 3)).astype(np.float32), CHANCE.normal(size=3).astype(np.float32)
Weights = Mapping[str, Any]


def aware(activation: Any) -> dict[str, Any]:
    return {"class_name": "QuantizeAwareActivation", "config": {"activation": activation}}


def wrapped(name: str, activation: Any, kind: str = "QuantizeWrapperV2") -> dict[str, Any]:
    inner = dense(name, 3, activation=aware(activation))
    return layer(kind, f"quant_{name}", layer=inner, quantize_config={"class_name": "Default8Bit"})


def written(
    path: Path, activation: Any, beside: Weights, kind: str = "QuantizeWrapperV2", name: str = "quantize_layer"
) -> Path:
    """An input in steps, and one wrapped layer with its ranges."""
    first = layer("QuantizeLayer", name, quantizer={"class_name": "Q", "config": {"num_bits": 8}})
    arrays: dict[str, Weights] = {
        name: {f"{name}/{name}_min:0": -2.0, f"{name}/{name}_max:0": 2.5},
        "quant_d": {"d/kernel:0": KERNEL, "d/bias:0": BIAS, "quant_d/optimizer_step:0": np.int32(-1), **beside},
    }
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = "2.15.0", "tensorflow"
        file.attrs["model_config"] = json.dumps(
            sequential(input_layer("x", [4]), first, wrapped("d", activation, kind))
        )
        for owner, held in arrays.items():
            group = file.create_group(f"model_weights/{owner}")
            group.attrs["weight_names"] = [n.encode() for n in held]
            for key, values in held.items():
                group[key] = values if isinstance(values, np.int32) else np.asarray(values, np.float32)
    return path


def archived(path: Path, activation: Any, ends: Sequence[float], copies: Sequence[np.ndarray]) -> Path:
    """The same as a .keras file, where arrays have numbers: copies of weights, those that are quantized, the
    optimizer's step, and the ranges."""
    first = layer("QuantizeLayer", "quantize_layer", quantizer={"class_name": "Q", "config": {"num_bits": 8}})
    settings = {"weight_attrs": ["kernel"], "activation_attrs": ["activation"], "quantize_output": False}
    wrapper = wrapped("d", activation)
    wrapper["config"]["quantize_config"] = {"class_name": "Default8BitQuantizeConfig", "config": settings}
    held: dict[str, list[Any]] = {
        "layers/quantize_layer/vars": [-2.0, 2.5, np.int32(-1)],
        "layers/quantize_wrapper_v2/vars": [*copies, KERNEL, np.int32(-1), *ends],
        "layers/quantize_wrapper_v2/layer/vars": [BIAS],
    }
    arrays = {
        f"{folder}/{number}": values if isinstance(values, np.int32) else np.asarray(values, np.float32)
        for folder, listed in held.items()
        for number, values in enumerate(listed)
    }
    return put(path, keras_bytes(sequential(input_layer("x", [4]), first, wrapper), arrays, "2.15.0"))


def expected(x: np.ndarray, kernel_range: tuple[float, float]) -> np.ndarray:
    kernel = apply("steps", steps(*kernel_range, 8, narrow=True), KERNEL)
    return apply("steps", steps(-2.0, 2.5, 8, narrow=False), x) @ kernel + BIAS


def ranges(**ends: float) -> dict[str, float]:
    return {f"quant_d/{name}:0": value for name, value in ends.items()}


@pytest.mark.parametrize("activation", ["relu", "softmax", {"class_name": "NoOpActivation", "config": {}}])
def test_weights_and_results_are_in_steps(activation: Any, tmp_path: Path) -> None:
    where = "pre_activation" if activation == "softmax" else "post_activation"
    beside = ranges(kernel_min=-1.5, kernel_max=1.5) | ranges(**{f"{where}_min": -4.0, f"{where}_max": 6.0})
    graph = passes.run(load(written(tmp_path / "net.h5", activation, beside)))
    x = CHANCE.normal(size=(20, 4)).astype(np.float32)
    y = expected(x, (-1.5, 1.5))
    y = np.maximum(y, 0) if activation == "relu" else y
    y = apply("steps", steps(-4.0, 6.0, 8, narrow=False), y)
    y = np.exp(y) / np.exp(y).sum(axis=1, keepdims=True) if activation == "softmax" else y
    np.testing.assert_allclose(interpret.run(graph, {"x": x})[graph.outputs[0]], y, atol=1e-5)


@pytest.mark.parametrize("copies", [(KERNEL, BIAS), ()], ids=["trained", "frozen"])
@pytest.mark.parametrize(("activation", "side"), [("relu", "post"), ("softmax", "pre"), ("gelu", "pre post")])
def test_both_formats_hold_the_same(activation: str, side: str, copies: Sequence[np.ndarray], tmp_path: Path) -> None:
    named = [f"{each}_activation_{end}" for each in side.split() for end in ("min", "max")]
    ends = {"kernel_min": -1.5, "kernel_max": 1.5, **dict(zip(named, (-4.0, 6.0, -3.0, 5.0), strict=False))}
    x = CHANCE.normal(size=(20, 4)).astype(np.float32)
    files = (
        written(tmp_path / "net.h5", activation, ranges(**ends)),
        archived(tmp_path / "net.keras", activation, list(ends.values()), copies),
    )
    first, second = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in map(passes.run, map(load, files)))
    np.testing.assert_array_equal(first, second)


def test_the_second_model_of_a_process_has_other_names(tmp_path: Path) -> None:
    beside = ranges(kernel_min=-1.5, kernel_max=1.5)
    x = CHANCE.normal(size=(20, 4)).astype(np.float32)
    graph = passes.run(load(written(tmp_path / "net.h5", "linear", beside, name="quantize_layer_1")))
    np.testing.assert_allclose(interpret.run(graph, {"x": x})[graph.outputs[0]], expected(x, (-1.5, 1.5)), atol=1e-5)


def test_what_is_quantized_behind_a_normalization_has_no_range_of_its_own(tmp_path: Path) -> None:
    path = archived(tmp_path / "net.keras", {"class_name": "NoOpActivation", "config": {}}, (-1.5, 1.5), (KERNEL, BIAS))
    x = CHANCE.normal(size=(20, 4)).astype(np.float32)
    graph = passes.run(load(path))
    found = interpret.run(graph, {"x": x})[graph.outputs[0]]
    np.testing.assert_allclose(found, expected(x, (-1.5, 1.5)), atol=1e-5)


@pytest.mark.parametrize(("kind", "name"), [("PruneLowMagnitude", "pruning"), ("ClusterWeights", "clustering")])
def test_wrappers_that_training_leaves_in_a_model(kind: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"its class '{kind}' is not supported. Save strip_{name}\(model\) of"):
        load(written(tmp_path / "net.h5", "relu", {}, kind))


def test_weights_kept_in_clusters_are_refused(tmp_path: Path) -> None:
    beside = ranges(kernel_min=-1.5, kernel_max=1.5) | {"quant_d/pulling_indices_tf:0": np.zeros((4, 3), np.int64)}
    with pytest.raises(ModelError, match=r"keep its weights in clusters.*TFLiteConverter and give the \.tflite"):
        load(written(tmp_path / "net.h5", "relu", beside))


def test_a_range_that_leaves_zero_out_is_refused(tmp_path: Path) -> None:
    beside = ranges(kernel_min=-1.5, kernel_max=1.5, post_activation_min=0.5, post_activation_max=6.0)
    with pytest.raises(
        ModelError, match=r"layer 'quant_d': the range of its post_activation is \[0\.5\] to \[6\.0\]\."
    ):
        load(written(tmp_path / "net.h5", "relu", beside))


def test_ranges_that_are_no_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the file has no range for its kernel"):
        load(written(tmp_path / "net.h5", "relu", ranges(kernel_min=-1.5)))

"""Layers of QKeras, in files made by hand. The expected values are those of QKeras 0.9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from tests.frontend.keras_files import h5_bytes, input_layer, keras_bytes, layer, put, sequential

KERNEL = np.array([[0.3, -1.2, 0.05, 0.0], [-0.71, 0.4, 0.11, 0.0], [0.65, 2.3, -0.02, 0.0]], np.float32)
BIAS = np.array([0.3, -1.2, 0.05, 0.0], np.float32)
X = np.array([[-3, -1.25, -0.3125, -0.1, 0, 0.0625, 0.1875, 0.3, 1.9, 5]], np.float32)


def bits(name: str = "quantized_bits", **options: Any) -> dict[str, Any]:
    return {"class_name": name, "config": options}


def qdense(**options: Any) -> dict[str, Any]:
    return layer("QDense", "fc", units=4, use_bias=True, **{"activation": "linear", **options})


def loaded(folder: Path, config: dict[str, Any], arrays: list[np.ndarray]) -> Graph:
    weights = {"fc": arrays} if arrays else {}
    return load(put(folder / "model.h5", h5_bytes(config, weights)))


def kernel_of(graph: Graph) -> np.ndarray:
    return next(c.data for name, c in graph.constants.items() if name.endswith("kernel"))


@pytest.mark.parametrize(
    ("quantizer", "rows"),
    [
        (bits(bits=4, symmetric=1, alpha=1), [[0.25, -0.875, 0, 0], [-0.75, 0.375, 0.125, 0], [0.625, 0.875, 0, 0]]),
        (
            "quantized_bits(4, 0, 1, alpha='auto')",
            [[0.304286, -1.314286, 0.047143, 0], [-0.71, 0.328571, 0.11, 0], [0.608571, 2.3, -0.015714, 0]],
        ),
        (  # a kernel's scale is fitted where none is given
            bits(bits=4, integer=0, alpha=None),
            [[0.25, -1.25, 0.046875, 0], [-0.75, 0.5, 0.109375, 0], [0.625, 1.75, -0.015625, 0]],
        ),
        (
            "quantized_bits(5,alpha=0.75)",
            [[0.234375, -0.75, 0.046875, 0], [-0.515625, 0.28125, 0.09375, 0], [0.46875, 0.703125, 0, 0]],
        ),
        (
            bits(bits=3, keep_negative=False, alpha=1.0),
            [[0.25, 0, 0, 0], [0, 0.375, 0.125, 0], [0.625, 0.875, 0, 0]],
        ),
    ],
)
def test_weights_are_rounded_as_qkeras_does(quantizer: Any, rows: list[list[float]], tmp_path: Path) -> None:
    config = sequential(input_layer("x", [3]), qdense(kernel_quantizer=quantizer, bias_quantizer=bits(bits=4)))
    graph = loaded(tmp_path, config, [KERNEL, BIAS])
    assert np.allclose(kernel_of(graph), rows, atol=1e-6)
    bias = next(c.data for name, c in graph.constants.items() if name.endswith("bias"))
    assert bias.tolist() == [0.25, -1.0, 0.0, 0.0]  # a bias has no fitted scale


@pytest.mark.parametrize(
    ("quantizer", "rows", "biases"),
    [
        ("ternary()", [[0.5, -2, 0.0625, 0], [-0.5, 0, 0.0625, 0], [0.5, 2, 0, 0]], [0, -1, 0, 0]),
        (
            bits("ternary", alpha="auto", threshold=None, number_of_unrolls=5),
            [[0.553333, -1.75, 0.08, 0], [-0.553333, 0, 0.08, 0], [0.553333, 1.75, 0, 0]],
            [0, -1.2, 0, 0],
        ),
        ("ternary(alpha=0.5)", [[0, -0.5, 0, 0], [-0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]], [0, -0.5, 0, 0]),
        ("ternary(alpha=1,threshold=0.6)", [[0, -1, 0, 0], [-1, 0, 0, 0], [1, 1, 0, 0]], [0, -1, 0, 0]),
        ("stochastic_ternary(alpha='auto_po2')", [[0.5, -2, 0.0625, 0], [-0.5, 0, 0.0625, 0], [0.5, 2, 0, 0]],
            [0.25, -1, 0.0625, 0]),
        ("binary()", [[0.5, -1, 0.0625, 0], [-0.5, 1, 0.0625, 0], [0.5, 1, -0.0625, 0]], [1, -1, 1, 1]),
        (
            "binary(alpha='auto')",
            [[0.553333, -1.3, 0.06, 0], [-0.553333, 1.3, 0.06, 0], [0.553333, 1.3, -0.06, 0]],
            [0.3, -1.2, 0.05, 0],
        ),
        ("binary(1, alpha=1)", [[1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 0, 1]], [1, 0, 1, 1]),
        (
            bits("stochastic_binary", alpha=0.25, temperature=6.0, use_real_sigmoid=True),
            [[0.25, -0.25, 0.25, 0.25], [-0.25, 0.25, 0.25, 0.25], [0.25, 0.25, -0.25, 0.25]],
            [0.25, -0.25, 0.25, 0.25],
        ),
    ],
)  # fmt: skip
def test_weights_of_two_or_three_values(
    quantizer: Any, rows: list[list[float]], biases: list[float], tmp_path: Path
) -> None:
    """A kernel's scale is fitted where none is given, a bias's is 1; zero counts as positive where there is no zero."""
    config = sequential(input_layer("x", [3]), qdense(kernel_quantizer=quantizer, bias_quantizer=quantizer))
    graph = loaded(tmp_path, config, [KERNEL, BIAS])
    assert np.allclose(kernel_of(graph), rows, atol=1e-6)
    bias = next((c.data for name, c in graph.constants.items() if name.endswith("bias")), np.zeros(4))
    assert np.allclose(bias, biases, atol=1e-6)


@pytest.mark.parametrize(
    ("activation", "values"),
    [
        ("quantized_bits(4,1,1)", [-1.75, -1.25, -0.25, 0, 0, 0, 0.25, 0.25, 1.75, 1.75]),
        ("quantized_relu(4,1)", [0, 0, 0, 0, 0, 0, 0.25, 0.25, 1.875, 1.875]),
        (
            bits("quantized_relu", bits=4, integer=1, negative_slope=0.25, relu_upper_bound=None),
            [-0.5, -0.25, 0, 0, 0, 0, 0.25, 0.25, 1.75, 1.75],
        ),
        ("relu", [0, 0, 0, 0, 0, 0.0625, 0.1875, 0.3, 1.9, 5]),
        ("quantized_tanh(4)", [-1, -1, -0.25, -0.125, 0, 0, 0.25, 0.25, 0.875, 0.875]),
        ("quantized_tanh(3,0,1)", [-0.75, -0.75, -0.25, 0, 0, 0, 0.25, 0.25, 0.75, 0.75]),
        (
            bits("quantized_tanh", bits=5, use_real_tanh=True),
            [-1, -0.875, -0.3125, -0.125, 0, 0.0625, 0.1875, 0.3125, 0.9375, 0.9375],
        ),
        ("quantized_sigmoid(4)", [0, 0, 0.375, 0.4375, 0.5, 0.5, 0.625, 0.625, 0.9375, 0.9375]),
        ("quantized_sigmoid(3,1,1)", [0.125, 0.25, 0.375, 0.5, 0.5, 0.5, 0.5, 0.625, 0.875, 0.875]),
        ("binary", [-1, -1, -1, -1, 1, 1, 1, 1, 1, 1]),
        (bits("binary", use_01=True, alpha=None), [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]),
        ("ternary()", [-1, -1, 0, 0, 0, 0, 0, 0, 1, 1]),
        (bits("stochastic_ternary", threshold=0.2), [-1, -1, -1, 0, 0, 0, 0, 1, 1, 1]),
    ],
)
def test_activations_round_halves_to_even(activation: Any, values: list[float], tmp_path: Path) -> None:
    config = sequential(input_layer("x", [10]), layer("QActivation", "act", activation=activation))
    graph = loaded(tmp_path, config, [])
    assert interpret.run(graph, {graph.inputs[0]: X})[graph.outputs[0]].tolist() == [np.float32(values).tolist()]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", ["QConv2DBatchnorm", "QDepthwiseConv2DBatchnorm"])
def test_a_normalization_is_folded_before_weights_are_rounded(name: str, biased: bool, tmp_path: Path) -> None:
    rng, depthwise = np.random.default_rng(3), "Depthwise" in name
    kernel = rng.normal(size=(1, 1, 3, 2)).astype(np.float32)
    channels = 6 if depthwise else 2
    bias, gamma, beta, mean, variance = (rng.uniform(0.5, 2, channels).astype(np.float32) for _ in range(5))
    quantizers = {"depthwise_quantizer" if depthwise else "kernel_quantizer": bits(bits=6, integer=1, alpha=1)}
    sizes = {"depth_multiplier": 2} if depthwise else {"filters": 2}
    spec = layer(
        name, "fc", kernel_size=[1, 1], use_bias=biased, bias_quantizer=bits(bits=5, integer=2), **sizes, **quantizers,
        axis=[3], epsilon=0.01, center=True, scale=True, activation="linear",
    )  # fmt: skip
    arrays = [kernel, *([bias] if biased else []), gamma, beta, np.zeros((), np.int64), mean, variance]
    graph = loaded(tmp_path, sequential(input_layer("x", [1, 1, 3]), spec), arrays)
    scale = gamma / np.sqrt(variance + np.float32(0.01))
    folded = kernel * scale.reshape((3, 2) if depthwise else (2,))
    found = np.sort(kernel_of(graph).reshape(-1))
    assert np.array_equal(found, np.sort(np.clip(np.rint(folded * 16) / 16, -2, 31 / 16).reshape(-1)))
    shift = scale * ((bias if biased else 0) - mean) + beta
    stored = next(c.data for role, c in graph.constants.items() if role.endswith("bias"))
    assert np.array_equal(stored, np.clip(np.rint(shift * 4) / 4, -4, 3.75))


def test_both_kernels_of_a_separable_convolution_are_rounded(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    kernels = [rng.normal(size=shape).astype(np.float32) for shape in ((1, 1, 3, 1), (1, 1, 3, 2))]
    spec = layer(
        "QSeparableConv2D", "fc", filters=2, kernel_size=[1, 1], use_bias=False, activation="linear",
        depthwise_quantizer=bits(bits=3, integer=1, alpha=1), pointwise_quantizer="binary(alpha=1)",
    )  # fmt: skip
    graph = loaded(tmp_path, sequential(input_layer("x", [1, 1, 3]), spec), kernels)
    first, second = (constant.data.reshape(-1) for name, constant in graph.constants.items() if "kernel" in name)
    assert np.array_equal(np.sort(first), np.sort(np.clip(np.rint(kernels[0] * 2) / 2, -2, 1.5).reshape(-1)))
    assert set(second.tolist()) == {-1.0, 1.0}


def test_a_registered_class_of_a_keras_file_is_read(tmp_path: Path) -> None:
    spec = {**qdense(kernel_quantizer="quantized_bits(4,0,1,alpha=1)"), "module": "qkeras.qlayers"}
    spec["registered_name"] = "QDense"
    arrays = {"layers/q_dense/vars/0": KERNEL, "layers/q_dense/vars/1": BIAS}
    data = keras_bytes(sequential(input_layer("x", [3]), spec), arrays, "2.15.0")
    assert kernel_of(load(put(tmp_path / "model.keras", data)))[0, 0] == 0.25


@pytest.mark.parametrize("width", [4, 8])
def test_integers_have_the_trained_ranges(width: int, tmp_path: Path) -> None:
    """Few steps are a table of their own, and eight bits are the integers themselves."""
    relu = f"quantized_relu({width},2)"
    config = sequential(input_layer("x", [3]), qdense(kernel_quantizer="quantized_bits(8,2)", activation=relu))
    graph = passes.run(loaded(tmp_path, config, [KERNEL, BIAS]))
    x = np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", x=x)
    recipe = Recipe("int8", source=Source(tmp_path / "samples.npz"))
    made = quantize_with(graph, recipe, ranges_of(graph, recipe))
    found, wanted = (interpret.run(g, {g.inputs[0]: x})[g.outputs[0]] for g in (made, graph))
    quant = made.tensors[made.outputs[0]].quant
    assert quant is not None
    step = 2.0 ** (2 - width)
    assert quant.scale == pytest.approx(step * (2**width - 1) / 255)
    real = (found - float(quant.zero_point)) * quant.scale
    assert np.allclose(np.rint(real / step) * step, real, atol=1e-6)  # always one of its own values
    assert np.abs(real - wanted).max() <= step * 2.01
    assert (np.abs(real - wanted) < step / 2).mean() > 0.8


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (qdense(kernel_quantizer=bits("quantized_po2")), "layer 'fc': its quantizer 'quantized_po2' is not read"),
        (qdense(kernel_quantizer="ternary(alpha='auto',threshold=0.2)"), "has a threshold and a fitted scale"),
        (qdense(kernel_quantizer="quantized_bits(__import__('os'))"), "its quantizer .* is not read"),
        (qdense(kernel_quantizer=bits(bits=4, qnoise_factor=0.5)), "rounds only a part of each value"),
        (qdense(kernel_quantizer=bits(bits=4, scale_axis=0)), "has a scale_axis"),
        (qdense(kernel_quantizer=bits(bits=4, alpha=[1, 2])), "has alpha = "),
        (qdense(kernel_quantizer=bits(bits=1)), "has 1 bits"),
        (qdense(kernel_quantizer="quantized_relu(4)"), "is one for activations"),
        (qdense(activation="quantized_ulaw(4)"), "its quantizer 'quantized_ulaw' is not read"),
        (qdense(kernel_quantizer="quantized_tanh(4)"), "is one for activations"),
        (qdense(activation="quantized_sigmoid(1000)"), "has 1000 bits"),
        (qdense(kernel_quantizer="ternary(number_of_unrolls=1000000000)"), "has number_of_unrolls = 1000000000"),
        (qdense(activation="quantized_bits(4,0,1,alpha='auto')"), "of an activation has alpha = 'auto'"),
        (qdense(activation=bits("quantized_relu", use_sigmoid=1)), "has use_sigmoid"),
        (layer("QLSTM", "fc", units=4), "layer 'fc': its class 'QLSTM' is not supported"),
    ],
)
def test_what_is_not_read_says_so(spec: dict[str, Any], cause: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=cause) as refusal:
        loaded(tmp_path, sequential(input_layer("x", [3]), spec), [KERNEL, BIAS])
    assert "model_save_quantized_weights" in str(refusal.value)


def test_layers_of_hgq_are_not_taken_for_those_of_qkeras(tmp_path: Path) -> None:
    spec = {**qdense(), "module": "hgq.layers.core.dense", "registered_name": "hgq>QDense"}
    with pytest.raises(ModelError, match=r"layer 'fc': its class 'hgq>QDense' is one of HGQ.*qkernel and qbias"):
        loaded(tmp_path, sequential(input_layer("x", [3]), spec), [KERNEL, BIAS])


def test_layers_of_two_values_say_how_to_give_them(tmp_path: Path) -> None:
    spec = layer("QuantDense", "fc", units=4, kernel_quantizer="ste_sign")
    with pytest.raises(ModelError, match=r"'QuantDense' is not supported\. Within larq\.context\.quantized_scope"):
        loaded(tmp_path, sequential(input_layer("x", [3]), spec), [KERNEL, BIAS])

"""The integers of a QuantizeLinear: held within fewer bits, made of constants, and read as the whole numbers they are.

Scales of 0.02 * 0.01 and 0.0507 bring no sum to the middle between two outputs (sum * 2 / 507), where the library's
floats decide; so all integers are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper, numpy_helper

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx import load_bytes
from nnbuild.frontend.onnx.quantized import OFF_CENTRE
from nnbuild.frontend.other_arithmetic import HALF_PRECISION, SATURATED_SUMS
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.passes.compose_tables import compose_tables
from nnbuild.quantize.integer_stretches import join_stretches
from tests.support.onnx_quantized import computed

RANDOM = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def _the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tests ran before."""
    monkeypatch.setitem(globals(), "RANDOM", np.random.default_rng(4))


def node(kind: str, *names: str, **options: Any) -> onnx.NodeProto:
    """The last name is the output's."""
    return helper.make_node(kind, names[:-1], names[-1:], **options)


def model(nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: tuple[int, ...], opset: int = 17) -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, of) for name, of in (("x", shape), ("out", None))]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(made.SerializeToString())


def both(data: bytes, shape: tuple[int, ...]) -> tuple[Array, Array, Graph]:
    """Ours and onnxruntime's, for ten samples."""
    x = RANDOM.normal(size=(10, *shape)).astype(np.float32)
    wanted = np.stack([computed(data, {"x": row})[0] for row in x])
    graph = passes.run(verify(load_bytes(data, "net")))
    found = interpret.run(graph, {"x": x.reshape(10, *graph.tensors["x"].shape)})[graph.outputs[0]]
    return found.reshape(wanted.shape), wanted, graph


READ_AS_WHOLE = {
    "cast": [node("Cast", "q", "out", to=TensorProto.FLOAT)],
    "cast twice": [node("Cast", "q", "i", to=TensorProto.INT32), node("Cast", "i", "out", to=TensorProto.FLOAT)],
    "maximum": [node("Max", "q", "z", "k"), node("DequantizeLinear", "k", "s", "z", "out")],
    "compared": [node("Greater", "q", "z", "b"), node("Cast", "b", "out", to=TensorProto.FLOAT)],
    "argmax": [node("ArgMax", "q", "a", axis=1), node("Cast", "a", "out", to=TensorProto.FLOAT)],
    "turned": [node("Transpose", "q", "k"), node("DequantizeLinear", "k", "s", "z", "out")],
    "held": [node("Clip", "q", "low", "high", "k"), node("DequantizeLinear", "k", "s", "z", "out")],
    "held, whole": [node("Clip", "q", "low", "high", "k"), node("Cast", "k", "out", to=TensorProto.FLOAT)],
    "pooled": [
        node("Unsqueeze", "q", "first", "k0"),
        node("MaxPool", "k0", "k", kernel_shape=[2]),
        node("DequantizeLinear", "k", "s", "z", "out"),
    ],
}


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("name", READ_AS_WHOLE)
def test_they_are_read_as_they_are(name: str, kind: type[np.integer[Any]]) -> None:
    point = kind(100 if kind is np.uint8 else 3)
    constants = {"s": np.float32(0.03), "z": point, "low": kind(point - 20), "high": kind(point + 11)}
    nodes = [node("QuantizeLinear", "x", "s", "z", "q"), *READ_AS_WHOLE[name]]
    found, wanted, _ = both(model(nodes, constants | {"first": np.array([0])}, (1, 6)), (1, 6))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_relu_of_integers_stays_among_them() -> None:
    quant = ("s", "z")
    nodes = [
        node("QuantizeLinear", "x", *quant, "q"),
        node("DequantizeLinear", "q", *quant, "d"),
        node("Relu", "d", "r"),
        node("MaxPool", "r", "out", kernel_shape=[2, 2]),
    ]
    shape = (1, 2, 4, 4)
    found, wanted, graph = both(model(nodes, {"s": np.float32(0.03), "z": np.int8(-7)}, shape), shape)
    np.testing.assert_array_equal(found, wanted)
    assert {graph.tensors[op.outputs[0]].dtype for op in graph.ops if op.kind in ("activation", "pool2d")} == {"int8"}


def steps(name: str, scale: Array, low: int, high: int, of: type[np.integer[Any]], **options: int) -> Any:
    """Nodes and constants that bring a tensor to integers between low and high, and back."""
    constants = {
        f"{name}_s": scale,
        f"{name}_z": np.zeros(scale.shape, of),
        f"{name}_l": of(low),
        f"{name}_h": of(high),
    }
    quant = [f"{name}_s", f"{name}_z"]
    return [
        node("QuantizeLinear", name, *quant, f"{name}_q", **options),
        node("Clip", f"{name}_q", f"{name}_l", f"{name}_h", f"{name}_c"),
        node("DequantizeLinear", f"{name}_c", *quant, f"{name}_d", **options),
    ], constants


@pytest.mark.parametrize(("bits", "activations"), [(8, 8), (4, 8), (4, 4), (2, 8)])
def test_networks_trained_with_few_bits(bits: int, activations: int) -> None:
    """Weights are floats in the file, quantized by channel in the graph; every tensor is held within its bits."""
    shape, most = (1, 3, 8, 8), 2 ** (bits - 1) - 1
    kernel = RANDOM.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)
    scales = (np.abs(kernel).reshape(8, -1).max(axis=1) / most).astype(np.float32)
    parts = [
        steps("x", np.float32(0.0317 if activations == 8 else 0.53), *_ends(activations, np.int8), np.int8),
        steps("w", scales, -most, most, np.int8, axis=0),
        steps("r", np.float32(0.0213 if activations == 8 else 0.31), *_ends(activations, np.uint8), np.uint8),
    ]
    constants = {"w": kernel, "b": RANDOM.normal(0, 0.1, 8).astype(np.float32)}
    for _, more in parts:
        constants |= more
    between = [node("Conv", "x_d", "w_d", "b", "y", pads=[1, 1, 1, 1]), node("Relu", "y", "r")]
    nodes = [*parts[0][0], *parts[1][0], *between, *parts[2][0]]
    nodes[-1].output[0] = "out"
    found, wanted, graph = both(model(nodes, constants, shape), shape)
    assert [graph.tensors[op.outputs[0]].dtype for op in graph.ops if op.kind == "conv2d"] == ["int8"]
    apart = np.abs(found - wanted) / constants["r_s"]
    assert apart.max() < 1.01
    assert (apart > 0.5).mean() < 4e-3


@pytest.mark.parametrize("quantized", [True, False])
def test_a_bias_in_floats_beside_coarse_sums_is_added_to_floats(quantized: bool) -> None:
    """The products are computed in integers all the same."""
    shape, coarse = (1, 3, 4, 4), np.float32(1.0)
    constants = {
        "s": np.float32(0.05),
        "z": np.int8(0),
        "w": RANDOM.integers(-127, 128, (2, 3, 1, 1)).astype(np.int8),
        "c": coarse,
        "b": np.array([100, -3], np.int32) if quantized else np.array([5.0, -0.15], np.float32),
        "c_b": np.float32(0.05) * coarse,
        "z_b": np.int32(0),
    }
    nodes = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node("DequantizeLinear", "q", "s", "z", "d"),
        node("DequantizeLinear", "w", "c", "z", "w_d"),
        node("DequantizeLinear", "b", "c_b", "z_b", "b_d"),
        node("Conv", "d", "w_d", "b_d" if quantized else "b", "y", name="coarse"),
        node("QuantizeLinear", "y", "c", "z", "o"),
        node("DequantizeLinear", "o", "c", "z", "out"),
    ]
    found, wanted, graph = both(model(nodes if quantized else nodes[:3] + nodes[4:], constants, shape), shape)
    np.testing.assert_allclose(found, wanted, atol=1.01)
    (op,) = [op for op in graph.ops if op.kind == "conv2d"]
    types = [graph.tensors[name].dtype for name in (*op.inputs, *op.outputs)]
    assert types == ["int8", "int8" if quantized else "float32"] and graph.notes == ()


def _ends(bits: int, of: type[np.integer[Any]]) -> tuple[int, int]:
    return (0, 2**bits - 1) if of is np.uint8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def before_a_sum(kind: str) -> tuple[onnx.NodeProto, Array, tuple[int, ...], tuple[int, ...]]:
    """An operator without a bias, its weights, the shape of its input, and of constants for its outputs."""
    weights = RANDOM.integers(-100, 100, (5, 6, 1, 1) if kind == "Conv" else (6, 5)).astype(np.int8)
    if kind == "Conv":
        return node(kind, "xd", "wd", "sum"), weights, (1, 6, 4, 3), (5, 1, 1)
    return node(kind, "xd", "wd", "sum"), weights, (1, 6) if kind == "Gemm" else (2, 3, 6), (5,)


@pytest.mark.parametrize("form", ["floats", "integers", "turned", "of one number", "along the rows"])
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv"])
def test_a_sum_with_constants_is_a_bias(kind: str, form: str) -> None:
    """Exporters write MatMul and Add for a layer of several rows. Constants that are no bias stay a sum of floats."""
    made, weights, shape, of = before_a_sum(kind)
    bias = RANDOM.integers(-4000, 4000, of).astype(np.int32)
    if form == "of one number":
        bias = bias.reshape(-1)[:1]
    if form == "along the rows":
        bias = RANDOM.integers(-4000, 4000, (4, 1) if kind == "Conv" else (1,) if kind == "Gemm" else (3, 1))
    constants = {
        **{"xs": np.float32(0.02), "xz": np.int8(-9), "ws": np.float32(0.01), "wz": np.int8(0)},
        **{"ys": np.float32(0.0507), "yz": np.int8(4), "bs": np.float32(0.02) * np.float32(0.01), "bz": np.int32(0)},
        **{"w": weights, "b": bias.astype(np.int32) if form == "integers" else (bias * 0.0002).astype(np.float32)},
    }
    held = [node("DequantizeLinear", "b", "bs", "bz", "bd")] if form == "integers" else []
    added = ("bd" if held else "b", "sum") if form == "turned" else ("sum", "bd" if held else "b")
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd"),
        made,
        *held,  # known from the beginning, wherever it stands
        node("Add", *added, "whole"),
        node("Relu", "whole", "positive"),
        node("QuantizeLinear", "positive", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    found, wanted, graph = both(model(nodes, constants, shape), shape)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    whole = form in ("floats", "integers", "turned")
    assert ("binary" in [op.kind for op in graph.ops]) != whole
    sums = next(op for op in graph.ops if op.kind in ("dense", "conv2d"))
    assert (graph.tensors[sums.outputs[0]].dtype == "int8") == whole


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("clipped", [False, True])
def test_casts_to_the_same_type_are_nothing(dtype: type, clipped: bool) -> None:
    """PyTorch writes one behind each QuantizeLinear; the layer stays one of integers, as without it."""
    weights = RANDOM.integers(-100, 100, (6, 5)).astype(np.int8)
    constants = {
        **{"xs": np.float32(0.02), "xz": dtype(9), "ws": np.float32(0.01), "wz": np.int8(0)},
        **{"ys": np.float32(0.0507), "yz": dtype(4), "w": weights, "low": dtype(0), "high": dtype(120)},
    }
    to = onnx.TensorProto.UINT8 if dtype is np.uint8 else onnx.TensorProto.INT8

    def quantized(name: str, scale: str, zero: str) -> list[onnx.NodeProto]:
        made = [node("QuantizeLinear", name, scale, zero, f"{name}q")]
        made += [node("Clip", f"{name}q", "low", "high", f"{name}l")] if clipped else []
        made += [node("Cast", made[-1].output[0], f"{name}c", to=to)]
        return [*made, node("DequantizeLinear", f"{name}c", scale, zero, f"{name}d")]

    nodes = [
        *quantized("x", "xs", "xz"),
        node("DequantizeLinear", "w", "ws", "wz", "wd"),
        node("MatMul", "xd", "wd", "y"),
        *quantized("y", "ys", "yz"),
        node("Reshape", "yd", "shape", "out"),
    ]
    found, wanted, graph = both(model(nodes, constants | {"shape": np.array([1, 5], np.int64)}, (1, 6)), (1, 6))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert {"binary", "whole", "select"}.isdisjoint(op.kind for op in graph.ops)
    assert all(graph.tensors[op.outputs[0]].dtype == "int8" for op in graph.ops if op.kind == "dense")


def test_zeros_are_quantized_by_a_scale_of_one() -> None:
    """A range of nothing has no scale; rectified units may all be 0 at once."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("Cast", "q", "f", to=TensorProto.FLOAT),
        node("Add", "f", "s", "out"),
    ]
    data = model(nodes, {}, (1, 6))
    graph = passes.run(verify(load_bytes(data, "net")))
    for row in (np.zeros((1, 6), np.float32), np.linspace(-1, 2, 6, dtype=np.float32)[None]):
        found = interpret.run(graph, {"x": row.reshape(1, *graph.tensors["x"].shape)})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(1, 6), computed(data, {"x": row})[0], rtol=1e-6)


@pytest.mark.parametrize("point", [32768, 31000])
def test_uneven_zero_points_of_16_bits_are_told(point: int) -> None:
    """They have no integer rule; floats in steps give the same numbers, slowly."""
    constants = {"s": np.float32(1e-4), "z": np.uint16(point)}
    nodes = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node("DequantizeLinear", "q", "s", "z", "d"),
        node("Relu", "d", "out"),
    ]
    found, wanted, graph = both(model(nodes, constants, (1, 6), opset=21), (1, 6))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    told = [note for note in graph.notes if "16-bit tensors have zero points" in note]
    assert told == ([] if point == 32768 else [OFF_CENTRE])
    assert "ActivationSymmetric" in OFF_CENTRE


def test_what_onnxruntime_computes_otherwise_is_told() -> None:
    """Where golden outputs miss their gate, the check says so."""
    to_half, back = (node("Cast", *names, to=to) for names, to in ((("x", "h"), 10), (("h", "out"), 1)))
    dynamic = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    floats = node("Cast", "q", "out", to=TensorProto.FLOAT)
    for nodes, text in (([to_half, back], HALF_PRECISION), ([dynamic, floats], SATURATED_SUMS)):
        assert load_bytes(model(nodes, {}, (1, 6)), "net").unlike == text
    assert load_bytes(model([node("Relu", "x", "out")], {}, (1, 6)), "net").unlike == ""


def test_a_scale_of_what_never_varies_is_said() -> None:
    """A tensor that calibration saw at one value next to nothing."""
    steps = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node("Max", "q", "z", "k"),
        node("DequantizeLinear", "k", "s", "z", "out"),
    ]
    held = {"s": np.float32(1e-12), "z": np.int8(-128)}
    with pytest.raises(ModelError) as raised:
        load_bytes(model(steps, held, (1, 4)), "net")
    assert str(raised.value).endswith(
        "its scale is 1e-12, outside 2^-28 to 2^28. "
        "Calibrate the model with samples that make its tensors vary, and quantize it again."
    )


@pytest.mark.parametrize("product", [False, True])
def test_a_scale_of_a_mask_is_said(product: bool) -> None:
    """A mask of -3.4e38 was added to scores before the model was quantized."""
    held = {"s": np.float32(1.33e36), "z": np.uint8(255), "one": np.float32(1.0), "o": np.uint8(0)}
    back = node("DequantizeLinear", "k", "s", "z", "out")
    steps = [node("QuantizeLinear", "x", "s", "z", "k"), back]
    if product:
        operands = ("q", "one", "o", "q", "one", "o", "s", "z", "k")
        multiplied = node("QLinearMul", *operands, domain="com.microsoft")
        steps = [node("QuantizeLinear", "x", "one", "o", "q"), multiplied, back]
    with pytest.raises(ModelError) as raised:
        load_bytes(model(steps, held, (1, 4)), "net")
    assert "its scale is 1.33e+36, outside 2^-28 to 2^28. A mask of huge numbers causes this" in str(raised.value)


OF_ONE_BYTE = {
    "leaky_relu": [node("LeakyRelu", "xd", "y", alpha=0.1)],
    "sigmoid": [node("Sigmoid", "xd", "y")],
    "erf": [node("Erf", "xd", "y")],
    "hard_swish": [node("HardSwish", "xd", "y")],
    "relu": [node("Relu", "xd", "y")],
    "plus one": [node("Add", "xd", "one", "y")],
    "from a number": [node("Sub", "one", "xd", "y")],
    "by a quantized number": [node("DequantizeLinear", "w", "ws", "wz", "wd"), node("Mul", "wd", "xd", "y")],
    "at least": [node("Max", "xd", "one", "y")],
}


@pytest.mark.parametrize("name", OF_ONE_BYTE)
@pytest.mark.parametrize(("scale", "out_scale"), [(0.03, 0.02), (2 / 255, 2 / 255), (0.25, 0.5)])
def test_functions_of_a_byte_are_those_of_onnx(name: str, scale: float, out_scale: float) -> None:
    """Also where a result lies between two steps."""
    constants = {
        "one": np.ones((), np.float32),
        "xs": np.float32(scale),
        "xz": np.int8(-3),
        "ys": np.float32(out_scale),
        "yz": np.int8(-20),
        "w": np.int8(-77),
        "ws": np.float32(0.01),
        "wz": np.int8(0),
    }
    held = {name: np.asarray(value) for name, value in constants.items()}
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        *OF_ONE_BYTE[name],
        node("QuantizeLinear", "y", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    data = model(nodes, held, (1, 256))
    x = ((np.arange(-128, 128) + 3) * np.float32(scale)).astype(np.float32)[None]
    graph = compose_tables(passes.run(join_stretches(verify(load_bytes(data, "net")))))
    (wanted,) = computed(data, {"x": x})
    found = interpret.run(graph, {"x": x})[graph.outputs[0]]
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    kinds = [op.kind for op in graph.ops if op.kind not in ("convert", "reshape")]
    assert kinds in (["lookup"], ["activation"])


@pytest.mark.parametrize("number", [-1.1, 0.25, 7.3, -100.0, 1e4])
def test_what_is_padded_need_not_be_in_the_inputs_range(number: float) -> None:
    """The format of the QuantizeLinear behind a Pad is that of its results."""
    ends = sorted((0.0, number, 6.0))
    scale = np.float32((max(ends) - min(ends)) / 255)
    constants = {
        "xs": np.float32(6 / 255),
        "xz": np.int8(-128),
        "ys": scale,
        "yz": np.int8(np.clip(np.rint(-128 - min(ends) / scale), -128, 127)),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 2], np.int64),
        "number": np.float32(number),
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("Pad", "xd", "pads", "number", "y"),
        node("QuantizeLinear", "y", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    held = {name: np.asarray(value) for name, value in constants.items()}
    found, wanted, _ = both(model(nodes, held, (1, 3, 5, 4)), (1, 3, 5, 4))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("share", [1.0, 1e-5, 1e-7, 1e-12, 0.0])
def test_a_dead_channel_does_not_put_its_layer_in_floats(share: float, whole: bool, several: bool) -> None:
    """Its bias is too large in steps of its products, and its weights do not count. onnxruntime's quantizer makes such
    steps so large that the bias just fits 32 bits, which leaves no room for the products."""
    weights = RANDOM.normal(size=(6, 3, 3, 3)) / 5
    weights[2] *= share
    ranges = np.abs(weights).max(axis=(1, 2, 3)) if several else np.abs(weights).max()
    scales = (ranges / 127).astype(np.float32)
    bias = RANDOM.normal(size=6).astype(np.float32)
    if whole:
        scales = np.maximum(scales, np.abs(bias if several else bias.max()) / (0.03 * (2**31 - 2**9))).astype(
            np.float32
        )
    with np.errstate(invalid="ignore"):
        integers = np.nan_to_num(np.rint(weights / np.reshape(scales, (-1, 1, 1, 1))))
    constants = {
        "xs": np.float32(0.03),
        "xz": np.int8(3),
        "w": integers.astype(np.int8),
        "ws": scales,
        "wz": np.zeros(scales.shape, np.int8),
        "bias": np.rint(bias / (scales * np.float64(0.03))).astype(np.int32) if whole else bias,
        "bs": (scales * np.float64(0.03)).astype(np.float32),
        "bz": np.zeros(scales.shape, np.int32),
        "ys": np.float32(0.05),
        "yz": np.int8(-5),
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd", axis=0),
        *([node("DequantizeLinear", "bias", "bs", "bz", "real", axis=0)] if whole else []),
        node("Conv", "xd", "wd", "real" if whole else "bias", "y", kernel_shape=[3, 3]),
        node("QuantizeLinear", "y", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    held = {name: np.asarray(value) for name, value in constants.items()}
    found, wanted, graph = both(model(nodes, held, (1, 3, 7, 8)), (1, 3, 7, 8))
    assert [graph.tensors[op.outputs[0]].dtype for op in graph.ops if op.kind == "conv2d"] == ["int8"]
    steps = np.rint(np.abs(found - wanted) / np.float32(0.05))
    assert steps.max() <= 1 and steps.mean() < 0.01


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_a_normalization_behind_quantized_weights_is_folded_into_them(kind: str, bias: bool) -> None:
    """As tools that train with quantized weights export it: a convolution, its normalization and a rectifier."""
    weights = RANDOM.normal(size=(6, 3, 3, 3) if kind == "Conv" else (3, 6, 3, 3)) / 5
    axis = 0 if kind == "Conv" else 1
    scales = (np.abs(weights).max(axis=tuple({0, 1, 2, 3} - {axis})) / 127).astype(np.float32)
    constants = {
        "xs": np.float32(0.03),
        "xz": np.int8(3),
        "w": weights.astype(np.float32),
        "ws": scales,
        "wz": np.zeros(6, np.int8),
        "bias": RANDOM.normal(size=6).astype(np.float32),
        "gamma": np.array([1.0, -0.7, 0.0, 1e-6, 2.0, 0.3], np.float32),
        "beta": RANDOM.normal(size=6).astype(np.float32),
        "mean": RANDOM.normal(size=6).astype(np.float32) / 5,
        "variance": RANDOM.uniform(0.2, 1, 6).astype(np.float32),
        "ys": np.float32(0.03),
        "yz": np.int8(-128),
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("QuantizeLinear", "w", "ws", "wz", "wq", axis=axis),
        node("DequantizeLinear", "wq", "ws", "wz", "wd", axis=axis),
        node(kind, "xd", "wd", *(["bias"] if bias else []), "c", kernel_shape=[3, 3]),
        node("BatchNormalization", "c", "gamma", "beta", "mean", "variance", "n", epsilon=1e-3),
        node("Relu", "n", "y"),
        node("QuantizeLinear", "y", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    held = {name: np.asarray(value) for name, value in constants.items()}
    found, wanted, graph = both(model(nodes, held, (1, 3, 7, 8)), (1, 3, 7, 8))
    assert {"affine", "activation"}.isdisjoint(op.kind for op in graph.ops)
    assert all(graph.tensors[op.outputs[0]].dtype == "int8" for op in graph.ops if op.kind.startswith("conv2d"))
    steps = np.rint(np.abs(found - wanted) / np.float32(0.03))
    assert steps.max() <= 1 and steps.mean() < 0.01


def test_a_normalization_of_rows_is_not_one_of_columns() -> None:
    """Behind a product of matrices with as many rows as columns, it belongs to the rows."""
    constants = {
        "xs": np.float32(0.03),
        "xz": np.int8(3),
        "w": RANDOM.integers(-127, 128, (4, 5)).astype(np.int8),
        "ws": np.float32(0.01),
        "wz": np.int8(0),
        "gamma": np.array([1.0, -0.7, 2.0, 0.3, 1.5], np.float32),
        "beta": RANDOM.normal(size=5).astype(np.float32),
        "mean": np.zeros(5, np.float32),
        "variance": np.ones(5, np.float32),
        "ys": np.float32(0.03),
        "yz": np.int8(0),
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd"),
        node("MatMul", "xd", "wd", "m"),
        node("BatchNormalization", "m", "gamma", "beta", "mean", "variance", "y"),
        node("QuantizeLinear", "y", "ys", "yz", "yq"),
        node("DequantizeLinear", "yq", "ys", "yz", "out"),
    ]
    held = {name: np.asarray(value) for name, value in constants.items()}
    found, wanted, _ = both(model(nodes, held, (1, 5, 4)), (1, 5, 4))
    assert np.rint(np.abs(found - wanted) / np.float32(0.03)).max() <= 1

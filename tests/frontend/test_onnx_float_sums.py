"""ONNX layers whose inputs and weights are quantized and whose results are not: products are integers all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend.assembly import Assembly, among_integers
from nnbuild.frontend.onnx import load_bytes
from nnbuild.frontend.onnx.products import NEGATE
from nnbuild.frontend.onnx.weighted import BY_CHANNEL
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.plan.target import Target
from nnbuild.quantize.integer_stretches import join_stretches
from tests.frontend.test_onnx_integers import both, model, node
from tests.support.many import run_many

Layer = tuple[str, tuple[int, ...], tuple[int, ...], int, dict[str, Any]]
"""(operator, shape of its input, of its weights, the axis of these with the outputs, options)"""
LAYERS: dict[str, Layer] = {
    "convolution": ("Conv", (1, 3, 7, 5), (6, 3, 3, 3), 0, {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "of one row": ("Conv", (1, 5, 13), (4, 5, 4), 0, {"dilations": [2]}),
    "of groups": ("Conv", (1, 6, 6, 4), (9, 2, 2, 3), 0, {"group": 3, "pads": [0, 1, 1, 0]}),
    "depthwise": ("Conv", (1, 5, 6, 7), (10, 1, 3, 3), 0, {"group": 5, "pads": [1, 1, 1, 1]}),
    "of one channel": ("Conv", (1, 1, 5, 5), (1, 1, 1, 1), 0, {}),
    "of three axes": ("Conv", (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 0, {}),
    "transposed": ("ConvTranspose", (1, 4, 5, 4), (4, 3, 3, 2), 1, {"strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "transposed groups": ("ConvTranspose", (1, 4, 5), (4, 3, 4), 1, {"strides": [2], "group": 2}),
    "dense": ("Gemm", (1, 37), (11, 37), 0, {"transB": 1}),
    "of several rows": ("MatMul", (1, 5, 12), (12, 7), 1, {}),
    "of one output": ("MatMul", (1, 8), (8, 1), 1, {}),
}
MODEL_SEED = 11


def net(
    layer: Layer, bias: bool, several: bool, symmetric: bool, factors: Array | None = None, function: str = "Relu"
) -> tuple[bytes, tuple[int, ...]]:
    """The layer between a quantized input and a function of floats, perhaps behind factors for its outputs."""
    kind, shape, weights, axis, options = layer
    chance = np.random.default_rng(MODEL_SEED)
    out = weights[axis] * (options.get("group", 1) if kind == "ConvTranspose" else 1)
    scales = chance.uniform(0.001, 0.02, weights[axis] if several else ()).astype(np.float32)
    biased = bias and kind != "MatMul"
    constants = {
        "xs": np.float32(0.0213),
        "xz": np.int8(0) if symmetric else np.uint8(117),
        "w": chance.integers(-127, 128, weights).astype(np.int8),
        "ws": scales,
        "wz": np.zeros(scales.shape, np.int8),
        "b": chance.normal(0, 2, out).astype(np.float32),
    }
    by = {"axis": axis} if several else {}
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd", **by),
        node(kind, "xd", "wd", *(["b"] if biased else []), "y", **options),
        node(function, "y", "out"),
    ]
    if factors is not None:
        constants["f"] = factors[:out].reshape(-1, *[1] * (len(shape) - 2 if "Conv" in kind else 0))
        nodes[-1:] = [node("Mul", "y", "f", "scaled"), node(function, "scaled", "out")]
    return model(nodes, {name: np.asarray(value) for name, value in constants.items()}, shape), shape


def products(graph: Graph) -> list[tuple[str, ...]]:
    """The types of what each layer with weights reads and gives."""
    return [
        tuple(graph.tensors[name].dtype for name in (*op.inputs, *op.outputs))
        for op in graph.ops
        if "kernel" in op.constants
    ]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_sums_become_floats(name: str, bias: bool, several: bool, symmetric: bool) -> None:
    data, shape = net(LAYERS[name], bias, several, symmetric)
    found, wanted, graph = both(data, shape)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-5)
    assert products(graph) == [("int8", "float32")] and graph.notes == ()
    assert name == "of three axes" or [op.kind for op in graph.ops if op.kind == "activation"] == []


@pytest.mark.turns(3)
@pytest.mark.slow
def test_the_c_equals_the_reference_in_every_bit(tmp_path: Path) -> None:
    runs, targets = [], []
    for index, name in enumerate(LAYERS):
        function = "Erf" if name == "dense" else "Relu"  # its vendored function has functions of its own
        data, shape = net(LAYERS[name], bool(index % 2), not index % 2, bool(index % 3), function=function)
        _, _, graph = both(data, shape)
        x = np.random.default_rng(3).normal(size=(4, *graph.tensors["x"].shape)).astype(np.float32)
        for isa in ("c99", "armv7em_dsp", "mve", "rv32im", "sse2", "zve32x"):
            runs.append((graph, {"x": x}))
            targets.append(Target(isas()[isa]))
    for (graph, given), made in zip(runs, run_many(runs, tmp_path, targets=targets), strict=True):
        (out,) = graph.outputs
        rounding = 1e-6 if any(op.attributes == Activation("erf") for op in graph.ops) else 0.0
        np.testing.assert_allclose(made[out], interpret.run(graph, given)[out], rtol=0, atol=rounding)


@pytest.mark.parametrize("negative", [True, False])
def test_a_normalization_goes_into_their_scales(negative: bool) -> None:
    """Of a convolution whose result is added to something."""
    chance = np.random.default_rng(5)
    factors = np.array([1.5, -0.2 if negative else 0.2, 3e-5, 40.0], np.float32)
    constants: dict[str, Array] = {
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, np.int8),
        "w": chance.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8),
        "ws": chance.uniform(0.001, 0.02, 4).astype(np.float32),
        "wz": np.zeros(4, np.int8),
        "g": factors,
        "beta": chance.normal(size=4).astype(np.float32),
        "mean": chance.normal(size=4).astype(np.float32),
        "variance": np.ones(4, np.float32),
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd", axis=0),
        node("Conv", "xd", "wd", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c", "g", "beta", "mean", "variance", "n", epsilon=0.0),
        node("Add", "n", "x", "out"),
    ]
    found, wanted, graph = both(model(nodes, constants, (1, 4, 6, 6)), (1, 4, 6, 6))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-4)
    assert products(graph) == [("int8", "float32")]
    assert [op.kind for op in graph.ops if op.kind == "affine"] == []


RESHAPED = ("of one row", "of one channel", "of three axes", "transposed groups")
"""Layers between which and what follows lies a change of shape."""


def with_factors(layer: Layer, several: bool, factors: Array) -> list[str]:
    """The kinds of what is computed behind the layer, as it is compiled; checked against the factors apart."""
    data, shape = net(layer, True, several, False, factors)
    _, _, graph = both(data, shape)
    joined = passes.run(join_stretches(graph))
    assert products(joined) == [("int8", "float32")]
    x = np.random.default_rng(4).normal(size=(5, *joined.tensors["x"].shape)).astype(np.float32)
    (out,) = graph.outputs
    found, wanted = interpret.run(joined, {"x": x})[out], interpret.run(graph, {"x": x})[out]
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=4e-5)
    return [op.kind for op in joined.ops if op.kind in ("affine", "binary")]


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_factors_behind_them_go_into_their_scales(name: str, several: bool) -> None:
    """As ConvNeXt scales what it adds."""
    factors = np.random.default_rng(6).uniform(-2, 2, 11).astype(np.float32)
    behind = with_factors(LAYERS[name], several, factors)
    assert behind == [] or name in RESHAPED


def test_factors_of_zero_stay_behind_them() -> None:
    assert with_factors(LAYERS["dense"], True, np.arange(11, dtype=np.float32)) == ["binary"]


Dynamic = tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]
DYNAMIC: dict[str, Dynamic] = {
    "rows": ("MatMul", (1, 3, 24), (24, 9), {}),
    "a row": ("MatMul", (1, 33), (33, 5), {}),
    "image": ("Conv", (1, 3, 7, 6), (4, 3, 3, 2), {"strides": [2, 1], "dilations": [1, 2]}),
    "padded": ("Conv", (1, 8, 5, 4), (3, 8, 3, 3), {"pads": [1, 0, 1, 2], "strides": [1, 2]}),
    "padded groups": ("Conv", (1, 16, 4), (4, 8, 3), {"pads": [1, 1], "group": 2}),
}


def dynamic(of: Dynamic, weights: str, several: bool, folder: Path) -> bytes:
    """The layer as onnxruntime's dynamic quantizer writes it, which fixes scales at run time. Signed weights have 7
    bits: on processors without VNNI onnxruntime saturates sums of two products to 16 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    kind, shape, sizes, options = of
    chance = np.random.default_rng(MODEL_SEED)
    held = {"w": chance.normal(size=sizes).astype(np.float32), "b": chance.normal(size=sizes[-1:]).astype(np.float32)}
    last = node("Add", "y", "b", "out") if kind == "MatMul" else node("Relu", "y", "out")
    (folder / "floats.onnx").write_bytes(model([node(kind, "x", "w", "y", **options), last], held, shape))
    quantize_dynamic(
        folder / "floats.onnx",
        folder / "dynamic.onnx",
        weight_type={"s8": QuantType.QInt8, "u8": QuantType.QUInt8}[weights],
        per_channel=several,
        reduce_range=weights == "s8",
    )
    return (folder / "dynamic.onnx").read_bytes()


@pytest.mark.parametrize(("weights", "several"), [("s8", False), ("s8", True), ("u8", False), ("u8", True)])
@pytest.mark.parametrize("name", DYNAMIC)
def test_scales_of_run_time(name: str, weights: str, several: bool, tmp_path: Path) -> None:
    """Bytes times bytes, or weights of nine bits where each channel has a zero point."""
    of = DYNAMIC[name]
    found, wanted, graph = both(dynamic(of, weights, several, tmp_path), of[1])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert products(graph) == [("int8", "float32")]
    assert not any("in floats" in note for note in graph.notes)
    assert [op.kind for op in graph.ops].count("convert") == 3 + ("pads" in of[3])


def test_integers_of_a_known_scale_are_multiplied_as_they_are() -> None:
    """A QuantizeLinear with a constant scale instead of a DynamicQuantizeLinear, and another zero point."""
    constants = {
        "s": np.float32(0.02),
        "z": np.uint8(117),
        "other": np.uint8(5),
        "w": np.random.default_rng(7).integers(-64, 64, (12, 7)).astype(np.int8),
    }
    nodes = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node("MatMulInteger", "q", "w", "other", "y"),
        node("Cast", "y", "out", to=1),
    ]
    found, wanted, graph = both(model(nodes, {k: np.asarray(v) for k, v in constants.items()}, (1, 5, 12)), (1, 5, 12))
    np.testing.assert_array_equal(found, wanted)
    assert products(graph) == [("int8", "float32")]


@pytest.mark.parametrize("zero", [None, 0, -128, 19])
@pytest.mark.parametrize("kind", ["MatMulInteger", "ConvInteger"])
def test_signed_bytes_of_a_known_scale_are_multiplied_as_they_are(kind: str, zero: int | None) -> None:
    """What surrounds an image is the zero point, which may be another one than that of the quantization."""
    shape, weights = ((1, 5, 12), (12, 7)) if kind == "MatMulInteger" else ((1, 3, 6, 5), (4, 3, 3, 3))
    constants = {
        "s": np.float32(0.02),
        "z": np.int8(17),
        "w": np.random.default_rng(7).integers(-128, 128, weights).astype(np.int8),
        **({} if zero is None else {"other": np.int8(zero)}),
    }
    options = {} if kind == "MatMulInteger" else {"pads": [1, 1, 0, 2]}
    nodes = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node(kind, "q", "w", *([] if zero is None else ["other"]), "y", **options),
        node("Cast", "y", "out", to=1),
    ]
    found, wanted, graph = both(model(nodes, {k: np.asarray(v) for k, v in constants.items()}, shape), shape)
    np.testing.assert_array_equal(found, wanted)
    assert products(graph) == [("int8", "float32")] and graph.notes == ()


@pytest.mark.parametrize("way", ["constant", "far", "computed", "read as integers"])
def test_a_bias_of_integers_is_added_in_floats(way: str) -> None:
    """As quantizers of convolutions put it between the sums and their scale."""
    shape, chance = (1, 3, 6, 5), np.random.default_rng(8)
    bias = chance.integers(-3000, 3000, (1, 4, 1, 1)).astype(np.int32)
    constants = {
        "s": np.float32(0.02),
        "z": np.int8(17),
        "w": chance.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
        "b": bias * 2**13 if way == "far" else bias,
        "zero": np.int32(0),
    }
    added = [
        node("Cast", "x", "xi", to=6),
        node("ReduceMax", "xi", "most", keepdims=0),
        node("Add", "b", "most", "bias"),
    ]
    nodes = [
        node("QuantizeLinear", "x", "s", "z", "q"),
        node("ConvInteger", "q", "w", "y"),
        *(added if way == "computed" else []),
        node("Add", *(("bias", "y") if way == "computed" else ("y", "b")), "sum"),
        *([node("Max", "sum", "zero", "kept")] if way == "read as integers" else []),
        node("Cast", "kept" if way == "read as integers" else "sum", "out", to=1),
    ]
    found, wanted, graph = both(model(nodes, {k: np.asarray(v) for k, v in constants.items()}, shape), shape)
    np.testing.assert_array_equal(found, wanted)
    (adding,) = (op.kind for op in graph.ops if op.outputs == ("sum",))
    assert adding == ("whole" if way == "read as integers" else "binary")


FACTORS: dict[str, tuple[dict[str, float], tuple[int, ...] | None]] = {
    "a factor": ({"alpha": 0.37}, None),
    "two factors and a bias": ({"alpha": 0.37, "beta": 2.5}, (11,)),
    "a bias that does not count": ({"beta": 0.0}, (11,)),
    "a number as the bias": ({"alpha": 2.0}, (1,)),
    "a scalar": ({}, ()),
    "a column": ({"beta": -0.5}, (3, 1)),
    "a matrix": ({"alpha": 3.0}, (3, 11)),
    "a negative factor": ({"alpha": -1.5}, (1, 11)),
}


@pytest.mark.parametrize("of", ["y", "x", "q"])
@pytest.mark.parametrize("name", FACTORS)
def test_factors_and_summands_of_a_product(name: str, of: str) -> None:
    """Read in floats, added to the input, or quantized: then also the result of the product is integers."""
    options, summand = FACTORS[name]
    chance, shape = np.random.default_rng(MODEL_SEED), (3, 11)
    constants = {
        "xs": np.float32(0.0213),
        "xz": np.uint8(117),
        "w": chance.integers(-127, 128, (11, 11)).astype(np.int8),
        "ws": np.float32(0.004),
        "wz": np.int8(0),
        "ys": np.float32(0.03),
        "yz": np.int8(-5),
        **({} if summand is None else {"b": chance.normal(0, 2, summand).astype(np.float32)}),
    }
    behind = {
        "y": [node("Relu", "y", "out")],
        "x": [node("Add", "y", "x", "out")],
        "q": [node("QuantizeLinear", "y", "ys", "yz", "yq"), node("DequantizeLinear", "yq", "ys", "yz", "out")],
    }
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd"),
        node("Gemm", "xd", "wd", *([] if summand is None else ["b"]), "y", **options),
        *behind[of],
    ]
    found, wanted, graph = both(model(nodes, {k: np.asarray(v) for k, v in constants.items()}, shape), shape)
    negative, row = options.get("alpha", 1) < 0, summand is None or summand[:1] != (3,)
    if of == "q":
        assert np.abs(found - wanted).max() <= 0.03 * 1.001 and (found != wanted).mean() <= 0.02
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-5)
    assert products(graph) == [("float32",) * 2 if negative else ("int8", "int8" if of == "q" and row else "float32")]
    assert graph.notes[1:] == ((among_integers(f"its alpha is -1.5. {NEGATE}", ["y"]),) if negative else ())


@pytest.mark.parametrize("value", [117, None, 200])
def test_integers_are_padded_as_such(value: int | None) -> None:
    """Between QuantizeLinear and DequantizeLinear: by the zero point, which is the convolution's own padding, or by
    another number."""
    chance, shape = np.random.default_rng(MODEL_SEED), (1, 6, 5, 3)
    constants = {
        "xs": np.float32(0.0213),
        "xz": np.uint8(117),
        "pads": np.array([0, 0, 1, 2, 0, 0, 1, 0]),
        "w": chance.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "ws": np.float32(0.004),
        "wz": np.int8(0),
        **({} if value is None else {"value": np.uint8(value)}),
    }
    nodes = [
        node("Transpose", "x", "xt", perm=[0, 3, 1, 2]),
        node("QuantizeLinear", "xt", "xs", "xz", "xq"),
        node("Pad", "xq", "pads", *([] if value is None else ["value"]), "xp"),
        node("DequantizeLinear", "xp", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wz", "wd"),
        node("Conv", "xd", "wd", "y"),
        node("Relu", "y", "out"),
    ]
    found, wanted, graph = both(model(nodes, {k: np.asarray(v) for k, v in constants.items()}, shape), shape)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-5)
    assert products(graph) == [("int8", "float32")]
    assert [op.kind for op in graph.ops].count("pad") == (value != 117)


def quantized_layer(weights: Array, scales: Array, behind: list[Any], opset: int = 17, **of_weights: int) -> bytes:
    """A Conv or a Gemm of quantized weights, and what is behind its result "y"."""
    constants: dict[str, Array] = {
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, np.int8),
        "w": weights,
        "ws": scales,
        "factor": np.array([1.5, -0.2, 0.1, 2.0], np.float32),
        "zero": np.zeros(4, np.float32),
        "one": np.ones(4, np.float32),
    }
    convolution = weights.ndim == 4
    nodes = [
        node("QuantizeLinear", "x", "xs", "xz", "xq"),
        node("DequantizeLinear", "xq", "xs", "xz", "xd"),
        node("DequantizeLinear", "w", "ws", "wd", **of_weights),
        node("Conv" if convolution else "Gemm", "xd", "wd", "y"),
        *behind,
    ]
    return model(nodes, constants, (1, 4, 5, 5) if convolution else (1, 4), opset)


def test_a_normalization_that_bytes_cannot_hold_stays_behind_them() -> None:
    """The negative of -128 is no byte."""
    weights = np.random.default_rng(8).integers(-128, 128, (4, 4, 3, 3)).astype(np.int8)
    weights[1, 0, 0, 0] = -128
    behind = [node("BatchNormalization", "y", "factor", "zero", "zero", "one", "out")]
    data = quantized_layer(weights, np.full(4, 0.01, np.float32), behind, axis=0)
    found, wanted, graph = both(data, (1, 4, 5, 5))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert products(graph) == [("int8", "float32")]
    assert [op.kind for op in graph.ops].count("affine") == 1


def test_scales_of_blocks_are_not_those_of_outputs() -> None:
    """As many scales as outputs, each for four weights of one input."""
    chance = np.random.default_rng(9)
    weights, scales = chance.integers(-127, 128, (4, 16)).astype(np.int8), chance.uniform(0.001, 0.02, (4, 4))
    data = quantized_layer(weights, scales.astype(np.float32), [node("Relu", "y", "out")], 21, axis=1, block_size=4)
    found, wanted, graph = both(data, (1, 4))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert products(graph) == [("float32", "float32")]
    assert graph.notes == (among_integers(f"its weights have scales of blocks. {BY_CHANNEL}", ["y"]),)


def test_a_note_says_why_weights_are_no_bytes() -> None:
    weights = np.random.default_rng(10).integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    data = quantized_layer(weights, np.full(4, 0.01, np.float32), [node("Relu", "y", "out")], axis=1)
    (note,) = both(data, (1, 4, 5, 5))[2].notes
    assert note == among_integers(f"its weights have scales along axis 1. {BY_CHANNEL}", ["y"])


def test_one_note_names_all_layers_that_one_cause_keeps_in_floats() -> None:
    assembly = Assembly("net")
    for name in "abcdefghia":
        assembly.in_floats(name, "its weights have a zero point.")
    assembly.in_floats("a", "its alpha is -1.")
    several, one = assembly.finish([]).notes
    assert several.startswith("each of the layers 'a', 'b', 'c', ")
    end = "'h' and 1 more is computed in floats, although its neighbours are quantized: its weights have a zero point."
    assert several.endswith(end)
    assert one == "layer 'a' is computed in floats, although its neighbours are quantized: its alpha is -1."


def test_a_cast_without_a_type_is_refused(tmp_path: Path) -> None:
    damaged = onnx.ModelProto.FromString(dynamic(DYNAMIC["a row"], "s8", False, tmp_path))
    (cast,) = [each for each in damaged.graph.node if each.op_type == "Cast"]
    del cast.attribute[:]
    with pytest.raises(ModelError, match="Cast"):
        load_bytes(bytes(damaged.SerializeToString()), "net")

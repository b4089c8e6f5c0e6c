"""Reading `.tflite` files made here, without TensorFlow; `test_tflite_zoo.py` holds them against TFLite itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli, passes
from nnbuild.base.errors import ModelError, ToolMissing, UsageError
from nnbuild.frontend import load
from nnbuild.frontend.other_arithmetic import DYNAMIC_RANGE, EXPANDED
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Graph
from nnbuild.numeric.elementwise import rescale, rescale_multiplier
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.drawn import drawn
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.fuzz.tflite_seeds import SEEDS, numbers, one, retyped, tensor
from tests.fuzz.tflite_selection_seeds import CHOOSING
from tests.support.many import run_many
from tests.support.quantized import full_range


def imported(file: File, folder: Path) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return load(path)


def samples(graph: Graph, count: int, seed: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)
    return {name: drawn(graph, name, chance, count) for name in graph.inputs}


@pytest.mark.parametrize("name", SEEDS)
def test_every_operator_is_read_and_planned(name: str, tmp_path: Path) -> None:
    graph = imported(SEEDS[name], tmp_path)
    plan = make_plan(passes.run(graph), "net", Target())
    assert plan.steps or any(kind in name for kind in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE"))
    assert [graph.tensors[n].name for n in graph.inputs] == [SEEDS[name].tensors[i].name for i in SEEDS[name].inputs]
    assert [graph.tensors[n].layer for n in graph.outputs] == [SEEDS[name].tensors[i].name for i in SEEDS[name].outputs]


@pytest.mark.slow
def test_kernels_of_its_own_equal_the_reference(tmp_path: Path) -> None:
    kinds = (
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "SQUARED_DIFFERENCE",
        "RSQRT-int8",
        "RESIZE_BILINEAR",
        "MIRROR_PAD",
        "QUANTIZE",
    )
    kinds += ("FULLY_CONNECTED",)  # with a zero point of its weights
    files = [SEEDS[name] for name in SEEDS if name.startswith(kinds)]
    files += [file for name, file in SEEDS.items() if name in CHOOSING]
    corners = [f.with_operator(0, values={}) for f in files if f.operators[0].kind == "RESIZE_BILINEAR"]
    graphs = [passes.run(imported(file, tmp_path)) for file in (*files, *corners)]
    runs = [(graph, samples(graph, 4, seed=i)) for i, graph in enumerate(graphs)]
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, flags=["-O0"]), strict=True):
        wanted = interpret.run(graph, inputs)
        for name in graph.outputs:
            if graph.tensors[name].quant is None:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(found[name], wanted[name])


def test_scales_and_zero_points_are_those_of_the_file(tmp_path: Path) -> None:
    file = SEEDS["CONV_2D-int8"]
    graph = imported(file, tmp_path)
    (op,) = graph.ops
    for name, stored in ((graph.inputs[0], file.tensors[0]), (graph.outputs[0], file.tensors[3])):
        quant = graph.tensors[name].quant
        assert quant is not None
        assert quant.scale == float(np.float32(stored.scales[0]))
        assert quant.zero_point == stored.zeros[0]
    kernel = graph.constants[op.constants["kernel"]]
    assert kernel.quant is not None
    assert kernel.quant.scales == tuple(float(np.float32(s)) for s in file.tensors[1].scales)
    np.testing.assert_array_equal(kernel.data, np.asarray(file.tensors[1].data).transpose(1, 2, 3, 0))


def test_paddings_and_strides(tmp_path: Path) -> None:
    conv = imported(SEEDS["CONV_2D-int8"], tmp_path).ops[0].attributes
    assert isinstance(conv, Conv2D)
    assert (conv.strides, conv.padding, conv.groups, conv.clamp.low) == ((1, 2), ((1, 1), (1, 1)), 2, 0.0)
    depthwise = imported(SEEDS["DEPTHWISE_CONV_2D-int16"], tmp_path).ops[0].attributes
    assert isinstance(depthwise, DepthwiseConv2D)
    assert depthwise.padding == ((0, 0), (0, 0))
    back = imported(SEEDS["TRANSPOSE_CONV-float32"], tmp_path).ops[0].attributes
    assert isinstance(back, Conv2DTranspose)
    assert (back.size, back.crop) == ((12, 10), (0, 0))


def test_pads_become_part_of_a_convolution_that_has_their_scale(tmp_path: Path) -> None:
    conv = SEEDS["CONV_2D-int8"]
    padded = replace(conv.tensors[0], name="padded", shape=(1, 8, 6, 4))
    amounts = numbers("amounts", [[0, 0], [1, 1], [0, 1], [0, 0]])
    out = replace(conv.tensors[3], shape=(1, 6, 2, 4))
    valid = {**conv.operators[0].values, "Padding": 1}
    operators = [O("PAD", [0, 4], [5]), replace(conv.operators[0], inputs=[5, 1, 2], values=valid)]
    graph = imported(File([*conv.tensors[:3], out, amounts, padded], operators, [0], [3]), tmp_path)
    folded = passes.run(graph)
    assert [op.kind for op in graph.ops] == ["pad", "conv2d"]
    assert [op.kind for op in folded.ops] == ["conv2d"]
    inputs = full_range(graph, 3, seed=2)
    (name,) = graph.outputs
    np.testing.assert_array_equal(interpret.run(folded, inputs)[name], interpret.run(graph, inputs)[name])


def test_float_islands_are_mixed_precision(tmp_path: Path) -> None:
    graph = imported(SEEDS["QUANTIZE-mixed"], tmp_path)
    assert [op.kind for op in graph.ops] == ["convert", "activation", "convert", "activation", "convert"]
    assert {tensor.dtype for tensor in graph.tensors.values()} == {"float32", "int8"}


def test_half_precision_weights_become_floats(tmp_path: Path) -> None:
    file = SEEDS["DEQUANTIZE-half"]
    graph = imported(file, tmp_path)
    (kernel,) = graph.constants.values()
    np.testing.assert_array_equal(kernel.data, np.asarray(file.tensors[1].data).astype(np.float32).T)


def test_eight_bit_weights_of_a_float_layer_become_floats(tmp_path: Path) -> None:
    file = SEEDS["FULLY_CONNECTED-float32"]
    stored = np.arange(-30, 30).reshape(5, 12).astype(np.int8)
    graph = imported(file.with_tensor(1, dtype="int8", data=stored, scales=(0.5,), zeros=(2,)), tmp_path)
    assert graph.unlike == DYNAMIC_RANGE and not imported(file, tmp_path).unlike
    kernel = graph.constants[graph.ops[-1].constants["kernel"]]
    np.testing.assert_array_equal(kernel.data, (stored.T - 2.0) * 0.5)
    assert graph.notes == (EXPANDED,)


def test_a_saved_batch_is_dropped_with_a_note(tmp_path: Path) -> None:
    graph = imported(one("RELU", [tensor("x", (3, 4), "int8")], tensor("out", (3, 4), "int8")), tmp_path)
    assert graph.tensors[graph.inputs[0]].shape == (4,)
    assert graph.notes == ("The saved batch size of 3 is ignored: the compiled model computes one sample at a time.",)


def test_an_output_that_is_the_input_gets_memory_of_its_own(tmp_path: Path) -> None:
    graph = imported(File([tensor("x", (1, 4), "int8")], [], [0], [0]), tmp_path)
    assert graph.inputs != graph.outputs
    x = full_range(graph, 2, seed=1)
    np.testing.assert_array_equal(interpret.run(graph, x)[graph.outputs[0]], x["x"])


def change_tensor(seed: str, index: int, **changes: object) -> Callable[[], File]:
    return lambda: SEEDS[seed].with_tensor(index, **changes)


def change_operator(seed: str, **changes: object) -> Callable[[], File]:
    return lambda: SEEDS[seed].with_operator(0, **changes)


def with_condition(kind: str) -> File:
    """A loop with an operator that gives no truth value."""
    whole = SEEDS["WHILE-rnn-masked-float32"]
    condition, body = whole.others
    return replace(whole, others=[condition.with_operator(0, kind=kind, options="NONE", values={}), body])


AGAIN = "Convert the model again, or give the original .h5 or .keras file."
BROKEN = "The file is damaged; convert the model again."
CALIBRATE = "Calibrate the model with samples that make its tensors vary, and convert it again."

REFUSED: dict[str, tuple[Callable[[], File], str]] = {
    "scale of nothing": (
        change_tensor("RELU-int8", 0, scales=(0.0,)),
        f"tensor 'x': its scale is 0, outside 2^-28 to 2^28. {CALIBRATE}",
    ),
    "negative scale": (change_tensor("RELU-int8", 0, scales=(-1.0,)), f"tensor 'x': its scale is -1. {BROKEN}"),
    "scale of no number": (
        change_tensor("RELU-int8", 1, scales=(float("nan"),)),
        f"tensor 'out': its scale is nan. {BROKEN}",
    ),
    "no scale": (
        change_tensor("RELU-int8", 0, scales=()),
        f"tensor 'x': it is of type int8, but has no scale. {AGAIN}",
    ),
    "many scales": (
        change_tensor("RELU-int8", 0, scales=(0.1, 0.2), zeros=(0, 0)),
        f"tensor 'x': it has 2 scales, but only weights may have several. {BROKEN}",
    ),
    "zero point": (
        change_tensor("RELU-int8", 0, zeros=(128,)),
        f"tensor 'x': its zero point is 128, which int8 tensors cannot have. {BROKEN}",
    ),
    "zero point in 16 bits": (
        change_tensor("RELU-int16", 0, zeros=(1,)),
        f"tensor 'x': its zero point is 1, which int16 tensors cannot have. {BROKEN}",
    ),
    "scale of a wide softmax": (
        change_tensor("SOFTMAX-int16", 0, scales=(10.0,)),
        "operator 0 (SOFTMAX) for 'out': the scale of its input is 10, and must be below 2. Convert the model with "
        "representative samples, or normalize before it: its values lie too far from zero.",
    ),
    "scale of a narrow softmax": (
        change_tensor("SOFTMAX-int8", 0, scales=(7e-9,)),
        f"operator 0 (SOFTMAX) for 'out': the scale of its input is 7e-09, below 2^-26. {CALIBRATE}",
    ),
    "scales far apart": (
        lambda: SEEDS["ADD-int8"].with_tensor(0, scales=(1000.0,)).with_tensor(2, scales=(1e-8,)),
        "operator 0 (ADD) for 'out': its scales are too far apart: sums would be scaled by 2e+11, and 1.04858e+06 "
        f"is the limit. {CALIBRATE}",
    ),
    "channel scales": (
        change_tensor("CONV_2D-int8", 1, scales=(0.1, 0.2), zeros=(0, 0)),
        f"tensor 'w': it has 2 scales for 4 output channels. {BROKEN}",
    ),
    "weights with a zero point": (
        change_tensor("CONV_2D-int8", 1, zeros=(0, 5, 0, 0)),
        f"tensor 'w': its zero point is 5, but weights must have 0. {AGAIN}",
    ),
    "short data": (
        change_tensor("CONV_2D-int8", 1, data=np.zeros(5, np.int8)),
        f"tensor 'w': it holds 5 bytes, which is not the size of int8 [4, 3, 3, 2]. {BROKEN}",
    ),
    "bias type": (
        change_tensor("CONV_2D-int16", 2, dtype="int32", data=np.zeros(4, np.int32)),
        "operator 0 (CONV_2D) for 'out': its bias is int32; int16 layers are supported with int64 only. " + AGAIN,
    ),
    "large sums": (
        change_tensor("CONV_2D-int8", 2, data=np.full(4, 2**31 - 1, np.int32)),
        "operator 0 (CONV_2D) for 'out': its sums can reach 2,147,829,427, above the limit of 2,147,483,648: "
        "the bias of channel 0 is 2147483647. The channel's weights are nearly zero and their scale is too "
        "small for its bias, which some quantizers then clip. Make these weights zero or their scale larger and "
        "quantize again, or give the model in floats and --quantize int8.",
    ),
    "weights that are not numbers": (
        change_tensor("FULLY_CONNECTED-float32", 1, data=np.full((5, 12), np.nan, np.float32)),
        "tensor 'w': it holds values that are not numbers (NaN or infinity). The training has diverged; train again, "
        "or convert an earlier state of the model.",
    ),
    "shape": (
        change_tensor("CONV_2D-int8", 3, shape=(1, 6, 5, 4)),
        f"operator 0 (CONV_2D) for 'out': the file says that its output is [6, 5, 4], but [6, 3, 4] is what its "
        f"inputs give. {BROKEN}",
    ),
    "dynamic shape": (
        change_tensor("RELU-int8", 0, shape=(1, -1, 5, 4)),
        "tensor 'x': its shape is [1, -1, 5, 4], which nnbuild does not support. Convert the model with fixed input "
        "shapes of at most 8 axes.",
    ),
    "large shape": (
        change_tensor("RELU-int8", 0, shape=(1, 2**20, 2**20, 4)),
        "tensor 'x': its shape [1, 1048576, 1048576, 4] is too large. No microcontroller or PC program of a sensible "
        "size can hold it; use a smaller model.",
    ),
    "type": (
        change_tensor("RELU-int8", 0, dtype="uint8"),
        "operator 0 (RELU) for 'out': its input 'x' is uint8; nnbuild supports that only for model "
        "inputs and outputs. Convert the model again: converters since 2019 use int8.",
    ),
    "missing buffer": (
        change_tensor("CONV_2D-int8", 1, buffer=77),
        f"tensor 'w': its buffer does not exist. {BROKEN}",
    ),
    "missing tensor": (
        change_operator("RELU-int8", inputs=[9]),
        f"operator 0 (RELU): it names a tensor that does not exist. {BROKEN}",
    ),
    "missing input": (
        change_operator("RELU-int8", inputs=[]),
        f"operator 0 (RELU) for 'out': its input 0 is missing. {BROKEN}",
    ),
    "order": (
        change_operator("RELU-int8", inputs=[1]),
        f"operator 0 (RELU) for 'out': its input 'out' is not computed by an earlier operator. {AGAIN}",
    ),
    "weights at run time": (
        change_tensor("CONV_2D-int8", 1, data=None),
        "operator 0 (CONV_2D) for 'out': its input 'w' is computed at run time, but nnbuild accepts only "
        f"a constant there. {AGAIN}",
    ),
    "other options": (
        change_operator("CONV_2D-int8", options="Pool2DOptions", values={}),
        f"operator 0 (CONV_2D) for 'out': its options are Pool2DOptions, not Conv2DOptions. {BROKEN}",
    ),
    "stride": (
        change_operator("CONV_2D-int8", values={"StrideH": 0, "StrideW": 1}),
        f"operator 0 (CONV_2D) for 'out': its StrideH and StrideW are 0 and 1. {BROKEN}",
    ),
    "activation": (
        change_operator("ADD-int8", values={"FusedActivationFunction": 4}),
        f"operator 0 (ADD) for 'out': its fused activation is number 4, which nnbuild does not support. {AGAIN}",
    ),
    "beta": (
        change_operator("SOFTMAX-int8", values={"Beta": 2.0}),
        "operator 0 (SOFTMAX) for 'out': its beta is 2, and nnbuild supports only 1. Scale its input instead.",
    ),
    "scale of softmax": (
        change_tensor("SOFTMAX-int8", 1, scales=(0.1,)),
        f"operator 0 (SOFTMAX) for 'out': its output has the scale 0.1 and the zero point -128. {BROKEN}",
    ),
    "scale of a log-softmax": (
        change_tensor("LOG_SOFTMAX-int8", 1, scales=(0.1,)),
        f"operator 0 (LOG_SOFTMAX) for 'out': its output has the scale 0.1 and the zero point 127. {BROKEN}",
    ),
    "log-softmax of words": (
        lambda: retyped(SEEDS["LOG_SOFTMAX-int8"], "int8", "int16"),
        "operator 0 (LOG_SOFTMAX) for 'out': nnbuild supports it in int8 and float32, as TFLite does. Convert it to "
        "float32.",
    ),
    "scale of products": (
        change_tensor("REDUCE_PROD-int8", 0, scales=(2.0**20,)),
        f"operator 0 (REDUCE_PROD) for 'out': its scales are too far apart: sums would be scaled by 1.71e+06, and "
        f"16384 is the limit. {CALIBRATE}",
    ),
    "corners": (
        change_operator("RESIZE_BILINEAR-int8", values={"AlignCorners": True, "HalfPixelCenters": True}),
        f"operator 0 (RESIZE_BILINEAR) for 'out': it sets both align_corners and half_pixel_centers. {AGAIN}",
    ),
    "scale of a move": (
        change_tensor("TRANSPOSE-int8", 2, scales=(0.3,)),
        f"operator 0 (TRANSPOSE) for 'out': its input 'x' and its output have different scales or zero points. {AGAIN}",
    ),
    "float only": (
        change_operator("RELU-int8", kind="SIN"),
        "operator 0 (SIN) for 'out': nnbuild supports SIN only in float32. Convert it to float32.",
    ),
    "loop": (
        change_operator("RELU-int8", kind="WHILE"),
        f"operator 0 (WHILE) for 'out': it does not name its subgraphs. {BROKEN}",
    ),
    "results of a loop": (
        lambda: SEEDS["WHILE-bounded-float32"].with_operator(1, outputs=[8, 6, 9, 7, 10]),
        f"operator 1 (LOOP_OF_CELL) for 'after state': [4] cannot be reshaped to its output [1]. {BROKEN}",
    ),
    "condition of a loop": (
        lambda: with_condition("PACK"),
        "operator 3 (WHILE) for 'after count': its number of steps depends on values that are computed at run time. "
        "Give the .h5 or .keras file instead, or build the recurrent layer with unroll=True and convert again.",
    ),
    "loop of TensorFlow": (
        change_operator("RELU-int8", kind="CUSTOM", custom="FlexTensorListReserve"),
        "operator 0 (CUSTOM FlexTensorListReserve) for 'out': nnbuild does not support CUSTOM FlexTensorListReserve, "
        "which converters generate from recurrent layers with a state. Give the .h5 or .keras file instead, or build "
        "the recurrent layer with unroll=True and convert again.",
    ),
    "variables": (
        change_operator("RELU-int8", kind="CALL_ONCE", inputs=[], outputs=[]),
        f"operator 0 (CALL_ONCE): it does not name the subgraph that it calls. {BROKEN}",
    ),
    "custom": (
        change_operator("RELU-int8", kind="CUSTOM", custom="FlexErf"),
        "operator 0 (CUSTOM FlexErf) for 'out': FlexErf is an operator of TensorFlow itself, which TFLite does not "
        "have. Give the .h5 or .keras file instead, or convert with TFLITE_BUILTINS alone.",
    ),
    "custom of one's own": (
        change_operator("RELU-int8", kind="CUSTOM", custom="Mine"),
        "operator 0 (CUSTOM Mine) for 'out': it is not a standard TFLite operator, so its meaning is unknown. "
        "Convert the model without custom operators.",
    ),
    "unknown": (
        change_operator("RELU-int8", kind="UNIQUE"),
        "operator 0 (UNIQUE) for 'out': nnbuild does not support UNIQUE. Replace the layer, or give the .h5 or "
        ".keras file if nnbuild can read it.",
    ),
    "peepholes": (
        lambda: SEEDS["UNIDIRECTIONAL_SEQUENCE_LSTM-int8"].with_operator(
            0, inputs=[*range(9), 1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1]
        ),
        "operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM) for 'out': it has peepholes, a projection or a normalization "
        "inside. Use a plain LSTM layer.",
    ),
    "cell scale": (
        change_tensor("UNIDIRECTIONAL_SEQUENCE_LSTM-int8", 14, scales=(0.3,)),
        f"tensor 'cell': its scale is 0.3, not a power of two from 2^-15 to 2^-9. {AGAIN}",
    ),
    "mixed samples": (
        lambda: one(
            "REDUCE_MAX", [tensor("x", (3, 4), "int8"), numbers("axes", [0])], tensor("out", (3, 4), "int8"), "NONE"
        ),
        "operator 0 (REDUCE_MAX) for 'out': it works along the batch axis, so it mixes samples. Convert the model with "
        "a batch size of 1.",
    ),
    "other batch": (
        lambda: one("RESHAPE", [tensor("x", (3, 4), "int8")], tensor("out", (2, 6), "int8")),
        "tensor 'out': its shape [2, 6] does not start with the batch of 3, so the model mixes samples. Convert the "
        "model with a batch size of 1.",
    ),
    "no outputs": (lambda: replace(SEEDS["RELU-int8"], outputs=[]), f"net.tflite: it has no outputs. {BROKEN}"),
    "constant input": (
        lambda: replace(SEEDS["PRELU-int8"], inputs=[1]),
        f"net.tflite: its input 'a' is listed twice, or is a constant. {BROKEN}",
    ),
    "two constants": (
        lambda: File(
            [numbers("a", [1, 2]), tensor("x", (1, 2), "int32"), tensor("y", (1, 2), "int32")],
            [O("BITWISE_XOR", [0, 0], [2], "BitwiseXorOptions")],
            [1],
            [2],
        ),
        "operator 0 (BITWISE_XOR) for 'y': both of its operands are constants, which the file should hold combined. "
        "Check the operator's options and shapes; if other programs run this model, please report it.",
    ),
    "shape in bytes": (
        lambda: File([tensor("x", (1, 4), "float32"), T("n", (2,), "int8", ())], [O("SHAPE", [0], [1])], [0], [1]),
        f"operator 0 (SHAPE) for 'n': its output is of type int8. {BROKEN}",
    ),
    "matrix of one axis": (
        lambda: one(
            "BATCH_MATMUL",
            [tensor("x", (1, 3, 4), "float32"), T("w", (4,), "float32", data=np.zeros(4, np.float32))],
            tensor("y", (1, 3, 4), "float32"),
            "BatchMatMulOptions",
        ),
        f"operator 0 (BATCH_MATMUL) for 'y': its constant has the shape [4]. {BROKEN}",
    ),
    "truth of sums": (
        change_tensor("TRANSPOSE_CONV-int8", 3, dtype="bool"),
        f"operator 0 (TRANSPOSE_CONV) for 'out': it computes bool of integers. {BROKEN}",
    ),
    "output of nobody": (
        lambda: replace(SEEDS["PRELU-int8"], outputs=[1]),
        f"net.tflite: no operator computes its output 'a'. {BROKEN}",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    make, text = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        imported(make(), tmp_path)
    assert str(caught.value) == text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda data: data[:8], f"net.tflite: the model lies outside the file. {BROKEN}"),
        (lambda data: data[: len(data) // 2], "lies outside the file. " + BROKEN),
        (lambda data: b"\xff\xff\xff\x7f" + data[4:], f"net.tflite: the model lies outside the file. {BROKEN}"),
    ],
)
def test_a_damaged_file_is_refused(spoil: Callable[[bytes], bytes], text: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(spoil(to_bytes(SEEDS["CONV_2D-int8"])))
    with pytest.raises(ModelError) as caught:
        load(path)
    assert str(caught.value).endswith(text)


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(to_bytes(SEEDS["RELU-int8"]))
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(ToolMissing) as caught:
        load(path)
    assert str(caught.value) == (
        "the package 'tflite': it is needed to read .tflite files, and is not installed. pip install nnbuild[tflite]"
    )
    assert cli.main(["inspect", str(path)]) == 3


def test_a_quantized_file_refuses_to_be_quantized(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(to_bytes(SEEDS["RELU-int8"]))
    with pytest.raises(UsageError) as caught:
        compile_model(Options(path, quantize="int8"))
    assert str(caught.value) == (
        "--quantize int8: this model is already quantized. Leave --quantize out, or give a float model."
    )


def test_nothing_is_written_for_a_refused_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(to_bytes(SEEDS["RELU-int8"].with_operator(0, kind="TOPK_V2")))
    assert cli.main(["compile", str(path), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.startswith("nnbuild: operator 0 (TOPK_V2) for 'out': ")


@pytest.mark.slow
def test_the_commands_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, x = tmp_path / "net.tflite", tmp_path / "x.npz"
    path.write_bytes(to_bytes(SEEDS["FULLY_CONNECTED-int8"]))
    np.savez(x, x=np.random.default_rng(1).normal(size=(5, 3, 4)).astype(np.float32))
    assert cli.main(["inspect", str(path)]) == 0
    assert "input x: int8 [3, 4]" in capsys.readouterr().out
    assert cli.main(["check", str(path), "--inputs", str(x), "--layers"]) == 0
    assert cli.main(["run", str(path), "--inputs", str(x), "--outputs", str(tmp_path / "y.npz")]) == 0
    with np.load(x) as given, np.load(tmp_path / "y.npz") as found:
        graph = load(path)
        (out,) = graph.outputs
        wanted = interpret.run(graph, {"x": given["x"]})[out]
        np.testing.assert_array_equal(found["q"], wanted)
        np.testing.assert_array_equal(found["y"], wanted.astype(np.float32) * np.float32(2.0) - np.float32(6.0))


def test_a_tensor_without_a_name_has_one(tmp_path: Path) -> None:
    graph = imported(File([T("", (1, 4)), T("", (1, 4))], [O("RELU", [0], [1])], [0], [1]), tmp_path)
    assert (graph.inputs, graph.outputs) == (("tensor 0",), ("tensor 1",))


def test_reversed_integers_of_another_scale_are_converted(tmp_path: Path) -> None:
    """As the converter writes a flip behind a sigmoid, whose scale is fixed."""
    ends = [T("x", (1, 4), "int8", (1 / 256,), (-128,)), T("y", (1, 4), "int8", (1 / 512,), (-128,))]
    axes = T("axes", (1,), "int32", (), (), data=np.array([1], np.int32))
    path = tmp_path / "flip.tflite"
    path.write_bytes(to_bytes(File([*ends, axes], [O("REVERSE_V2", [0, 2], [1])], [0], [1])))
    graph = passes.run(load(path))
    assert "TFLite copies them as they are" in graph.unlike
    found = interpret.run(graph, {"x": np.array([[-128, -100, -70, -64]], np.int8)})
    assert found[graph.outputs[0]].tolist() == [[0, -12, -72, -128]]


def test_constants_stand_beside_inputs_of_raw_bytes(tmp_path: Path) -> None:
    """A class token in front of a sequence."""
    form = ("int8", (0.5,), (3,))
    tensors = [
        T("x", (1, 4), "uint8", (0.5,), (131,)),
        T("q", (1, 4), *form),
        T("token", (1, 2), *form, data=np.array([[7, -9]], np.int8)),
        T("y", (1, 6), *form),
    ]
    joined = O("CONCATENATION", [2, 1], [3], "ConcatenationOptions", {"Axis": 1})
    path = tmp_path / "token.tflite"
    path.write_bytes(to_bytes(File(tensors, [O("QUANTIZE", [0], [1]), joined], [0], [3])))
    graph = passes.run(load(path))
    found = interpret.run(graph, {"x": np.array([[0, 100, 128, 255]], np.uint8)})
    assert found[graph.outputs[0]].tolist() == [[7, -9, -128, -28, 0, 127]]


@pytest.mark.parametrize(
    ("before", "after"), [("int8", "int8"), ("int16", "int16"), ("uint8", "int8"), ("int16", "int8")]
)
def test_a_constant_is_rescaled_as_it_would_be_at_run_time(before: str, after: str, tmp_path: Path) -> None:
    zeros = {"int8": -7, "int16": 0, "uint8": 120}
    values = np.linspace(*{"int8": (-128, 127), "int16": (-32768, 32767), "uint8": (0, 255)}[before], 256).astype(
        before
    )
    ratio = 0.5 if before != "int16" or after == "int16" else 0.002
    held = T("held", (1, 256), before, (0.01,), (zeros[before],), data=values[None])
    tensors = [held, T("made", (1, 256), after, (0.01 / ratio,), (zeros[after],))]
    tensors += [T("x", (1, 2), after, (0.01 / ratio,), (zeros[after],))]
    tensors += [T("y", (1, 258), after, (0.01 / ratio,), (zeros[after],))]
    joined = O("CONCATENATION", [2, 1], [3], "ConcatenationOptions", {"Axis": 1})
    graph = imported(File(tensors, [O("QUANTIZE", [0], [1]), joined], [2], [3]), tmp_path)
    found = interpret.run(graph, {"x": np.zeros((1, 2), after)})[graph.outputs[0]][0, 2:]
    scale = rescale_multiplier(*(np.float32(each).item() for each in (0.01, 0.01 / ratio)))
    low, high = np.iinfo(after).min, np.iinfo(after).max
    wanted = np.clip(rescale(values, zeros[before], zeros[after], scale), low, high)
    assert found.tolist() == wanted.tolist()
    assert len(set(found.tolist())) > 100


def test_a_loop_is_not_taken_for_one_without_its_bound(tmp_path: Path) -> None:
    """Usual rows never reach it, but others may."""
    (rnn,) = [op for op in imported(SEEDS["WHILE-bounded-float32"], tmp_path).ops if op.kind == "simple_rnn"]
    assert rnn.attributes.activation == ("clamp", (0.0, 6.0))


@pytest.mark.parametrize("name", ["WHILE-gru-rows-float32", "UNIDIRECTIONAL_SEQUENCE_LSTM-float32"])
def test_recurrent_weights_of_dynamic_range_are_told(name: str, tmp_path: Path) -> None:
    assert not imported(SEEDS[name], tmp_path).unlike
    graph = imported(_with_bytes(SEEDS[name]), tmp_path)
    assert len({op.kind for op in graph.ops} & {"gru", "lstm"}) == 1
    assert graph.unlike == DYNAMIC_RANGE
    assert EXPANDED in graph.notes


def _with_bytes(file: File) -> File:
    """Weights of all recurrent products in 8 bits."""
    body = file.others[-1] if file.others else file
    products = [each for each in body.operators if each.kind in ("FULLY_CONNECTED", "UNIDIRECTIONAL_SEQUENCE_LSTM")]
    for place in {place for each in products for place in each.inputs[1:9] if place >= 0}:
        data = body.tensors[place].data
        if data is not None and np.ndim(data) == 2:
            stored = np.round(16 * np.asarray(data)).clip(-127, 127).astype(np.int8)
            body = body.with_tensor(place, dtype="int8", data=stored, scales=(1 / 16,), zeros=(0,))
    return replace(file, others=(*file.others[:-1], body)) if file.others else body

"""What a quantized file computes in floats between its conversions is computed on integers, to the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.convert import Convert

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle

MOVED = {"convert", "reshape", "transpose", "offset"}
IMAGE = (1, 4, 6, 6)
Node = tuple[str, list[str], dict[str, Any]]

CASES: dict[str, tuple[tuple[int, ...], list[Node]]] = {
    "mean": (IMAGE, [("ReduceMean", ["x"], {"axes": [2, 3], "keepdims": 0})]),
    "average pool": (IMAGE, [("AveragePool", ["x"], {"kernel_shape": [3, 3], "strides": [1, 2]})]),
    "normalization of a batch": (IMAGE, [("BatchNormalization", ["x", "four", "shift", "shift", "spread"], {})]),
    "bilinear": (IMAGE, [("Resize", ["x", "", "scales"], {"mode": "linear"})]),
    "nearest": (IMAGE, [("Resize", ["x", "", "scales"], {"mode": "nearest"})]),
    "odd sizes": (IMAGE, [("Resize", ["x", "", "", "sizes"], {"mode": "nearest"})]),
    "softmax": ((5, 9), [("Softmax", ["x"], {"axis": -1})]),
    "layer norm": ((5, 4), [("LayerNormalization", ["x", "four", "shift"], {"axis": -1})]),
    "norm, factor": ((5, 4), [("LayerNormalization", ["x", "four"], {}), ("Mul", ["$", "shift"], {})]),
    "length": ((5, 4), [("ReduceL2", ["x"], {"axes": [-1]}), ("Div", ["x", "$"], {})]),
    "product of two": ((6, 6), [("MatMul", ["x", "x"], {})]),
    "gelu's inside": ((5, 9), [("Div", ["x", "root"], {}), ("Erf", ["$"], {})]),
    "logarithm": ((5, 9), [("Relu", ["x"], {}), ("Log", ["$"], {})]),
    "padding": (IMAGE, [("Softmax", ["x"], {"axis": 1}), ("Pad", ["$", "around"], {})]),
    "a number": ((5, 9), [("Mul", ["x", "root"], {})]),
    "joined constant": ((5, 4), [("Concat", ["x", "rows"], {"axis": 0})]),
    "moves": (IMAGE, [("Transpose", ["x"], {"perm": [0, 2, 3, 1]}), ("Slice", ["$", "one", "nine", "one"], {})]),
}
HELD = {
    "four": np.array([0.5, -1.25, 1e-3, 3.0], np.float32),
    "shift": np.array([0.25, -0.5, 0.125, 0.0], np.float32),
    "spread": np.array([0.5, 2.0, 1.0, 0.1], np.float32),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "sizes": np.array([1, 4, 9, 5], np.int64),
    "root": np.array(np.sqrt(2), np.float32),
    "around": np.array([0, 0, 1, 1, 0, 0, 2, 0], np.int64),
    "rows": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4),
    "one": np.array([1], np.int64),
    "nine": np.array([9], np.int64),
}


def model(name: str, step: float) -> Any:
    """DequantizeLinear, the operators, QuantizeLinear with this step; readers of integers on both ends."""
    shape, operators = CASES[name]
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["given", "s", "z"], ["q"]),
        onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
    ]
    made = ""
    for number, (kind, names, options) in enumerate(operators):
        names = [made if each == "$" else each for each in names]
        made = f"made{number}"
        nodes.append(onnx.helper.make_node(kind, names, [made], **options))
    nodes.append(onnx.helper.make_node("QuantizeLinear", [made, "s_out", "z_out"], ["y"]))
    numbers = {"s": np.float32(0.031), "z": np.uint8(100), "s_out": np.float32(step), "z_out": np.uint8(90)}
    held = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in (HELD | numbers).items()]
    ends = [
        onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, shape),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, None),
    ]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], held)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


def compiled(whole: Any, folder: Path) -> Graph:
    onnx.save(whole, folder / "net.onnx")
    return nnbuild.compile(folder / "net.onnx").compiled.graph


def computed(whole: Any, x: Array) -> Array:
    """As the standard defines it: in floats between the conversions."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray([session.run(None, {"given": row})[0] for row in x])


@pytest.mark.parametrize("step", [0.031, 0.017])
@pytest.mark.parametrize("name", CASES)
def test_the_integers_are_those_of_the_file(name: str, step: float, tmp_path: Path) -> None:
    whole = model(name, step)
    graph = compiled(whole, tmp_path)
    first = graph.ops[0]
    assert isinstance(first.attributes, Convert) and first.inputs == graph.inputs
    assert all(graph.tensors[output].dtype != "float32" for op in graph.ops for output in op.outputs)
    x = np.random.default_rng(1).normal(size=(20, *CASES[name][0])).astype(np.float32)
    (end,) = graph.outputs
    found = interpret.run(graph, {"given": x.reshape(20, *graph.tensors["given"].shape)})[end].astype(np.int64)
    wanted = computed(whole, x).astype(np.int64) - (128 if graph.tensors[end].dtype == "int8" else 0)
    apart = np.abs(found.reshape(-1) - wanted.reshape(-1))
    assert apart.max() <= 1
    halves = step == 0.031 and name in ("bilinear", "average pool")
    assert (apart > 0).mean() < (0.15 if halves else 0.005)


def test_layers_that_stay_in_floats_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch's quantizer for x86 leaves convolutions whose results are added."""
    monkeypatch.setitem(HELD, "kernel", np.ones((4, 4, 1, 1), np.float32))
    layer: Node = ("Conv", ["x", "kernel"], {"name": "c"})
    monkeypatch.setitem(CASES, "sum", (IMAGE, [layer, ("Add", ["$", "x"], {})]))
    (note,) = compiled(model("sum", 0.031), tmp_path).notes
    assert note.startswith("computed in floats, which is slow on a microcontroller: 'c'. The file quantizes what they")
    monkeypatch.setitem(CASES, "sum", (IMAGE, [layer, ("Relu", ["$"], {})]))
    assert len(compiled(model("sum", 0.031), tmp_path).notes) == 1
    monkeypatch.setitem(CASES, "sum", (IMAGE, [("Relu", ["x"], {})]))
    assert compiled(model("sum", 0.031), tmp_path).notes == ()


def test_floats_that_somebody_reads_stay(tmp_path: Path) -> None:
    whole = model("softmax", 0.031)
    end = onnx.helper.make_tensor_value_info("made0", onnx.TensorProto.FLOAT, (5, 9))
    whole.graph.output.append(end)
    graph = compiled(whole, tmp_path)
    (softmax,) = [op for op in graph.ops if op.kind == "softmax"]
    assert graph.tensors[softmax.outputs[0]].dtype == "float32"


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resized_integers_are_joined(mode: str, tmp_path: Path) -> None:
    """Operators of integers keep their format through a Resize of the integers themselves."""
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["given", "s", "z"], ["q"]),
        onnx.helper.make_node("Resize", ["q", "", "scales"], ["r"], mode=mode),
        onnx.helper.make_node(
            "QLinearConcat", ["s", "z", "r", "s", "z", "r", "s", "z"], ["y"], domain="com.microsoft", axis=1
        ),
    ]
    numbers = {"s": np.float32(0.031), "z": np.uint8(100), "scales": HELD["scales"]}
    held = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in numbers.items()]
    ends = [
        onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, IMAGE),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, (1, 8, 12, 12)),
    ]
    sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    whole = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], held), opset_imports=sets, ir_version=8
    )
    graph = compiled(whole, tmp_path)
    assert {op.kind for op in graph.ops} - MOVED <= {"resize_bilinear", "repeat", "concatenate"}
    x = np.random.default_rng(1).normal(size=(4, *IMAGE)).astype(np.float32)
    found = interpret.run(graph, {"given": x.reshape(4, *IMAGE[1:])})[graph.outputs[0]].astype(np.int64)
    wanted = computed(whole, x).astype(np.int64) - (128 if graph.tensors[graph.outputs[0]].dtype == "int8" else 0)
    assert np.abs(found.reshape(-1) - wanted.reshape(-1)).max() <= (1 if mode == "linear" else 0)


@pytest.mark.parametrize("step", [1e-8, 1e7])
def test_scales_far_apart_stay_in_floats(step: float, tmp_path: Path) -> None:
    whole = model("softmax", step)
    graph = compiled(whole, tmp_path)
    assert any(graph.tensors[op.outputs[0]].dtype == "float32" for op in graph.ops)

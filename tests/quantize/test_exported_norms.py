"""Normalizations as PyTorch's exporters spell them: integers keep rows of every size, as the one operation does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nnbuild
from nnbuild.model.graph import Array
from nnbuild.ops import interpret

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.oracle

CENTRE = [("ReduceMean", "x", "mean"), ("Sub", "x", "mean", "c")]
LENGTH = [("Add", "v", "tiny", "e"), ("Sqrt", "e", "r")]
WHOLE = [("ReduceMean", "p", "v"), *LENGTH, ("Div", "c", "r", "out")]
FORMS = {
    "mean and variance": [
        *CENTRE,
        ("Pow", "c", "two", "p"),
        ("ReduceMean", "p", "v"),
        *LENGTH,
        ("Div", "c", "r", "out"),
    ],
    "by a product": [*CENTRE, ("Mul", "c", "c", "p"), *WHOLE],
    "root mean square": [
        *[("Pow", "x", "two", "p"), ("ReduceMean", "p", "v"), *LENGTH],
        *[("Div", "one", "r", "i"), ("Mul", "x", "i", "out")],
    ],
    "reciprocal": [
        *[("Mul", "x", "x", "p"), ("ReduceMean", "p", "v"), *LENGTH],
        *[("Reciprocal", "r", "i"), ("Mul", "i", "x", "out")],
    ],
    "length": [
        *[("ReduceL2", "x", "l"), ("Clip", "l", "tiny", "b"), ("Shape", "x", "s"), ("Expand", "b", "s", "w")],
        ("Div", "x", "w", "out"),
    ],
}


def exported(folder: Path, form: str) -> Path:
    nodes = [
        onnx.helper.make_node(kind, names[:-1], names[-1:], **({"axes": [-1]} if kind.startswith("Reduce") else {}))
        for kind, *names in FORMS[form]
    ]
    numbers = {"two": 2, "one": 1, "tiny": 1e-5}
    held = [onnx.numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (5, 8)) for name in ("x", "out")]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], held)
    file = folder / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), file)
    return file


def rows() -> Array:
    """Of sizes that differ thirtyfold."""
    chance = np.random.default_rng(5)
    x = chance.normal(size=(64, 5, 8)) * 30.0 ** chance.uniform(-1, 0, (64, 5, 1))
    return np.asarray(x, np.float32)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_size_keep_their_values(form: str, quantize: str, tmp_path: Path) -> None:
    file, x = exported(tmp_path, form), rows()
    floats = nnbuild.compile(file).compiled.graph
    whole = nnbuild.compile(file, quantize=quantize, calibrate={"x": x}, io="float").compiled.graph
    assert [op.kind for op in whole.ops if op.kind != "convert"] == ["layer_norm"]
    wanted, found = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in (floats, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < (0.12 if quantize == "int8" else 0.002)


def channels_first(folder: Path) -> Path:
    """Of the channels of an image, [channels, height, width], with a factor and a summand for each."""
    chance = np.random.default_rng(2)
    parts = [(kind, *names) for kind, *names in FORMS["mean and variance"]]
    parts = [(kind, *("conv" if name == "x" else name for name in names)) for kind, *names in parts]
    steps = [("Conv", "x", "kernel", "conv"), *parts[:-1]]
    steps += [("Div", "c", "r", "n"), ("Mul", "scale", "n", "m"), ("Add", "m", "shift", "out")]
    nodes = [
        onnx.helper.make_node(kind, names[:-1], names[-1:], **({"axes": [1]} if kind.startswith("Reduce") else {}))
        for kind, *names in steps
    ]
    held = {"two": 2, "tiny": 1e-5, "kernel": chance.normal(size=(6, 3, 1, 1))}
    held |= {"scale": chance.normal(size=(6, 1, 1)), "shift": chance.normal(size=(6, 1, 1))}
    constants = [onnx.numpy_helper.from_array(np.array(value, np.float32), name) for name, value in held.items()]
    shapes = {"x": (1, 3, 5, 4), "out": (1, 6, 5, 4)}
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    file = folder / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), file)
    return file


@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_channels_come_first_and_have_factors(quantize: str, tmp_path: Path) -> None:
    file, chance = channels_first(tmp_path), np.random.default_rng(6)
    x = (chance.normal(size=(64, 3, 5, 4)) * 30.0 ** chance.uniform(-1, 0, (64, 1, 5, 4))).astype(np.float32)
    floats = nnbuild.compile(file).compiled.graph
    whole = nnbuild.compile(file, quantize=quantize, calibrate={"x": x}, io="float").compiled.graph
    moving = {"convert", "reshape", "transpose"}
    assert [op.kind for op in whole.ops if op.kind not in moving] == ["conv2d", "layer_norm"]
    wanted, found = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in (floats, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < (0.12 if quantize == "int8" else 0.003)

"""Normalizations as PyTorch's exporters spell them: integers keep rows of every size, as the one operation does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.ops.binary import Binary

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


def saved(folder: Path, nodes: list[Any], held: Mapping[str, object], ends: list[Any], opset: int = 13) -> Path:
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    file = folder / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10), file)
    return file


def looked_up(folder: Path, form: str) -> Path:
    """Of the rows of a table that a sentence of shape [1, words] names, as language models begin."""
    chance = np.random.default_rng(4)
    table = chance.normal(size=(50, 32)) * np.logspace(-1.5, 0, 50)[:, None]
    nodes = [onnx.helper.make_node("Gather", ["table", "words"], ["x"])]
    nodes += [
        onnx.helper.make_node(kind, names[:-1], names[-1:], **({"axes": [-1]} if kind.startswith("Reduce") else {}))
        for kind, *names in (*FORMS[form], ("Mul", "out", "gain", "y"))
    ]
    held = {"table": table, "gain": chance.normal(1, 0.1, 32), "two": 2, "one": 1, "tiny": 1e-6}
    ends = [onnx.helper.make_tensor_value_info("words", onnx.TensorProto.INT64, (1, 8))]
    ends.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 8, 32)))
    return saved(folder, nodes, {name: np.asarray(value, np.float32) for name, value in held.items()}, ends)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "length"])
def test_rows_of_a_sentence(form: str, tmp_path: Path) -> None:
    file, words = looked_up(tmp_path, form), np.random.default_rng(1).integers(0, 50, (32, 8))
    floats = nnbuild.compile(file).compiled.graph
    given = {"words": words.astype(np.int32)}
    whole = nnbuild.compile(file, quantize="int8", calibrate=given, io="float").compiled.graph
    kinds = [op.kind for op in whole.ops]
    assert kinds[kinds.index("gather") :] == ["gather", "reshape", "layer_norm", "convert"]
    wanted, found = (interpret.run(graph, given)[graph.outputs[0]] for graph in (floats, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < 0.1


BEFORE = {"Conv": ["kernel"], "InstanceNormalization": ["scale", "shift"], "": []}
BY_CHANNEL = {
    "operator": [("LpNormalization", "c", "out")],
    "expanded": [
        *[("ReduceL2", "c", "l"), ("Clip", "l", "tiny", "b"), ("Shape", "c", "s"), ("Expand", "b", "s", "w")],
        ("Div", "c", "w", "out"),
    ],
    "centred": [
        (kind, *({"x": "c", "c": "d"}.get(name, name) for name in names)) for kind, *names in FORMS["mean and variance"]
    ],
}


def by_channel(folder: Path, form: str, first: str) -> Path:
    """Of the channels of an image, in the order in which the operation before stores them."""
    parts = [(first, "x", *BEFORE[first], "c")] if first else [("Relu", "x", "c")]
    nodes = [
        onnx.helper.make_node(
            *(kind, names[:-1], names[-1:]),
            **({"axes": [1]} if kind.startswith("Reduce") else {"axis": 1} if kind.startswith("Lp") else {}),
        )
        for kind, *names in (*parts, *BY_CHANNEL[form])
    ]
    chance = np.random.default_rng(7)
    held = {"kernel": chance.normal(size=(6, 6, 1, 1)), "scale": chance.normal(1, 0.1, 6), "two": 2, "tiny": 1e-6}
    held |= {"shift": chance.normal(0, 0.1, 6)}
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, 6, 5, 4)) for n in ("x", "out")]
    return saved(folder, nodes, {name: np.asarray(value, np.float32) for name, value in held.items()}, ends)


@pytest.mark.parametrize("first", BEFORE)
@pytest.mark.parametrize("form", BY_CHANNEL)
def test_vectors_along_channels(form: str, first: str, tmp_path: Path) -> None:
    file, chance = by_channel(tmp_path, form, first), np.random.default_rng(6)
    x = (chance.normal(size=(64, 6, 5, 4)) * 10.0 ** chance.uniform(-1, 0, (64, 1, 5, 4))).astype(np.float32)
    x[3, :, 2, 1] = 0
    floats = nnbuild.compile(file).compiled.graph
    whole = nnbuild.compile(file, quantize="int8", calibrate={"x": x}, io="float").compiled.graph
    kinds = {op.kind for op in whole.ops} - {"convert", "reshape", "transpose", "binary", "affine", "activation"}
    assert kinds == {"layer_norm"} | ({"conv2d"} if first == "Conv" else set())
    assert not any(getattr(op.attributes, "function", "") in ("square", "sqrt", "divide") for op in whole.ops)
    wanted, found = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in (floats, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < 0.12


def test_lengths_of_other_vectors_stay(tmp_path: Path) -> None:
    """Row i's length divides column i."""
    nodes = [
        onnx.helper.make_node("ReduceL2", ["x"], ["l"], axes=[-1], keepdims=0),
        onnx.helper.make_node("Add", ["l", "tiny"], ["b"]),
        onnx.helper.make_node("Div", ["x", "b"], ["out"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (8, 8)) for n in ("x", "out")]
    file, x = saved(tmp_path, nodes, {"tiny": np.float32(0.1)}, ends), np.random.default_rng(3).normal(size=(64, 8, 8))
    given = {"x": x.astype(np.float32)}
    whole = nnbuild.compile(file, quantize="int8", calibrate=given, io="float").compiled.graph
    assert "layer_norm" not in {op.kind for op in whole.ops}


@pytest.mark.parametrize("kind", ["InstanceNormalization", "GroupNormalization"])
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (2, 0), (1, 3), (2, 3)])
def test_ones_and_zeros_are_left_out(kind: str, scale: int, shift: int, tmp_path: Path) -> None:
    groups = {"num_groups": 6} if kind == "GroupNormalization" else {}
    nodes = [onnx.helper.make_node(kind, ["x", "scale", "shift"], ["out"], **groups)]
    held = {"scale": np.full(6, scale, np.float32), "shift": np.full(6, shift, np.float32)}
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, 6, 5, 4)) for n in ("x", "out")]
    graph = load(saved(tmp_path, nodes, held, ends, opset=21))
    assert [op.kind for op in graph.ops].count("affine") == ((scale, shift) != (1, 0))
    assert not any(isinstance(op.attributes, Binary) for op in graph.ops)
    x = np.random.default_rng(3).normal(size=(2, 6, 5, 4)).astype(np.float32)
    found = interpret.run(graph, {"x": x})["out"]
    plain = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, plain * scale + shift, rtol=1e-4, atol=1e-5)

"""Masks added to scores before a softmax: integers keep the scores' resolution, however deep the mask is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nnbuild
from nnbuild.model.graph import Array
from nnbuild.ops import interpret

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.oracle

LENGTH = 6
FORMS = {
    "selected": [("Cast", "m", "b"), ("Where", "b", "zero", "deep", "k")],
    "selected and moved": [
        *[("Cast", "m", "b"), ("Where", "b", "zero", "deep", "w")],
        *[("Unsqueeze", "w", "axis", "u"), ("Mul", "u", "half", "k")],
    ],
    "a factor": [("Cast", "m", "f"), ("Sub", "one", "f", "n"), ("Mul", "n", "deep", "k")],
    "of what is left out": [("Cast", "m", "f"), ("Mul", "f", "deep", "k")],
    "subtracted": [("Cast", "m", "f"), ("Sub", "one", "f", "n"), ("Mul", "n", "high", "k")],
    "inverted": [
        *[("Cast", "m", "f"), ("Sub", "one", "f", "n"), ("Cast", "n", "b"), ("Where", "b", "deep", "n", "k")],
    ],
    "of floats": [("Sub", "one", "m", "n"), ("Mul", "n", "deep", "k")],
    "of floats, subtracted": [("Sub", "one", "m", "n"), ("Mul", "n", "high", "k")],
    "of floats for what is left out": [("Mul", "m", "deep", "k")],
    "of floats, inverted": [("Sub", "one", "m", "n"), ("Cast", "n", "b"), ("Where", "b", "deep", "n", "k")],
}
"""How a mask is made of 1 for what is seen and 0 for what is not, or the other way around."""


def attention(folder: Path, form: str, deep: float) -> Path:
    """Rows that weigh each other twice, the second time with larger scores; a mask of both leaves some out."""
    to = {"b": onnx.TensorProto.BOOL, "f": onnx.TensorProto.FLOAT}
    joined = "Sub" if "subtracted" in form else "Add"
    nodes = [
        onnx.helper.make_node(kind, names[:-1], names[-1:], **({"to": to[names[-1]]} if kind == "Cast" else {}))
        for kind, *names in (
            *FORMS[form],
            *[("Transpose", "x", "t"), ("MatMul", "x", "t", "s"), (joined, "s", "k", "a"), ("Softmax", "a", "p")],
            *[("MatMul", "p", "x", "y"), ("Mul", "s", "three", "l"), (joined, "l", "k", "c"), ("Softmax", "c", "q")],
            *[("MatMul", "q", "y", "out")],
        )
    ]
    numbers = {"zero": 0, "deep": deep, "high": -deep, "one": 1, "half": 0.5, "three": 3}
    held = [onnx.numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()]
    held.append(onnx.numpy_helper.from_array(np.array([0], np.int64), "axis"))
    value = onnx.helper.make_tensor_value_info
    ends = [
        value("x", onnx.TensorProto.FLOAT, (LENGTH, 4)),
        value("m", onnx.TensorProto.FLOAT if "floats" in form else onnx.TensorProto.INT64, (LENGTH,)),
        value("out", onnx.TensorProto.FLOAT, (LENGTH, 4)),
    ]
    graph = onnx.helper.make_graph(nodes, "net", ends[:2], ends[2:], held)
    file = folder / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), file)
    return file


def samples(masked: bool, form: str = "a factor") -> dict[str, Array]:
    chance = np.random.default_rng(3)
    lengths = chance.integers(2, LENGTH, 40) if masked else np.full(40, LENGTH)
    x = chance.normal(size=(40, LENGTH, 4)).astype(np.float32)
    seen = np.arange(LENGTH) < lengths[:, None]
    mask = ~seen if "left out" in form else seen
    return {"x": x, "m": mask.astype(np.float32 if "floats" in form else np.int32)}


@pytest.mark.turns(3)
@pytest.mark.parametrize("deep", [-10000.0, -1e9, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("quantize", ["int8", "int16"])
@pytest.mark.parametrize("calibrated", ["with masks", "without"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_out_is_and_all_else_is_near(
    form: str, calibrated: str, quantize: str, deep: float, tmp_path: Path
) -> None:
    if "floats" in form and calibrated == "without":
        return  # then nothing tells what the input is
    file, given = attention(tmp_path, form, deep), samples(masked=True, form=form)
    calibrate = samples(masked=calibrated == "with masks", form=form)
    floats = nnbuild.compile(file).compiled.graph
    whole = nnbuild.compile(file, quantize=quantize, calibrate=calibrate, io="float").compiled.graph
    wanted, found = (interpret.run(graph, given)[graph.outputs[0]] for graph in (floats, whole))
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert error < (0.08 if quantize == "int8" else 0.005)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
@pytest.mark.parametrize("deep", [-30.0, -100.0, -10000.0, -1e9])
def test_constant_masks_are_no_deeper_than_a_softmax_sees(deep: float, quantize: str, tmp_path: Path) -> None:
    made, floats = onnx.helper, onnx.TensorProto.FLOAT
    ends = [made.make_tensor_value_info(name, floats, (2, LENGTH, LENGTH)) for name in ("x", "out")]
    nodes = [made.make_node("Add", ["x", "mask"], ["a"]), made.make_node("Softmax", ["a"], ["out"])]
    mask = np.triu(np.full((LENGTH, LENGTH), deep, np.float32), 1)
    graph = made.make_graph(nodes, "net", ends[:1], ends[1:], [onnx.numpy_helper.from_array(mask, "mask")])
    file = tmp_path / "net.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)], ir_version=8), file)
    x = np.random.default_rng(1).normal(scale=2.0, size=(20, 2, LENGTH, LENGTH)).astype(np.float32)
    floats_graph = nnbuild.compile(file).compiled.graph
    whole = nnbuild.compile(file, quantize=quantize, calibrate={"x": x}, io="float").compiled.graph
    wanted, found = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in (floats_graph, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < (0.06 if quantize == "int8" else 0.002)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_distances_are_no_masks(quantize: str, tmp_path: Path) -> None:
    """Scores may be computed as a sum of one part that is never positive, far from 0 in every place."""
    made, floats = onnx.helper, onnx.TensorProto.FLOAT
    ends = [made.make_tensor_value_info(name, floats, (LENGTH, 4)) for name in ("x", "out")]
    nodes = [
        made.make_node(kind, names[:-1], names[-1:])
        for kind, *names in (
            *[("Mul", "x", "x", "s"), ("Sub", "far", "s", "d"), ("Mul", "x", "half", "h"), ("Add", "h", "d", "a")],
            ("Softmax", "a", "out"),
        )
    ]
    numbers = {"far": -40.0, "half": 0.5}
    held = [onnx.numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()]
    graph = made.make_graph(nodes, "net", ends[:1], ends[1:], held)
    file = tmp_path / "net.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)], ir_version=8), file)
    x = samples(masked=False)["x"]
    whole = nnbuild.compile(file, quantize=quantize, calibrate={"x": x}, io="float").compiled.graph
    floats_graph = nnbuild.compile(file).compiled.graph
    wanted, found = (interpret.run(graph, {"x": x})[graph.outputs[0]] for graph in (floats_graph, whole))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < (0.12 if quantize == "int8" else 0.005)


@pytest.mark.parametrize("quantize", ["int8", "int16"])
@pytest.mark.parametrize("largest", [1, 0])
def test_the_first_of_a_ranking_keep_their_values(largest: int, quantize: str, tmp_path: Path) -> None:
    """What was picked is put out of the way, but no further than the next pick needs."""
    made, floats = onnx.helper, onnx.TensorProto.FLOAT
    ends = [made.make_tensor_value_info(*end) for end in (("x", floats, (1, 8)), ("v", floats, (1, 3)))]
    end = made.make_tensor_value_info("i", onnx.TensorProto.INT64, (1, 3))
    nodes = [made.make_node("TopK", ["x", "k"], ["v", "i"], axis=-1, largest=largest)]
    held = [onnx.numpy_helper.from_array(np.array([3], np.int64), "k")]
    graph = made.make_graph(nodes, "net", ends[:1], [ends[1], end], held)
    file = tmp_path / "net.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)], ir_version=8), file)
    x = np.random.default_rng(2).permuted(np.linspace(0, 1, 8, dtype=np.float32)[None].repeat(40, 0), axis=-1)
    whole = nnbuild.compile(file, quantize=quantize, calibrate={"x": x}, io="float").compiled.graph
    values, places = (interpret.run(whole, {"x": x})[name] for name in whole.outputs)
    order = np.argsort(-x if largest else x, axis=-1)[..., :3]
    np.testing.assert_array_equal(places.reshape(order.shape), order)
    assert np.abs(values.reshape(order.shape) - np.take_along_axis(x, order, -1)).max() < 0.005


@pytest.mark.parametrize("quantize", ["int8", "int16"])
@pytest.mark.parametrize("deep", [-10000.0, -1e9, -np.inf])
@pytest.mark.parametrize("end", ["Softmax", "ArgMax", "by an input"])
def test_classes_that_are_left_out(end: str, deep: float, quantize: str, tmp_path: Path) -> None:
    """By a constant, which is folded into the bias, or by an input of floats."""
    if end == "by an input" and np.isinf(deep):
        return  # 0 times infinity is no number
    made, floats = onnx.helper, onnx.TensorProto.FLOAT
    chance, count = np.random.default_rng(4), 8
    weights, left_out = chance.normal(size=(12, count)), np.where(np.arange(count) % 3 == 1, deep, 0.0)
    ends = [made.make_tensor_value_info("x", floats, (1, 12))]
    nodes = [made.make_node("MatMul", ["x", "w"], ["s"])]
    if end == "by an input":
        ends.append(made.make_tensor_value_info("m", floats, (1, count)))
        nodes += [made.make_node("Sub", ["m", "one"], ["n"]), made.make_node("Mul", ["n", "high"], ["mask"])]
    nodes += [made.make_node("Add", ["s", "mask"], ["a"])]
    nodes += [made.make_node("Softmax" if end == "Softmax" else "ArgMax", ["a"], ["out"], axis=1)]
    kind = (floats, (1, count)) if end == "Softmax" else (onnx.TensorProto.INT64, (1, 1))
    numbers = {"w": weights, "one": 1.0, "high": -deep, **({} if end == "by an input" else {"mask": left_out})}
    held = [onnx.numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()]
    graph = made.make_graph(nodes, "net", ends, [made.make_tensor_value_info("out", *kind)], held)
    file = tmp_path / "net.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)], ir_version=8), file)
    x = {"x": chance.normal(size=(200, 12)).astype(np.float32)}
    if end == "by an input":
        x["m"] = (chance.random((200, count)) < 0.6).astype(np.float32)
        x["m"][:, 0] = 1
    whole = nnbuild.compile(file, quantize=quantize, calibrate=x, io="float").compiled.graph
    exact = nnbuild.compile(file).compiled.graph
    wanted, found = (interpret.run(each, x)[each.outputs[0]] for each in (exact, whole))
    error = np.abs(found - wanted).max() if end == "Softmax" else np.mean(found != wanted)
    assert error < (0.06 if quantize == "int8" else 0.02)

"""What an `.onnx` file leaves open: batches, other axes, the order of images."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

from nnbuild import cli, compile, passes
from nnbuild.base.errors import ModelError, UsageError
from nnbuild.frontend import load
from nnbuild.frontend.import_options import ImportOptions
from nnbuild.model.samples import load_samples
from nnbuild.ops import interpret
from nnbuild.quantize.data import Source, batches


def written(folder: Path, shape: list[int | str], nodes: list[object] | None = None) -> Path:
    """A convolution of three channels, or other nodes from x to y."""
    kernel = np.arange(2 * 3 * 9, dtype=np.float32).reshape(2, 3, 3, 3) / 50
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    ports = [helper.make_tensor_value_info("x", 1, shape), helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph(nodes or [node], "g", ports[:1], ports[1:], [numpy_helper.from_array(kernel, "w")])
    path = folder / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def test_an_open_batch_is_one_sample(tmp_path: Path) -> None:
    graph = load(written(tmp_path, ["N", 3, 6, 5]))
    assert graph.tensors["x"].shape == (3, 6, 5)
    assert graph.notes == ("The file leaves the batch size open: the compiled model computes one sample at a time.",)


def test_an_output_of_another_shape_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, ["N", 3, 6, 5])
    model = onnx.load(path)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [1, 2, 6, 7]))
    onnx.save(model, path)
    assert load(path).notes[-1] == (
        "The file says that output 'y' is [1, 2, 6, 7]; what its operators make is [1, 2, 6, 5]."
    )


def test_other_open_axes_are_asked_for_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, ["N", 3, "H", "W"])
    with pytest.raises(ModelError) as caught:
        load(path)
    assert "its axes [2, 3] are open" in str(caught.value)
    assert "--shape x=1,3,N,N" in str(caught.value)
    assert load(path, None, ImportOptions({"x": (1, 3, 6, 5)})).tensors["y"].shape == (2, 6, 5)
    for wished, cause in (({"x": (3, 6, 5)}, "it has 4 axes"), ({"z": (1,)}, "the inputs of net.onnx are x")):
        with pytest.raises(UsageError, match=cause):
            load(path, None, ImportOptions(wished))


def test_a_fixed_batch_is_computed_in_one_run(tmp_path: Path) -> None:
    graph = load(written(tmp_path, [4, 3, 6, 5]))
    assert graph.tensors["y"].shape == (4, 2, 6, 5)
    one = load(written(tmp_path, [1, 3, 6, 5]))
    x = np.random.default_rng(1).normal(size=(1, 4, 3, 6, 5)).astype(np.float32)
    found = interpret.run(graph, {"x": x})["y"][0]
    np.testing.assert_allclose(found, interpret.run(one, {"x": x[0]})["y"], atol=1e-6)


def test_images_may_enter_and_leave_channels_last(tmp_path: Path) -> None:
    path = written(tmp_path, [1, 3, 6, 5])
    plain, turned = load(path), load(path, None, ImportOptions(layout="nhwc"))
    assert [op.kind for op in plain.ops].count("transpose") == 2
    assert [op.kind for op in turned.ops if op.kind != "reshape"] == ["conv2d"]
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 5)).astype(np.float32)
    wanted = interpret.run(plain, {"x": x})["y"].transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(interpret.run(turned, {"x": x.transpose(0, 2, 3, 1)})["y"], wanted)


def test_an_unknown_option_is_not_passed_over(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="r", steepness=2)
    with pytest.raises(ModelError, match=r"node 'r' \(Relu, opset 17\): it has the option 'steepness', which"):
        load(written(tmp_path, [1, 4], [node]))


def net(
    folder: Path, nodes: list[object], constants: dict[str, np.ndarray], x: list[int], y: list[int], opset: int = 20
) -> Path:
    ports = [helper.make_tensor_value_info("x", 1, x), helper.make_tensor_value_info("y", 1, y)]
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], held)
    path = folder / "net.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()
    )
    return path


def as_it_should_be(path: Path, x: np.ndarray) -> np.ndarray:
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {"x": row[None]})[0][0] for row in x])


def test_a_transposed_convolution_with_a_bias_has_as_many_outputs_as_it_likes(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    for groups in (1, 2):
        held = {"w": chance.normal(size=(4, 3, 3, 2)), "b": chance.normal(size=3 * groups)}
        node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 1], group=groups)
        constants = {name: value.astype(np.float32) for name, value in held.items()}
        path = net(tmp_path, [node], constants, [1, 4, 5, 6], [1, 3 * groups, 11, 7])
        x = chance.normal(size=(2, 4, 5, 6)).astype(np.float32)
        found = interpret.run(load(path), {"x": x})["y"]
        np.testing.assert_allclose(found, as_it_should_be(path, x), atol=1e-5)


def test_transposed_convolutions_of_tf2onnx_go_on_behind_their_inputs(tmp_path: Path) -> None:
    """Where a window is smaller than the strides, it writes negative pads, which onnxruntime refuses."""
    chance = np.random.default_rng(5)
    held = {"w": chance.normal(size=(2, 3, 1, 1)).astype(np.float32), "b": np.ones(3, np.float32)}
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], name="t", strides=[2, 2], pads=[0, 0, -1, -1])
    x = chance.normal(size=(2, 2, 3, 4)).astype(np.float32)
    found = interpret.run(load(net(tmp_path, [node], held, [1, 2, 3, 4], [1, 3, 6, 8])), {"x": x})["y"]
    wanted = np.ones((2, 3, 6, 8))
    wanted[:, :, ::2, ::2] += np.einsum("nchw,cd->ndhw", x, held["w"][:, :, 0, 0])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], name="t", strides=[2, 2], pads=[0, -1, 0, -1])
    with pytest.raises(ModelError, match=r"its pads are \[0, -1, 0, -1\]"):
        load(net(tmp_path, [node], held, [1, 2, 3, 4], [1, 3, 5, 9]))


@pytest.mark.parametrize("several", [True, False])
def test_weights_that_are_transposed_behind_their_scales_are_integers(several: bool, tmp_path: Path) -> None:
    """As PyTorch exports a quantized layer of several rows."""
    chance = np.random.default_rng(6)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["f"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wf"], axis=0),
        helper.make_node("Transpose", ["wf"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["f", "wt"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "so", "z"], ["o"]),
        helper.make_node("DequantizeLinear", ["o", "so", "z"], ["y"]),
    ]
    shape = (5,) if several else ()
    held = {"s": np.float32(0.03), "z": np.int8(3), "so": np.float32(0.05), "b": chance.normal(size=5).astype("f")}
    held |= {"w": chance.integers(-64, 64, (5, 8)).astype(np.int8), "zw": np.zeros(shape, np.int8)}
    held["sw"] = np.asarray(chance.uniform(0.01, 0.02, shape), np.float32)
    path = net(tmp_path, nodes, {name: np.asarray(values) for name, values in held.items()}, [1, 3, 8], [1, 3, 5])
    graph = load(path)
    (layer,) = [op for op in graph.ops if op.kind == "dense"]
    assert {graph.tensors[name].dtype for name in (*layer.inputs, *layer.outputs)} == {"int8"}
    x = chance.normal(size=(6, 3, 8)).astype(np.float32)
    apart = interpret.run(graph, {"x": x})["y"].reshape(6, 3, 5) - as_it_should_be(path, x)
    assert np.abs(apart).max() < 0.051 and (np.abs(apart) > 0.01).mean() < 0.05


def test_the_rest_of_the_error_function(tmp_path: Path) -> None:
    """tf2onnx leaves TensorFlow's Erfc, of which Keras makes gelu."""
    x = np.linspace(-4, 4, 40, dtype=np.float32).reshape(10, 4)
    found = interpret.run(load(net(tmp_path, [helper.make_node("Erfc", ["x"], ["y"])], {}, [1, 4], [1, 4])), {"x": x})
    np.testing.assert_allclose(found["y"], np.vectorize(math.erfc)(x), atol=1e-6)


def test_what_is_computed_from_constants_is_one(tmp_path: Path) -> None:
    """Normed weights, which older exporters write out, and operators that no table of constants has."""
    chance = np.random.default_rng(4)
    nodes = [
        helper.make_node("ReduceL2", ["v", "axes"], ["n"], keepdims=1),
        helper.make_node("Div", ["v", "n"], ["u"]),
        helper.make_node("Tanh", ["g"], ["t"]),
        helper.make_node("Mul", ["u", "t"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    held = {"v": chance.normal(size=(4, 2, 3)), "g": chance.normal(size=(4, 1, 1))}
    constants = {name: value.astype(np.float32) for name, value in held.items()} | {"axes": np.array([1, 2])}
    path = net(tmp_path, nodes, constants, [1, 2, 9], [1, 4, 7])
    x = chance.normal(size=(2, 2, 9)).astype(np.float32)
    graph = load(path)
    assert {op.kind for op in graph.ops} <= {"conv2d", "reshape", "transpose"}
    np.testing.assert_allclose(interpret.run(graph, {"x": x})["y"], as_it_should_be(path, x), atol=1e-5)


@pytest.mark.parametrize("nothing", [-np.inf, -3.4e38, -1e9])
def test_a_mask_that_is_added_leaves_integers_their_steps(nothing: float, tmp_path: Path) -> None:
    """As attention is exported: what lies in the future gets as little as there is."""
    mask = np.triu(np.full((6, 6), nothing, np.float32), 1) + np.tril(np.full((6, 6), 0.25, np.float32))
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["s"]),
        helper.make_node("Add", ["s", "m"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["y"], axis=-1),
    ]
    path = net(tmp_path, nodes, {"m": mask}, [1, 6, 4], [1, 6, 6])
    x = np.random.default_rng(5).normal(size=(16, 6, 4)).astype(np.float32)
    wanted = as_it_should_be(path, x)
    np.testing.assert_allclose(interpret.run(load(path), {"x": x})["y"], wanted, atol=1e-6)
    network = compile(path, quantize="int8", calibrate=x)
    graph = network.compiled.graph
    found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]].astype(np.float32)
    assert np.abs((found + 128) / 256 - wanted).max() < 0.06


def test_a_channel_shuffle_moves_weights_and_nothing_else(tmp_path: Path) -> None:
    """Channels in two groups are interleaved before a convolution."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "s0"], ["g"]),
        helper.make_node("Transpose", ["g"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "s1"], ["u"]),
        helper.make_node("Conv", ["u", "w1"], ["y"]),
    ]
    chance = np.random.default_rng(2)
    held = {
        "w0": chance.normal(size=(6, 1, 3, 3)).astype(np.float32),
        "w1": chance.normal(size=(4, 6, 1, 1)).astype(np.float32),
        "s0": np.array([1, 2, 3, 6, 5], np.int64),
        "s1": np.array([1, 6, 6, 5], np.int64),
    }
    ports = [helper.make_tensor_value_info("x", 1, [1, 1, 6, 5]), helper.make_tensor_value_info("y", 1, [1, 4, 6, 5])]
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    found = load(path, None, ImportOptions(layout="nhwc"))
    assert [op.kind for op in found.ops if op.kind != "reshape"] == ["conv2d", "conv2d"]
    from onnx.reference import ReferenceEvaluator

    x = chance.normal(size=(1, 1, 6, 5)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    made = interpret.run(found, {"x": x.reshape(1, 6, 5, 1)})["y"]
    np.testing.assert_allclose(made, wanted.transpose(0, 2, 3, 1), atol=1e-5)


def test_the_command_line_takes_sizes_and_layouts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, ["N", 3, "H", "W"])
    assert cli.main(["inspect", str(path), "--shape", "x=1,3,8,8", "--io-layout", "nhwc"]) == 0
    assert "input x: float32 [8, 8, 3]" in capsys.readouterr().out


def test_elements_are_gathered_by_computed_places(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["t", "order"], axis=1),
        helper.make_node("GatherElements", ["x", "order"], ["y"], axis=1),
    ]
    ports = [helper.make_tensor_value_info("x", 1, [1, 5, 4]), helper.make_tensor_value_info("y", 1, [1, 3, 4])]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(np.array([3]), "k")])
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    x = np.random.default_rng(1).normal(size=(2, 5, 4)).astype(np.float32)
    found = interpret.run(load(path), {"x": x})["y"]
    np.testing.assert_array_equal(found, -np.sort(-x, axis=1)[:, :3])


@pytest.mark.parametrize("kind", ["float32", "int64", "int32", "uint8"])
@pytest.mark.parametrize(("axis", "largest"), [(1, 1), (-1, 0), (2, 1), (-1, 1), (1, 0)])
def test_many_of_the_largest_or_smallest(kind: str, axis: int, largest: int, tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(2).integers(0 if kind == "uint8" else -40, 200, (1, 70, 80, 3)).astype(kind)
    count, number = min(66, x.shape[axis]), helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=axis, largest=largest)
    shape = [count if i == axis % 4 else n for i, n in enumerate(x.shape)]
    ports = [helper.make_tensor_value_info("x", number, x.shape), helper.make_tensor_value_info("y", number, shape)]
    places = helper.make_tensor_value_info("places", TensorProto.INT64, shape)
    held = [numpy_helper.from_array(np.array([count]), "k")]
    graph = helper.make_graph([node], "g", ports[:1], [ports[1], places], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = load(path)
    found = interpret.run(loaded, {"x": x.reshape(1, *loaded.tensors["x"].shape)})
    values, order = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(found["y"].reshape(values.shape), values)
    taken = np.take_along_axis(x, found["places"].reshape(order.shape).astype(np.int64), axis)
    np.testing.assert_array_equal(taken, values)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_quantized_products_of_constants_are_stored_as_the_file_does(kind: str, tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    chance, ends = np.random.default_rng(4), np.iinfo(kind)
    zeros = dict(zip(("za", "zb", "zy"), (ends.min + n for n in (120, 130, 128)), strict=True))
    held = {name: np.array(zero).astype(kind) for name, zero in zeros.items()}
    held |= {name: np.array(scale, np.float32) for name, scale in (("sa", 0.02), ("sb", 0.01), ("sy", 0.012))}
    held |= {
        name: chance.integers(ends.min, ends.max + 1, s).astype(kind) for name, s in (("a", (3, 4)), ("b", (4, 2)))
    }
    nodes = [
        helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sy", "zy"], ["d"]),
        helper.make_node("Add", ["d", "x"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, 1, [1, 3, 2]) for name in "xy"]
    given = [numpy_helper.from_array(values, name) for name, values in held.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.zeros((1, 3, 2), np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(interpret.run(load(path), {"x": x})["y"].reshape(wanted.shape), wanted, atol=1e-6)


def test_states_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    held = {"w": chance.normal(size=(1, 16, 3)), "r": chance.normal(size=(1, 16, 4)), "c": np.zeros((1, 1, 9))}
    node = helper.make_node("LSTM", ["x", "w", "r", "", "", "", "c"], ["y"], name="rnn", hidden_size=4)
    ports = [helper.make_tensor_value_info("x", 1, [5, 1, 3]), helper.make_tensor_value_info("y", 1, None)]
    constants = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in held.items()]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], constants)
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    with pytest.raises(ModelError, match=r"node 'rnn' \(LSTM, opset 17\): its states do not have 4 units\."):
        load(path)


@pytest.mark.parametrize("shape", [(1, 15, 2, 5), (1, 30, 5), (1, 150)], ids=str)
def test_a_normalization_of_channels_that_lie_apart_is_one_operation(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Behind a reshape of channels and rows, as of sub-bands, or a flatten: integers would round between two."""
    chance = np.random.default_rng(6)
    held = {"w": chance.normal(size=(3, 2, 1, 1)), "to": np.array(shape)}
    held |= {name: chance.uniform(0.5, 2, shape[1]) for name in ("gamma", "beta", "mean", "var")}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "to"], ["r"]),
        helper.make_node("BatchNormalization", ["r", "gamma", "beta", "mean", "var"], ["y"]),
    ]
    constants = {name: value.astype("int64" if name == "to" else "float32") for name, value in held.items()}
    path = net(tmp_path, nodes, constants, [1, 2, 10, 5], list(shape))
    graph, x = load(path), chance.normal(size=(3, 2, 10, 5)).astype(np.float32)
    kinds = [op.kind for op in graph.ops if op.kind != "reshape"]
    assert sorted(kinds) == ["affine", "conv2d", *["transpose"] * kinds.count("transpose")]
    found = interpret.run(graph, {"x": x})["y"]
    np.testing.assert_allclose(found.reshape(3, *shape[1:]), as_it_should_be(path, x), rtol=1e-4, atol=1e-4)


def test_weights_standardized_by_their_own_statistics_are_constants(tmp_path: Path) -> None:
    """As convolutions with standardized weights (BiT, NFNet) are exported."""
    chance = np.random.default_rng(8)
    held = {"raw": chance.normal(2, 3, size=(1, 4, 18)), "to": np.array([4, 2, 3, 3])}
    held |= {name: chance.uniform(0.5, 2, 4) for name in ("gamma", "beta", "mean", "var")}
    options = {"training_mode": 1, "momentum": 0.75, "epsilon": 1e-3}
    nodes = [
        helper.make_node(
            "BatchNormalization", ["raw", "gamma", "beta", "mean", "var"], ["w", "before", "after"], **options
        ),
        helper.make_node("Reshape", ["w", "to"], ["kernel"]),
        helper.make_node("Conv", ["x", "kernel", "after"], ["y"]),
    ]
    constants = {name: value.astype("int64" if name == "to" else "float32") for name, value in held.items()}
    path = net(tmp_path, nodes, constants, [1, 2, 5, 5], [1, 4, 3, 3])
    graph, x = load(path), chance.normal(size=(3, 2, 5, 5)).astype(np.float32)
    assert {op.kind for op in graph.ops} <= {"conv2d", "transpose", "reshape"}
    np.testing.assert_allclose(interpret.run(graph, {"x": x})["y"], as_it_should_be(path, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("groups", "opset"), [(1, 17), (3, 17), (1, 21), (3, 21), (6, 21)])
def test_a_normalization_of_groups_of_channels_has_one_factor_and_summand(
    groups: int, opset: int, tmp_path: Path
) -> None:
    """As PyTorch exports GroupNorm: with channels last they lie side by side, and integers round once."""
    chance = np.random.default_rng(9)
    held = {"w": chance.normal(size=(6, 2, 1, 1)), "gamma": chance.uniform(0.5, 2, 6), "beta": chance.normal(size=6)}
    if opset == 21:
        norm = [helper.make_node("GroupNormalization", ["c", "gamma", "beta"], ["y"], num_groups=groups)]
    else:
        held |= {"to": np.array([0, groups, -1]), "back": np.array([1, 6, 5, 3])}
        held |= {"ones": np.ones(groups), "zeros": np.zeros(groups)}
        held |= {each: held[each].reshape(6, 1, 1) for each in ("gamma", "beta")}
        norm = [
            helper.make_node("Reshape", ["c", "to"], ["rows"]),
            helper.make_node("InstanceNormalization", ["rows", "ones", "zeros"], ["n"]),
            helper.make_node("Reshape", ["n", "back"], ["s"]),
            helper.make_node("Mul", ["s", "gamma"], ["m"]),
            helper.make_node("Add", ["m", "beta"], ["y"]),
        ]
    constants = {name: value.astype("int64" if name in ("to", "back") else "float32") for name, value in held.items()}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), *norm]
    path = net(tmp_path, nodes, constants, [1, 2, 5, 3], [1, 6, 5, 3], opset)
    graph, x = passes.run(load(path)), chance.normal(size=(3, 2, 5, 3)).astype(np.float32)
    kinds = [op.kind for op in graph.ops if op.kind not in ("reshape", "transpose")]
    assert kinds == ["conv2d", "layer_norm", "affine"]
    np.testing.assert_allclose(interpret.run(graph, {"x": x})["y"], as_it_should_be(path, x), rtol=1e-4, atol=1e-4)


def test_a_constant_in_the_type_of_another_tensor_is_constant(tmp_path: Path) -> None:
    """PyTorch's exporter, without optimization, gives a convolution without a bias one of zero in its input's type."""
    chance = np.random.default_rng(7)
    nodes = [
        helper.make_node("Shape", ["w"], ["out"], start=0, end=1),
        helper.make_node("CastLike", ["zero", "x"], ["like"]),
        helper.make_node("Expand", ["like", "out"], ["bias"]),
        helper.make_node("Conv", ["x", "w", "bias"], ["y"]),
    ]
    held = {"w": chance.normal(size=(3, 2, 3, 3)).astype(np.float32), "zero": np.array(2, np.int64)}
    path = net(tmp_path, nodes, held, [1, 2, 5, 4], [1, 3, 3, 2])
    x = chance.normal(size=(2, 2, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(interpret.run(load(path), {"x": x})["y"], as_it_should_be(path, x), atol=1e-5)


@pytest.mark.parametrize(
    ("producer", "names", "lost"),
    [
        ("tf2onnx", ["x", "net/Mul/y:0"], ["net/Mul/y:0"]),
        ("pytorch", ["x", "net/Mul/y:0"], []),
        ("tf2onnx", ["net/x", "net/y"], []),
    ],
)
def test_constants_that_tf2onnx_made_inputs_are_noted(
    producer: str, names: list[str], lost: list[str], tmp_path: Path
) -> None:
    ports = [helper.make_tensor_value_info(name, 1, [1, 4]) for name in (*names, "z")]
    graph = helper.make_graph([helper.make_node("Mul", names, ["z"])], "g", ports[:2], ports[2:])
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, producer_name=producer, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    made = load(path)
    noted = [note for note in made.notes if "was a constant in TensorFlow" in note]
    assert [note.split("'")[1] for note in noted] == lost
    np.savez(tmp_path / "x.npz", x=np.ones((3, 4), np.float32))
    said = f"; it holds x. {noted[0]} Name the arrays " if lost else "; it holds x. Name the arrays "
    with pytest.raises(UsageError, match=re.escape(said)):
        load_samples(tmp_path / "x.npz", [made.tensors[name] for name in made.inputs], notes=made.notes)
    said = f"and not every input. {noted[0]} Name the arrays " if lost else "and not every input. Name the arrays "
    with pytest.raises(UsageError, match=re.escape(said)):
        list(batches(Source(tmp_path / "x.npz"), made))


@pytest.mark.parametrize("known", [False, True])
def test_a_normalization_by_computed_statistics(known: bool, tmp_path: Path) -> None:
    """As tf2onnx writes the layer normalization of Keras 2, whose scale is 1; `known` has other factors, too."""
    chance = np.random.default_rng(6)
    scale, bias = (chance.normal(size=3).astype(np.float32) if known else np.full(3, n, np.float32) for n in (1, 0))
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["column"], axes=[0, 2, 3], keepdims=1),
        helper.make_node("Sub", ["x", "column"], ["apart"]),
        helper.make_node("ReduceSumSquare", ["apart"], ["squares"], axes=[0, 2, 3], keepdims=0),
        helper.make_node("Div", ["squares", "count"], ["variance"]),
        helper.make_node("Squeeze", ["column", "axes"], ["mean"]),
        helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "variance"], ["y"], epsilon=0.01),
    ]
    held = {"count": np.float32(8), "axes": np.array([0, 2, 3]), "scale": scale, "bias": bias}
    ports = [helper.make_tensor_value_info(name, 1, [1, 3, 8, 1]) for name in "xy"]
    constants = [numpy_helper.from_array(np.asarray(values), name) for name, values in held.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    path.write_bytes(model.SerializeToString())
    from onnx.reference import ReferenceEvaluator

    x = chance.normal(2, 1, size=(1, 3, 8, 1)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = passes.run(load(path))
    made = interpret.run(found, {"x": x.reshape(1, *found.tensors["x"].shape)})["y"]
    np.testing.assert_allclose(made.reshape(wanted.shape), wanted, atol=1e-5)
    kinds = [op.kind for op in found.ops]
    assert "layer_norm" in kinds and kinds.count("binary") == 2 * known


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize(
    ("window", "stride", "pads", "kinds"),
    [
        (2, 2, [0, 0, 0, 0], ["pool2d"]),  # a row and a column are left over
        (3, 2, [1, 1, 0, 0], ["pool2d"]),
        (2, 3, [0, 0, 1, 1], ["pool2d"]),
        (3, 3, [1, 1, 1, 1], ["pool2d"]),
    ],
)
def test_what_lies_behind_the_last_window_of_a_pool_is_ignored(
    kind: str, window: int, stride: int, pads: list[int], kinds: list[str], tmp_path: Path
) -> None:
    node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[window] * 2, strides=[stride] * 2, pads=pads)
    ports = [helper.make_tensor_value_info("x", 1, [1, 1, 7, 9]), helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    import onnxruntime

    x = np.random.default_rng(1).normal(size=(1, 1, 7, 9)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    found = passes.run(load(path))
    made = interpret.run(found, {"x": x.reshape(1, *found.tensors["x"].shape)})["y"]
    np.testing.assert_allclose(made.reshape(wanted.shape), wanted, atol=1e-6)
    assert [op.kind for op in found.ops if op.kind != "reshape"] == kinds


@pytest.mark.parametrize("equation", ["bhnd,bhde,bhn->bhne", "bn,bm,bnm->bm", "bnd,bme,bde->bnm", "bn,bm,bk,bd->bnmkd"])
def test_an_einsum_joins_its_operands_two_at_a_time(equation: str, tmp_path: Path) -> None:
    sizes = {"b": 1, "h": 2, "n": 5, "m": 3, "d": 4, "e": 3, "k": 2}
    operands, out = equation.split("->")[0].split(","), equation.split("->")[1]
    names = [f"x{index}" for index in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [sizes[c] for c in letters])
        for name, letters in zip(names, operands, strict=True)
    ]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [sizes[c] for c in out])
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [made]), opset_imports=[helper.make_opsetid("", 17)]
    )
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    rng = np.random.default_rng(3)
    x = {
        name: rng.normal(size=[sizes[c] for c in o]).astype(np.float32) for name, o in zip(names, operands, strict=True)
    }
    found = interpret.run(load(path), x)["y"]
    np.testing.assert_allclose(found, np.einsum(equation, *x.values()), rtol=1e-4, atol=1e-5)


def test_a_product_of_which_nothing_is_summed_is_one_of_elements(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "column"], ["a"]),
        helper.make_node("Reshape", ["x", "row"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["y"]),
    ]
    path = net(tmp_path, nodes, {"column": np.array([1, 6, 1]), "row": np.array([1, 1, 6])}, [1, 6], [1, 6, 6])
    graph = load(path)
    assert {op.kind for op in graph.ops} <= {"reshape", "binary"}
    x = np.arange(6, dtype=np.float32)[None]
    np.testing.assert_array_equal(interpret.run(graph, {"x": x})["y"], x[:, :, None] * x[:, None, :])

"""Recurrent ONNX operators over sequences of several lengths and with functions of their own, against onnxruntime."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.support.many import run_many

STEPS, FEATURES, UNITS = 7, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
WAYS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def written(folder: Path, kind: str, way: str, batch: int, known: bool, begun: bool) -> tuple[Path, dict[str, Array]]:
    """An operator whose lengths are known or an input, and its inputs; `begun` from given states."""
    chance = np.random.default_rng(batch)
    width, count = GATES[kind] * UNITS, WAYS[way]

    def some(*shape: int) -> Array:
        return chance.normal(size=shape).astype(np.float32)

    held = {"w": some(count, width, FEATURES), "r": some(count, width, UNITS), "b": some(count, 2 * width)}
    lengths = chance.integers(1, STEPS, batch).astype(np.int32)
    given: dict[str, Array] = {"x": some(STEPS, batch, FEATURES)}
    (held if known else given)["lengths"] = lengths
    outputs = ["y", "h", "c"] if kind == "LSTM" else ["y", "h"]
    before = [f"{name}0" for name in outputs[1:]] if begun else []
    given |= {name: some(count, batch, UNITS) for name in before}
    names = ["x", "w", "r", "b", "lengths", *before]
    after = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = helper.make_node(kind, names, outputs, hidden_size=UNITS, direction=way, **after)
    types = {name: TensorProto.INT32 if name == "lengths" else TensorProto.FLOAT for name in given}
    inputs = [helper.make_tensor_value_info(name, types[name], values.shape) for name, values in given.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(values, name) for name, values in held.items()]
    graph = helper.make_graph([node], "g", inputs, ends, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"{kind}_{way}_{batch}_{known}_{begun}.onnx"
    path.write_bytes(model.SerializeToString())
    return path, given


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", GATES)
def test_steps_beyond_the_lengths_are_left_out(kind: str, tmp_path: Path) -> None:
    runs, golden = [], []
    for way, batch, known, begun in product(WAYS, (1, 3), (True, False), (True, False)):
        path, given = written(tmp_path, kind, way, batch, known, begun)
        golden.append(onnxruntime.InferenceSession(path).run(None, given))
        graph = passes.run(load(path))
        inputs = {name: given[name].reshape(1, *graph.tensors[name].shape) for name in graph.inputs}
        runs.append((graph, inputs))
        found = interpret.run(graph, inputs)
        for output, wanted in zip(graph.outputs, golden[-1], strict=True):
            np.testing.assert_allclose(found[output].reshape(wanted.shape), wanted, atol=1e-5, err_msg=path.name)
    for (graph, _), wanted, found in zip(runs, golden, run_many(runs, tmp_path), strict=True):
        for output, values in zip(graph.outputs, wanted, strict=True):
            np.testing.assert_allclose(found[output].reshape(values.shape), values, atol=1e-5)


def functions(folder: Path, kind: str, names: list[str], alpha: list[float], beta: list[float]) -> tuple[Path, Array]:
    chance = np.random.default_rng(len(names))
    width = GATES[kind] * UNITS
    ways = len(names) // {"LSTM": 3, "GRU": 2, "RNN": 1}[kind]
    shapes = {"w": (ways, width, FEATURES), "r": (ways, width, UNITS), "b": (ways, 2 * width)}
    held = [numpy_helper.from_array(chance.normal(size=s).astype(np.float32) / 2, name) for name, s in shapes.items()]
    way = "bidirectional" if ways == 2 else "forward"
    options = {name: values for name, values in (("activation_alpha", alpha), ("activation_beta", beta)) if values}
    node = helper.make_node(
        kind, ["x", *shapes], ["y"], "rnn", hidden_size=UNITS, direction=way, activations=names, **options
    )
    ends = [helper.make_tensor_value_info("x", 1, [STEPS, 1, FEATURES]), helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path, chance.normal(size=(STEPS, 1, FEATURES)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "names", "alpha", "beta"),
    [
        ("LSTM", ["HardSigmoid", "Tanh", "Tanh"], [0.2], [0.5]),
        ("LSTM", ["HardSigmoid", "Softsign", "Softsign"], [1 / 6], [0.5]),
        ("LSTM", ["HardSigmoid", "LeakyRelu", "LeakyRelu"], [0.2, 0.3, 0.3], [0.5]),
        ("LSTM", ["Sigmoid", "LeakyRelu", "Elu"], [0.3, 0.7], []),
        ("GRU", ["HardSigmoid", "Elu"], [0.2, 0.5], [0.5]),
        ("GRU", ["Sigmoid", "LeakyRelu", "HardSigmoid", "Elu"], [0.05, 0.2, 0.5], [0.5]),
        ("RNN", ["LeakyRelu"], [0.1], []),
        ("RNN", ["Affine"], [1.0], [0.0]),
    ],
)
def test_functions_take_their_numbers_in_order(
    kind: str, names: list[str], alpha: list[float], beta: list[float], tmp_path: Path
) -> None:
    path, x = functions(tmp_path, kind, names, alpha, beta)
    (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    graph = passes.run(load(path))
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


def test_other_numbers_are_refused(tmp_path: Path) -> None:
    path, _ = functions(tmp_path, "GRU", ["HardSigmoid", "Tanh"], [0.3], [0.5])
    with pytest.raises(ModelError, match=r"node 'rnn' \(GRU, opset 17\): its activations are .*does not support"):
        load(path)

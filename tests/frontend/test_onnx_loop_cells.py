"""Loops over a recurrent cell, as Keras' export writes its layers, become that cell; others are unrolled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret

STEPS, FEATURES, UNITS = 6, 3, 4
FLOAT, WHOLE, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Loop:
    """A loop over the rows of x, its weights carried along; a step's products and state are there to begin with."""

    def __init__(self, gates: int, states: int = 1, begun: bool = False) -> None:
        self.chance = np.random.default_rng(gates)
        self.nodes = [helper.make_node("Gather", ["x", "time"], ["row"], axis=0)]
        self.states = ["h", "c"][:states]
        self.weights = {
            "w": self.some(FEATURES, gates * UNITS),
            "r": self.some(UNITS, gates * UNITS),
            "b": self.some(gates * UNITS),
        }
        self.begins = {f"{name}0": self.some(1, UNITS) * begun for name in self.states}
        self.held: dict[str, Array] = {}
        self.gates = gates

    def some(self, *shape: int) -> Array:
        return self.chance.normal(size=shape).astype(np.float32)

    def node(self, kind: str, *inputs: str, **options: int) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **options))
        return name

    def split(self, name: str, parts: int) -> list[str]:
        names = [f"{name}_{i}" for i in range(parts)]
        self.nodes.append(helper.make_node("Split", [name], names, axis=1))
        return names

    def constant(self, values: Array) -> str:
        name = f"held{len(self.held)}"
        self.held[name] = np.asarray(values, np.float32)
        return name

    def sums(self) -> str:
        """x w + h r + b."""
        both = self.node("Add", self.node("MatMul", "row", "w"), self.node("MatMul", "h", "r"))
        return self.node("Add", both, "b")

    def written(self, folder: Path, after: list[str]) -> tuple[Path, Callable[[Array], Array]]:
        """The model that ends in the sequence, and its results."""
        ports = [helper.make_tensor_value_info("i", WHOLE, []), helper.make_tensor_value_info("go", TRUTH, [])]
        ports += [helper.make_tensor_value_info(name, WHOLE, []) for name in ("time",)]
        ports += [helper.make_tensor_value_info(name, FLOAT, [1, UNITS]) for name in self.states]
        ports += [helper.make_tensor_value_info(name, FLOAT, list(v.shape)) for name, v in self.weights.items()]
        nodes = [*self.nodes, helper.make_node("Add", ["time", "one"], ["later"])]
        nodes += [helper.make_node("Identity", [name], [f"{name}1"]) for name in ("go",)]
        nodes += [helper.make_node("Identity", [name], [new]) for name, new in zip(after, ("h1", "c1"), strict=False)]
        nodes += [helper.make_node("Identity", [after[0]], ["shown"])]
        ends = [helper.make_tensor_value_info("go1", TRUTH, []), helper.make_tensor_value_info("later", WHOLE, [])]
        ends += [helper.make_tensor_value_info(f"{name}1", FLOAT, [1, UNITS]) for name in self.states]
        ends += [helper.make_tensor_value_info(name, FLOAT, list(v.shape)) for name, v in self.weights.items()]
        ends += [helper.make_tensor_value_info("shown", FLOAT, [1, UNITS])]
        held = [numpy_helper.from_array(np.array(1, np.int64), "one")]
        held += [numpy_helper.from_array(values, name) for name, values in self.held.items()]
        body = helper.make_graph(nodes, "body", ports, ends, held)
        names = ["trips", "on", "zero", *self.begins, *self.weights]
        carried = ["time_end", *(f"{name}_end" for name in self.states), *(f"{name}_end" for name in self.weights)]
        loop = helper.make_node("Loop", names, [*carried, "y"], body=body)
        constants = {"trips": np.array(STEPS, np.int64), "on": np.array(True), "zero": np.array(0, np.int64)}
        constants |= self.begins | self.weights
        out = ["y", *(f"{name}_end" for name in self.states)]
        graph = helper.make_graph(
            [loop],
            "g",
            [helper.make_tensor_value_info("x", FLOAT, [STEPS, 1, FEATURES])],
            [helper.make_tensor_value_info(name, FLOAT, None) for name in out],
            [numpy_helper.from_array(values, name) for name, values in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
        path = folder / "net.onnx"
        path.write_bytes(model.SerializeToString())
        session = onnxruntime.InferenceSession(path)
        return path, lambda x: np.concatenate([y.reshape(-1) for y in session.run(None, {"x": x})])


def lstm(loop: Loop, function: str = "Tanh", gate: str = "Sigmoid") -> list[str]:
    first, forget, new, out = loop.split(loop.sums(), 4)
    kept = loop.node("Mul", loop.node(gate, forget), "c")
    cell = loop.node("Add", kept, loop.node("Mul", loop.node(gate, first), loop.node(function, new)))
    return [loop.node("Mul", loop.node(gate, out), loop.node(function, cell)), cell]


def gru(loop: Loop, after: bool) -> list[str]:
    of_row = loop.split(loop.node("Add", loop.node("MatMul", "row", "w"), "b"), 3)
    if after:
        other = loop.constant(loop.some(3 * UNITS))
        of_state = loop.split(loop.node("Add", loop.node("MatMul", "h", "r"), other), 3)
        reset = loop.node("Sigmoid", loop.node("Add", of_row[1], of_state[1]))
        new = loop.node("Add", of_row[2], loop.node("Mul", reset, of_state[2]))
        update = loop.node("Sigmoid", loop.node("Add", of_row[0], of_state[0]))
    else:
        recurrent = loop.weights["r"]
        gates = loop.split(loop.node("MatMul", "h", loop.constant(recurrent[:, : 2 * UNITS])), 2)
        update, reset = (loop.node("Sigmoid", loop.node("Add", of_row[i], gates[i])) for i in (0, 1))
        last = loop.node("MatMul", loop.node("Mul", reset, "h"), loop.constant(recurrent[:, 2 * UNITS :]))
        new = loop.node("Add", of_row[2], last)
    less = loop.node("Sub", loop.constant(np.ones(1)), update)
    return [loop.node("Add", loop.node("Mul", update, "h"), loop.node("Mul", less, loop.node("Tanh", new)))]


def simple(loop: Loop, function: str = "Relu") -> list[str]:
    return [loop.node(function, loop.sums())]


def compared(path: Path, wanted: Callable[[Array], Array]) -> Graph:
    graph = passes.run(load(path))
    for x in np.random.default_rng(1).normal(size=(5, STEPS, 1, FEATURES)).astype(np.float32):
        found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})
        made = np.concatenate([found[name].reshape(-1) for name in graph.outputs])
        np.testing.assert_allclose(made, wanted(x), atol=1e-5)
    return graph


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("kind", "gates", "states", "write"),
    [
        ("lstm", 4, 2, lstm),
        ("lstm", 4, 2, lambda loop: lstm(loop, "Softsign", "HardSigmoid")),
        ("gru", 3, 1, lambda loop: gru(loop, after=True)),
        ("gru", 3, 1, lambda loop: gru(loop, after=False)),
        ("simple_rnn", 1, 1, simple),
        ("simple_rnn", 1, 1, lambda loop: simple(loop, "Tanh")),
    ],
)
def test_a_loop_over_a_cell_becomes_the_cell(
    kind: str, gates: int, states: int, write: Callable[[Loop], list[str]], begun: bool, tmp_path: Path
) -> None:
    loop = Loop(gates, states, begun)
    graph = compared(*loop.written(tmp_path, write(loop)))
    assert [op.kind for op in graph.ops if op.kind not in ("reshape", "known", "activation")] == [kind]


def with_time(loop: Loop) -> list[str]:
    time = loop.node("Cast", "time", to=FLOAT)
    return [loop.node("Tanh", loop.node("Add", loop.sums(), loop.node("Mul", time, loop.constant(np.array([0.1])))))]


def twice(loop: Loop) -> list[str]:
    return [loop.node("Tanh", loop.node("Tanh", loop.sums()))]


@pytest.mark.parametrize("write", [with_time, twice])
def test_a_loop_over_something_else_is_unrolled(write: Callable[[Loop], list[str]], tmp_path: Path) -> None:
    loop = Loop(1)
    graph = compared(*loop.written(tmp_path, write(loop)))
    assert [op.kind for op in graph.ops].count("dense") == 2 * STEPS - 1  # the first state is 0
    assert "simple_rnn" not in [op.kind for op in graph.ops]


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.oracle
def test_recurrent_layers_that_keras_exports_are_those_of_its_file(tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(2)
    m, x = keras.layers, keras.Input((9, 5), name="x")
    y = m.Bidirectional(m.LSTM(4, return_sequences=True))(x)
    y = m.GRU(6, return_sequences=True, activation="relu")(m.GRU(7, return_sequences=True, reset_after=False)(y))
    model = keras.Model(x, m.Dense(3)(m.SimpleRNN(5)(y)))
    signature = [keras.InputSpec(shape=(1, 9, 5), dtype="float32", name="x")]
    model.export(tmp_path / "net.onnx", format="onnx", verbose=False, input_signature=signature)
    graph = passes.run(load(tmp_path / "net.onnx"))
    kinds = [op.kind for op in graph.ops]
    assert [kinds.count(kind) for kind in ("lstm", "gru", "simple_rnn", "dense")] == [2, 2, 1, 1]
    given = np.random.default_rng(2).normal(size=(4, 9, 5)).astype(np.float32)
    found = interpret.run(graph, {"x": given})[graph.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(model(given)), atol=1e-5)

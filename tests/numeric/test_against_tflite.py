"""Every rule against TFLite's reference kernels, operator by operator, on all models of the zoo."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import tflite

from nnbuild.numeric import lstm, rounding
from tests.numeric import evaluate, tflite_graph
from tests.zoo_tflite import cases, zoo

pytestmark = pytest.mark.oracle

SHARED = Path(__file__).parents[3] / "shared" / "models"

# How many operators of each kind the zoo must hold, so that a test cannot pass on nothing.
INT8 = {
    "ADD": 40, "AVERAGE_POOL_2D": 10, "CONCATENATION": 10, "CONV_2D": 60, "DEPTHWISE_CONV_2D": 30,
    "FULLY_CONNECTED": 60, "HARD_SWISH": 15, "LEAKY_RELU": 15, "LOGISTIC": 20, "MAXIMUM": 4, "MAX_POOL_2D": 8,
    "MEAN": 20, "MINIMUM": 4, "MIRROR_PAD": 2, "MUL": 40, "PAD": 4, "PRELU": 10, "QUANTIZE": 5, "REDUCE_MAX": 2,
    "RELU": 8, "RELU6": 6, "RELU_N1_TO_1": 3, "RESHAPE": 10, "RESIZE_BILINEAR": 6, "RESIZE_NEAREST_NEIGHBOR": 3,
    "REVERSE_V2": 2, "RSQRT": 4, "SOFTMAX": 20, "SPLIT": 3, "SPLIT_V": 2, "SQUARED_DIFFERENCE": 6, "STRIDED_SLICE": 5,
    "SUB": 30, "TANH": 20, "TRANSPOSE": 2, "TRANSPOSE_CONV": 20, "UNIDIRECTIONAL_SEQUENCE_LSTM": 8, "UNPACK": 2,
}  # fmt: skip
INT16 = {
    "ADD": 30, "AVERAGE_POOL_2D": 6, "CONCATENATION": 8, "CONV_2D": 40, "DEPTHWISE_CONV_2D": 20,
    "FULLY_CONNECTED": 40, "LEAKY_RELU": 8, "LOGISTIC": 20, "MAXIMUM": 3, "MAX_POOL_2D": 6, "MEAN": 12, "MINIMUM": 3,
    "MIRROR_PAD": 1, "MUL": 30, "PAD": 3, "QUANTIZE": 15, "REDUCE_MAX": 1, "RELU": 4, "RELU6": 4, "RESHAPE": 8,
    "RESIZE_BILINEAR": 3, "RESIZE_NEAREST_NEIGHBOR": 2, "SOFTMAX": 15, "SPLIT": 3, "SPLIT_V": 2, "STRIDED_SLICE": 2,
    "SUB": 20, "TANH": 20, "TRANSPOSE": 1, "TRANSPOSE_CONV": 12, "UNPACK": 2,
}  # fmt: skip
KINDS = [*(("int8", name) for name in INT8), *(("int16", name) for name in INT16)]


@cache
def occurrences() -> dict[tuple[str, str], list[tuple[str, tflite_graph.Operator]]]:
    """For each kind of operator: the models that contain it."""
    found = defaultdict(list)
    for case in cases():
        if case.mode != "float":
            for operator in tflite_graph.read((zoo() / f"{case.name}.tflite").read_bytes()):
                found[case.mode, operator.name].append((case.name, operator))
    return dict(found)


@cache
def tensors(name: str) -> dict[int, NDArray[Any]]:
    """All of a model's tensors as TFLite computed them, samples first."""
    with np.load(zoo() / f"{name}.npz") as arrays:
        known = {int(key[1:]): arrays[key] for key in arrays.files if key.startswith("t")}
        graph = tflite.Model.GetRootAs((zoo() / f"{name}.tflite").read_bytes(), 0).Subgraphs(0)
        count = graph.InputsLength()
        for i in range(count):
            known[graph.Inputs(i)] = arrays["x" if count == 1 else f"x{i}"]
    return known


def mismatches(name: str, operator: tflite_graph.Operator) -> int:
    known = tensors(name)
    wrong = 0
    for sample in range(len(next(iter(known.values())))):
        now = {index: values[sample] for index, values in known.items()}
        results = evaluate.EVALUATORS[operator.name](operator, evaluate.arguments(operator, now))
        for tensor, result in zip(operator.outputs, results, strict=True):
            wrong += int(np.count_nonzero(result.reshape(tensor.shape) != now[tensor.index]))
    return wrong


@pytest.mark.parametrize(("mode", "name"), KINDS)
def test_operator_equals_tflite(mode: str, name: str) -> None:
    models = [(model, op) for model, op in occurrences()[mode, name] if not skips_tanh(op)]
    assert len(models) >= (INT8 if mode == "int8" else INT16)[name]
    wrong = {model: count for model, operator in models if (count := mismatches(model, operator))}
    assert not wrong


def skips_tanh(operator: tflite_graph.Operator) -> bool:
    is_lstm = operator.name == "UNIDIRECTIONAL_SEQUENCE_LSTM"
    return is_lstm and evaluate.lstm_layer(operator).cell_power not in lstm.CELL_POWERS


def test_tflite_omits_tanh_for_small_cell_scales() -> None:
    """Its output is then the product of the output and the input gate: whatever was in the buffer."""
    models = [(model, op) for model, op in occurrences()["int8", "UNIDIRECTIONAL_SEQUENCE_LSTM"] if skips_tanh(op)]
    assert models
    for model, operator in models:
        layer = evaluate.lstm_layer(operator)
        x, y = (tensors(model)[_index(t)].astype(np.int64) for t in (operator.inputs[0], operator.outputs[0]))
        before = np.full(y[:, :, :1].shape, layer.state_zero)
        hidden = np.concatenate([before, y[:, :, :-1]], axis=2)
        shown = lstm.open_gate(layer.output, x, hidden, layer) * lstm.open_gate(layer.input, x, hidden, layer)
        expected = rounding.requantize(shown, *layer.hidden_scale) + layer.hidden_zero
        assert np.array_equal(np.clip(expected, -128, 127), y)


def _index(tensor: tflite_graph.Tensor | None) -> int:
    assert tensor is not None
    return tensor.index


def test_no_operator_is_left_out() -> None:
    assert {(mode, name) for mode, name in occurrences()} == set(KINDS)


def test_zoo_is_large_enough() -> None:
    integer = [case for case in cases() if case.mode != "float"]
    assert len(integer) >= 300
    assert sum(case.inputs for case in integer) >= 1000


@pytest.mark.parametrize("name", ["pretrainedResnet_quant.tflite", "kws_ref_model.tflite"])
def test_whole_network_equals_tflite(name: str) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    if not (SHARED / name).exists():
        pytest.skip(f"shared/models/{name} is not here")
    interpreter = Interpreter(str(SHARED / name), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    first, last = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    operators = tflite_graph.read((SHARED / name).read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(3):
        x = rng.integers(-128, 128, first["shape"]).astype(np.int8)
        interpreter.set_tensor(first["index"], x)
        interpreter.invoke()
        expected = interpreter.get_tensor(last["index"])
        assert np.array_equal(evaluate.run(operators, {first["index"]: x})[last["index"]], expected)

"""Constants beside tensors, axes of one length, rare options and inputs: all as onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret

RANDOM = np.random.default_rng(7)
MATRIX, COLUMN = RANDOM.normal(size=(4, 4)).astype(np.float32), np.arange(4, dtype=np.float32).reshape(4, 1)
WHOLE = np.array([[-7, 5, 2, 9], [4, 3, -8, 1], [6, 6, 2, -3]])


Inputs = Array | Mapping[str, Array]
"""The input x, or several by name."""


def by_name(inputs: Inputs) -> Mapping[str, Array]:
    return inputs if isinstance(inputs, Mapping) else {"x": inputs}


def made(nodes: list[Any], x: Inputs, constants: dict[str, Any], outputs: list[str], opset: int) -> bytes:
    to = helper.np_dtype_to_tensor_dtype
    begins = [helper.make_tensor_value_info(name, to(each.dtype), each.shape) for name, each in by_name(x).items()]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "net", begins, ends, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(model.SerializeToString())


def equal(
    nodes: list[onnx.NodeProto],
    x: Inputs,
    constants: dict[str, Any],
    outputs: tuple[str, ...] = ("y",),
    opset: int = 18,
) -> Graph:
    data, given = made(nodes, x, constants, list(outputs), opset), by_name(x)
    wanted = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, dict(given))
    graph = passes.run(verify(load_bytes(data, "net")))
    found = interpret.run(graph, {name: given[name].reshape(1, *graph.tensors[name].shape) for name in graph.inputs})
    for name, right in zip(graph.outputs, wanted, strict=True):
        assert (found[name].dtype.kind == "f") == (right.dtype.kind == "f")
        assert found[name].size == right.size
        np.testing.assert_allclose(found[name].reshape(right.shape), right, rtol=1e-5, atol=1e-5)
    return graph


def node(kind: str, inputs: str, outputs: str = "y", **options: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), **options)


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_a_column_added_to_a_square_product_is_for_its_rows(beta: float) -> None:
    equal([node("Gemm", "x w c", beta=beta)], MATRIX, {"w": MATRIX[::-1], "c": COLUMN})


@pytest.mark.parametrize("shape", [(4, 4), (3, 1), (1, 1, 1)])
def test_one_exponent_of_another_shape_repeats_the_base(shape: tuple[int, ...]) -> None:
    equal([node("Pow", "x e")], np.abs(MATRIX[:1]), {"e": np.full(shape, 3, np.float32)})


@pytest.mark.parametrize("kind", ["Sum", "Mean", "L1", "SumSquare", "L2", "Prod"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_integers_are_integers(kind: str, axis: int) -> None:
    nodes = [node(f"Reduce{kind}", "x a", "r", keepdims=0), node("Div", "r two")]
    equal(nodes, WHOLE.astype(np.int32), {"a": np.array([axis]), "two": np.int32(2)}, ("r", "y"))


def test_large_sums_of_integers_are_exact() -> None:
    x = np.array([[2**24 + 1, 2**24, 1, 2]], np.int32)
    equal([node("ReduceSum", "x a")], x, {"a": np.array([1])})


def test_windows_of_lp_pool_at_the_end_are_as_far_as_the_image() -> None:
    x = RANDOM.normal(size=(1, 2, 4, 4)).astype(np.float32)
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "pads": [0, 1, 1, 0]}
    equal([node("LpPool", "x", **options)], x, {})


FOLDED = {
    "argmax": (node("ArgMax", "c", "k", select_last_index=1), {"c": np.float32([[1, 2], [1, 2]])}),
    "cumsum": (node("CumSum", "c a", "k", exclusive=1), {"c": MATRIX, "a": np.array(1)}),
    "gather": (node("GatherND", "c i", "k", batch_dims=1), {"c": MATRIX, "i": np.array([[0], [3], [1], [1]])}),
    "scatter": (
        node("ScatterND", "c i u", "k", reduction="add"),
        {"c": MATRIX, "i": np.array([[1]]), "u": MATRIX[:1]},
    ),
    "pad": (node("Pad", "c p", "k", mode="edge"), {"c": MATRIX, "p": np.array([0, 1, 0, -1])}),
}


@pytest.mark.parametrize("name", FOLDED)
def test_rare_options_of_what_is_constant(name: str) -> None:
    first, constants = FOLDED[name]
    equal([first, node("Cast", "k", "f", to=1), node("Add", "x f")], np.float32([[0.5]]), constants)


def test_all_of_a_constant_is_one_number() -> None:
    nodes = [node("LayerNormalization", "c x", "n m", axis=0), node("Add", "n m")]
    equal(nodes, MATRIX, {"c": MATRIX + 1}, ("y",))


def test_an_input_that_nothing_reads_is_refused() -> None:
    data = made([node("Relu", "x more")], MATRIX, {"more": MATRIX}, ["y"], 18)
    with pytest.raises(ModelError, match="it has the input 'more'"):
        load_bytes(data, "net")


def test_sizes_beside_empty_scales() -> None:
    nothing, x = np.zeros(0, np.float32), RANDOM.normal(size=(1, 2, 4, 3)).astype(np.float32)
    options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    equal(
        [node("Resize", "x r s n", **options)], x, {"r": nothing, "s": nothing, "n": np.array([1, 2, 8, 6])}, opset=11
    )

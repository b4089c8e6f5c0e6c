"""onnxruntime's own operators with weights of 2 to 8 bits, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.frontend.other_arithmetic import EXPANDED, RUN_TIME_ROUNDING
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from tests.support.onnx_quantized import computed

pytestmark = pytest.mark.oracle
DEPTH, OUT = 40, 6


def model_of(kind: str, inputs: list[Any], x: Array, out: int, **options: Any) -> onnx.ModelProto:
    """One node; of its inputs None is x, "" is left out, and others are constants."""
    constants, names = [], []
    for place, given in enumerate(inputs):
        names.append("x" if given is None else "" if isinstance(given, str) else f"input{place}")
        if isinstance(given, np.ndarray):
            given = numpy_helper.from_array(given)
        if isinstance(given, onnx.TensorProto):
            given.name = names[-1]
            constants.append(given)
    node = helper.make_node(kind, names, ["y"], name="narrow", domain="com.microsoft", **options)
    ports = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (*x.shape[:2], out))]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", ports, ends, constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def packed(numbers: Array, bits: int) -> Array:
    """Numbers along the last axis in bytes, the first in the lowest bits."""
    each = 8 // bits
    rest = -numbers.shape[-1] % each
    whole = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, rest)]).reshape(*numbers.shape[:-1], -1, each)
    return np.asarray((whole << np.arange(each) * bits).sum(-1), np.uint8)


def read(model: onnx.ModelProto, folder: Path) -> Graph:
    path = folder / "net.onnx"
    onnx.save(model, path)
    return passes.run(load(path))


def same(model: onnx.ModelProto, x: Array, folder: Path) -> None:
    graph = read(model, folder)
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})[graph.outputs[0]]
    (wanted,) = computed(model.SerializeToString(), {"x": x})
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert EXPANDED in graph.notes


@pytest.mark.parametrize("zeros", ["none", "packed", "floats", "groups"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_products_of_blocks(bits: int, zeros: str, tmp_path: Path) -> None:
    """The last block of a row is not full, and there is an odd number of zero points."""
    chance, blocks = np.random.default_rng(bits), 3
    numbers = chance.integers(0, 1 << bits, (OUT, blocks * 16))
    points = chance.integers(0, 1 << bits, (OUT, blocks))
    scales, bias = chance.normal(size=(OUT, blocks)).astype(np.float32), chance.normal(size=OUT).astype(np.float32)
    if (bits == 8 and zeros == "floats") or (bits != 4 and zeros == "groups"):
        return  # onnxruntime has no kernel for these
    given = packed(points, bits) if zeros == "packed" else points.astype(np.float32) if zeros == "floats" else ""
    groups = chance.integers(0, blocks, blocks * 16).astype(np.int32) if zeros == "groups" else ""
    x = chance.normal(size=(1, 5, DEPTH)).astype(np.float32)
    weights = [None, packed(numbers, bits).reshape(OUT, blocks, -1), scales, given, groups, bias]
    same(model_of("MatMulNBits", weights, x, OUT, K=DEPTH, N=OUT, bits=bits, block_size=16), x, tmp_path)


@pytest.mark.parametrize("form", ["bytes of 4 bits", "bytes", "4 bits"])
def test_rows_of_blocks(form: str, tmp_path: Path) -> None:
    chance, bits = np.random.default_rng(4), 8 if form == "bytes" else 4
    numbers, points = (chance.integers(0, 1 << bits, shape) for shape in ((9, 32), (9, 2)))
    scales = chance.normal(size=(9, 2)).astype(np.float32)
    x = chance.integers(-9, 9, (1, 5))
    if form == "4 bits":
        kept = [helper.make_tensor("", TensorProto.UINT4, v.shape, v.reshape(-1)) for v in (numbers, points)]
    else:
        kept = [packed(v, bits) for v in (numbers, points)]
    weights = [kept[0], None, scales, kept[1]]
    same(model_of("GatherBlockQuantized", weights, x, 32, block_size=16, bits=bits), x, tmp_path)


@pytest.mark.parametrize("channels", [False, True])
def test_an_lstm_quantized_at_run_time(channels: bool, tmp_path: Path) -> None:
    """onnxruntime rounds what its products multiply, which costs it less than a hundredth."""
    chance, units, width = np.random.default_rng(5), 8, 6
    kernels = [chance.integers(-64, 64, (2, n, 4 * units)).astype(np.int8) for n in (width, units)]
    size = (2, 4 * units) if channels else (2,)
    scales = [chance.uniform(0.004, 0.012, size).astype(np.float32) for _ in kernels]
    zeros = [np.zeros(size, np.int8) for _ in kernels]
    bias = chance.normal(size=(2, 8 * units)).astype(np.float32)
    x = chance.normal(size=(7, 1, width)).astype(np.float32)
    rest = [scales[0], zeros[0], scales[1], zeros[1]]
    inputs = [None, *kernels, bias, "", "", "", "", *rest]
    model = model_of("DynamicQuantizeLSTM", inputs, x, units, hidden_size=units, direction="bidirectional")
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    for size in (7, 2, 1, units):
        model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = size
    graph = read(model, tmp_path)
    assert graph.unlike == RUN_TIME_ROUNDING
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})[graph.outputs[0]]
    (wanted,) = computed(model.SerializeToString(), {"x": x})
    assert np.abs(found.reshape(wanted.shape) - wanted).max() < 0.01


def test_sizes_that_do_not_match_are_refused(tmp_path: Path) -> None:
    x = np.zeros((1, 5, DEPTH), np.float32)
    weights = [None, np.zeros((OUT, 3, 8), np.uint8), np.ones((OUT, 2), np.float32)]
    with pytest.raises(ModelError, match="its weights \\[6, 3, 8\\] are not 6 times 40"):
        read(model_of("MatMulNBits", weights, x, OUT, K=DEPTH, N=OUT, bits=4, block_size=16), tmp_path)
    with pytest.raises(ModelError, match="its weights have 3 bits, which nnbuild does not support"):
        read(model_of("MatMulNBits", weights, x, OUT, K=DEPTH, N=OUT, bits=3, block_size=16), tmp_path)


def test_scales_beyond_floats_are_refused(tmp_path: Path) -> None:
    x = np.zeros((1, 5, DEPTH), np.float32)
    weights = [None, np.zeros((OUT, 3, 8), np.uint8), np.full((OUT, 3), 3e38, np.float32)]
    with pytest.raises(ModelError, match="holds values that are not numbers"):
        read(model_of("MatMulNBits", weights, x, OUT, K=DEPTH, N=OUT, bits=4, block_size=16), tmp_path)

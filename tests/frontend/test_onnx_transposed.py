"""Transposed convolutions of ONNX, in groups or over three axes, with strides, dilation and crops, like onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild.model.graph import Array
from nnbuild.ops import interpret

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle


def layer(chance: np.random.Generator) -> tuple[Any, Array]:
    """A layer of random shape, and an input."""
    rank = int(chance.integers(1, 4))
    groups = int(chance.integers(1 if rank == 3 else 2, 5))
    inputs, share = (int(n) for n in chance.integers(1, 3, 2))
    window, strides, dilation, sizes = (
        [int(n) for n in chance.integers(low, high, rank)]
        for low, high in ((1, 6 - rank), (1, 4), (1, 3), (1, 8 - rank))
    )
    extra = [int(chance.integers(0, stride)) for stride in strides]
    full = [s * (n - 1) + (k - 1) * d + 1 for s, n, k, d in zip(strides, sizes, window, dilation, strict=True)]
    pads = [int(chance.integers(0, max(1, n // 2))) for n in full * 2]
    kernel = chance.normal(size=(groups * inputs, share, *window)).astype(np.float32)
    bias = chance.normal(size=share * groups).astype(np.float32)
    options = {"group": groups, "strides": strides, "dilations": dilation, "pads": pads, "output_padding": extra}
    node = onnx.helper.make_node("ConvTranspose", ["x", "kernel", "bias"], ["y"], kernel_shape=window, **options)
    x = chance.normal(size=(1, groups * inputs, *sizes)).astype(np.float32)
    ends = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
    ]
    held = [onnx.numpy_helper.from_array(data, name) for name, data in (("kernel", kernel), ("bias", bias))]
    graph = onnx.helper.make_graph([node], "net", ends[:1], ends[1:], held)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), x


@pytest.mark.parametrize("seed", range(60))
def test_groups_and_three_axes_equal_onnxruntime(seed: int, tmp_path: Path) -> None:
    model, x = layer(np.random.default_rng(seed))
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    onnx.save(model, tmp_path / "net.onnx")
    graph = nnbuild.compile(tmp_path / "net.onnx").compiled.graph
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})[graph.outputs[0]]
    assert found.size == wanted.size
    assert np.allclose(found.reshape(-1), wanted.reshape(-1), atol=1e-4)


def test_groups_hold_no_weights_of_other_groups(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    kernel = chance.normal(size=(32, 1, 4, 4)).astype(np.float32)
    node = onnx.helper.make_node(
        "ConvTranspose", ["x", "kernel"], ["y"], group=32, strides=[2, 2], pads=[1, 1, 1, 1], kernel_shape=[4, 4]
    )
    ends = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 32, 5, 5)),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 32, 10, 10)),
    ]
    graph = onnx.helper.make_graph([node], "net", ends[:1], ends[1:], [onnx.numpy_helper.from_array(kernel, "kernel")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    compiled = nnbuild.compile(tmp_path / "net.onnx").compiled.graph
    assert sum(constant.data.size for constant in compiled.constants.values()) == kernel.size

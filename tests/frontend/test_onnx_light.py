"""The networks that the onnx package brings without their weights, with random ones, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from nnbuild import passes
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from tests.support.onnx_light import NAMES, entrance, with_weights

SHUFFLES = {"shufflenet": 17}
"""Its own, before convolutions in groups; every other network turns its image once, where it enters."""


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.full) for name in NAMES[1:])])
def test_networks_equal_onnxruntime(name: str) -> None:
    import onnxruntime

    model = with_weights(name)
    data = model.SerializeToString()
    port = entrance(model)
    shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {port.name: x})
    graph = passes.run(verify(load_bytes(data, "net")))
    found = interpret.run(graph, {port.name: x})[graph.outputs[0]].reshape(wanted.shape)
    assert np.abs(found - wanted).max() <= 4e-5 * np.abs(wanted).max()
    assert sum(op.kind == "transpose" for op in graph.ops) == SHUFFLES.get(name, 1)

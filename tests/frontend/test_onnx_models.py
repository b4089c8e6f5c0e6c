"""Networks that PyTorch has exported, against their golden outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.transpose import Transpose
from tests.support.running import ROOT

MODELS = ROOT.parent / "shared" / "models" / "onnx"
if not MODELS.is_dir():  # a worktree lies one folder deeper
    MODELS = ROOT.parents[1] / "shared" / "models" / "onnx"
pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="the folder shared/models/onnx is not there")
NAMES = ("dscnn", "encoder", "gru_tagger", "mobilenetv2", "resnet8", "unet")
EDGES = {"mobilenetv2": 1, "resnet8": 1, "unet": 1}
"""Transposes where an image of several channels enters, or leaves."""
OWN = {"encoder": 8}
"""An attention's own: heads are split off and joined."""


def golden(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(MODELS / f"{name}_golden.npz") as arrays:
        return arrays["x"], arrays["y"]


def transposes(graph: Graph) -> int:
    return sum(isinstance(op.attributes, Transpose) for op in graph.ops)


@pytest.mark.parametrize("exporter", ["script", "dynamo"])
@pytest.mark.parametrize("name", NAMES)
def test_exported_models_equal_their_golden_outputs(name: str, exporter: str) -> None:
    graph = passes.run(load(MODELS / f"{name}_{exporter}.onnx"))
    x, y = golden(name)
    (made,) = graph.outputs
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    found = interpret.run(graph, {"x": x})[made]
    assert np.abs(found - y).max() <= 1e-5 * np.abs(y).max()
    assert transposes(graph) == EDGES.get(name, 0) + OWN.get(name, 0)


@pytest.mark.parametrize("name", ["mobilenetv2", "resnet8", "unet"])
def test_channels_last_at_the_edges_leaves_no_transpose(name: str) -> None:
    from nnbuild.frontend.import_options import ImportOptions

    graph = passes.run(load(MODELS / f"{name}_script.onnx", None, ImportOptions(layout="nhwc")))
    x, y = golden(name)
    found = interpret.run(graph, {"x": x.transpose(0, 2, 3, 1)})[graph.outputs[0]]
    wanted = y.transpose(0, 2, 3, 1) if y.ndim == 4 else y
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(y).max()
    assert transposes(graph) == 0


@pytest.mark.parametrize("name", ["dscnn", "resnet8"])
def test_quantized_models_equal_onnxruntime_in_every_bit(name: str) -> None:
    graph = passes.run(load(MODELS / f"{name}_qdq.onnx"))
    x, y = golden(f"{name}_qdq")
    np.testing.assert_array_equal(interpret.run(graph, {"x": x})[graph.outputs[0]], y)
    inside = {graph.tensors[name].dtype for op in graph.ops for name in op.outputs}
    assert inside == {"int8", "float32"}
    weighted = [op for op in graph.ops if "kernel" in op.constants]
    assert all(graph.tensors[op.outputs[0]].dtype == "int8" for op in weighted)


def test_no_file_is_looked_for_elsewhere(tmp_path: Path) -> None:
    copied = tmp_path / "net.onnx"
    copied.write_bytes((MODELS / "dscnn_script.onnx").read_bytes())
    assert load(copied).outputs == ("y",)

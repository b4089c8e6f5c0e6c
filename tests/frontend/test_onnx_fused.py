"""What onnxruntime's optimizer puts in the place of several operators, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper, numpy_helper

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.support.onnx_quantized import computed

CHANCE = np.random.default_rng(6)
ROWS, DEPTH = 5, 8


def numbers(*shape: int) -> Array:
    return CHANCE.normal(size=shape).astype(np.float32)


def model_of(kind: str, operands: list[str | Array], outputs: list[str], **options: Any) -> onnx.ModelProto:
    """One node; its operands are the model's inputs, by name, or constants."""
    names = [each if isinstance(each, str) else f"held{place}" for place, each in enumerate(operands)]
    held = [numpy_helper.from_array(v, n) for n, v in zip(names, operands, strict=True) if not isinstance(v, str)]
    node = helper.make_node(kind, names, outputs, domain="com.microsoft", **options)
    given = [n for n in dict.fromkeys(names) if n in ("x", "z")]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, ROWS, DEPTH]) for name in given]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", ports, ends, held)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


GAMMA, BETA, BIAS = numbers(DEPTH), numbers(DEPTH), numbers(DEPTH)
CASES: dict[str, tuple[str, list[str | Array], list[str], dict[str, Any]]] = {
    "gelu": ("Gelu", ["x"], ["y"], {}),
    "gelu of a sum": ("BiasGelu", ["x", BIAS], ["y"], {}),
    "fast gelu": ("FastGelu", ["x"], ["y"], {}),
    "fast gelu of a sum": ("FastGelu", ["x", BIAS], ["y"], {}),
    "quick gelu": ("QuickGelu", ["x"], ["y"], {}),
    "quick gelu with a factor": ("QuickGelu", ["x"], ["y"], {"alpha": 0.7}),
    "plain product": ("FusedMatMul", ["x", numbers(DEPTH, 3)], ["y"], {}),
    "weights turned": ("FusedMatMul", ["x", numbers(3, DEPTH)], ["y"], {"transB": 1, "alpha": 0.25}),
    "both computed": ("FusedMatMul", ["x", "z"], ["y"], {"transB": 1, "alpha": 0.5}),
    "first turned": ("FusedMatMul", ["x", "z"], ["y"], {"transA": 1}),
    "batches turned": ("FusedMatMul", ["x", numbers(ROWS, DEPTH, 3)], ["y"], {"transBatchA": 1}),
    "all turned": ("FusedMatMul", ["x", "z"], ["y"], {"transBatchA": 1, "transA": 1, "transBatchB": 1, "alpha": 2.0}),
    "skip": ("SkipLayerNormalization", ["x", "z", GAMMA, BETA], ["y"], {"epsilon": 1e-3}),
    "skip with all": ("SkipLayerNormalization", ["x", "z", GAMMA, BETA, BIAS], ["y", "", "", "sum"], {}),
    "skip without a shift": ("SkipLayerNormalization", ["x", "z", GAMMA, "", BIAS], ["y"], {"epsilon": 1e-5}),
    "skip by the mean square": ("SkipSimplifiedLayerNormalization", ["x", "z", GAMMA], ["y", "", "", "sum"], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_they_equal_onnxruntime(case: str, tmp_path: Path) -> None:
    kind, operands, outputs, options = CASES[case]
    model = model_of(kind, operands, outputs, **options)
    onnx.save(model, tmp_path / "net.onnx")
    graph = passes.run(load(tmp_path / "net.onnx"))
    given = {name: numbers(1, ROWS, DEPTH) for name in graph.inputs}
    found = interpret.run(graph, given)
    for name, wanted in zip(graph.outputs, computed(model.SerializeToString(), given), strict=True):
        np.testing.assert_allclose(found[name].reshape(wanted.shape), wanted, rtol=2e-5, atol=2e-5)

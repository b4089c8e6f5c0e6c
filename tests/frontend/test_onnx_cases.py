"""The onnx package's own cases of its operators: none that is read is wrong, the others are refused in words."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

from nnbuild.base.errors import ModelError, NnbuildError
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.many import run_many
from tests.support.onnx_cases import ANCHOR, cases, expanded, read
from tests.support.running import ROOT
from tests.support.shares import in_shares

TABLE = runpy.run_path(str(ROOT / "script" / "onnx_table.py"))
SHARES = 40


@pytest.mark.slow
def test_every_case_passes_or_is_refused_and_the_table_is_current() -> None:
    found = TABLE["outcomes"]()
    assert [each for each in found if each.wrong] == []
    made, kept = TABLE["page"](found), (ROOT / "docs" / "onnx-coverage.md").read_text()
    yes = re.search(r"\*\*(\d+) of \d+ operators\*\*", made)
    assert yes is not None
    assert int(yes[1]) >= 150
    if f"\n{onnx.__version__}, " in kept:
        assert made == kept, "run script/onnx_table.py"


@pytest.mark.slow
@in_shares(SHARES)
def test_their_c_computes_what_the_reference_does(share: int, tmp_path: Path) -> None:
    chosen = [case for name, case in sorted(cases().items()) if not expanded(name)][share::SHARES]
    runs = [run for case in chosen if (run := _readable(case)) is not None]
    assert runs
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, flags=["-O0"]), strict=True):
        with np.errstate(all="ignore"):
            wanted = interpret.run(graph, inputs)
        for name in graph.outputs:
            if graph.tensors[name].quant is None:
                largest = np.abs(wanted[name][np.isfinite(wanted[name])]).max(initial=0.0)
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=2e-6 * largest)
            else:
                np.testing.assert_array_equal(found[name], wanted[name])


def _readable(case: Any) -> tuple[Graph, dict[str, np.ndarray]] | None:
    """The case as a graph with something to compute, and its inputs."""
    values = case.data_sets[0][0]
    if not all(isinstance(value, np.ndarray) and value.size for value in values):
        return None
    for frozen in (frozenset[int](), frozenset(range(1, len(values)))):
        try:
            graph = read(case.model, values, frozen)
        except NnbuildError:
            continue
        given = dict(zip([port.name for port in case.model.graph.input], values, strict=False))
        given[ANCHOR] = np.zeros((1, 1), np.float32)
        inputs = {n: given[n].reshape(1, *graph.tensors[n].shape) for n in graph.inputs}
        kinds = {n: np.float32 if graph.tensors[n].dtype == "float32" else graph.tensors[n].dtype for n in inputs}
        if make_plan(graph, "net", Target()).steps and sum(v.size for v in inputs.values()) < 20_000:
            return graph, {n: v.astype(kinds[n]) for n, v in inputs.items()}
    return None


def test_an_error_names_node_operator_domain_and_opset() -> None:
    from nnbuild.frontend.onnx import load_bytes

    helper = onnx.helper
    port = helper.make_tensor_value_info("x", 1, [1, 4])
    out = helper.make_tensor_value_info("y", 1, [1, 4])
    for domain, kind, text in (
        ("", "Bernoulli", "node 'rain' (Bernoulli, opset 17): nnbuild does not support Bernoulli."),
        (
            "",
            "NonMaxSuppression",
            "node 'rain' (NonMaxSuppression, opset 17): nnbuild does not support NonMaxSuppression. How much it gives "
            "depends on the numbers it gets, but memory is planned at compile time. Export the network up to the node "
            "before it, as the boxes and scores of a detector, and select among these in your own program.",
        ),
        (
            "",
            "StatefulPartitionedCall",
            "node 'rain' (StatefulPartitionedCall, opset 17): it is a call of TensorFlow's that tf2onnx did not "
            "convert. Give the .keras or .h5 file, or export it to TFLite: model.export('model.tflite', "
            "format='litert').",
        ),
        (
            "com.microsoft",
            "FusedConv",
            "node 'rain' (com.microsoft.FusedConv, opset 1): nnbuild does not support FusedConv, which onnxruntime "
            "writes when it optimizes a model. Give the model from before, or have it optimized with ORT_ENABLE_BASIC.",
        ),
        ("my.own", "Rain", "node 'rain' (my.own.Rain, opset 3): its domain 'my.own' is not a standard ONNX domain"),
    ):
        node = helper.make_node(kind, ["x"], ["y"], name="rain", domain=domain)
        graph = helper.make_graph([node], "g", [port], [out])
        opsets = [helper.make_opsetid(*each) for each in (("", 17), ("my.own", 3), ("com.microsoft", 1))]
        model = helper.make_model(graph, opset_imports=opsets)
        with pytest.raises(ModelError) as caught:
            load_bytes(model.SerializeToString(), "net")
        assert str(caught.value).startswith(text)

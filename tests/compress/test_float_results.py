"""Compressed weights of layers whose integer sums become floats: their bias is in floats, too. The results, which no
rounding to integers hides, also show that every kind of layer is fitted to what its weights multiply."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from nnbuild.compress.graph import compressed
from nnbuild.compress.layer import Spec
from nnbuild.compress.weight_matrices import input_rows, matrices, scale_blocks, weight_roles
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from tests.frontend.test_onnx_float_sums import LAYERS, net, products
from tests.frontend.test_onnx_integers import both

KINDS = [name for name in LAYERS if name != "of one channel"]


@pytest.mark.parametrize("name", KINDS)
def test_rows_times_matrices_are_the_results(name: str) -> None:
    data, shape = net(LAYERS[name], False, True, False)
    _, _, graph = both(data, shape)
    x, parts = np.random.default_rng(2).normal(size=(3, *graph.tensors["x"].shape)).astype(np.float32), []

    def note(site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        made = interpret.compute(site, inputs, dtype)
        if "kernel" in site.constants:
            rows = input_rows(site, "kernel", inputs, 10**9)
            weights = matrices(site, "kernel", site.constant("kernel")) * scale_blocks(site, "kernel")
            sums = np.einsum("rgi,gio->rgo", rows, weights) * quant_of(site.inputs[0]).scale
            parts.append((np.maximum(sums, 0.0).reshape(made[0].shape), np.maximum(made[0], 0.0)))
        return made

    interpret.run(graph, {"x": x}, how=note)
    ((found, wanted),) = parts
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", [Spec(most=31), Spec(values=64), Spec(density=0.9)])
@pytest.mark.parametrize("name", KINDS)
def test_results_stay_near(name: str, spec: Spec) -> None:
    data, shape = net(LAYERS[name], True, True, False)
    _, _, graph = both(data, shape)
    x = np.random.default_rng(2).normal(size=(64, *graph.tensors["x"].shape)).astype(np.float32)
    made = compressed(graph, {"x": x}, {(op.name, role): spec for op, role in weight_roles(graph)})
    before, after = (interpret.run(each, {"x": x})[graph.outputs[0]] for each in (graph, made.graph))
    assert products(made.graph) == [("int8", "float32")]
    assert np.sqrt(np.square(after - before).mean()) < 0.2 * before.std()

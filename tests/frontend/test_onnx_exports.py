"""Modules as users of PyTorch write them, by both exporters in many opsets, against PyTorch, where it is installed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install nnbuild[torch])")
pytest.importorskip("onnxscript")

import torch

import nnbuild
from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from tests.support.torch_modules import MODULES

pytestmark = pytest.mark.full
WAYS = ((True, 18), (True, 20), (False, 11), (False, 14), (False, 17), (False, 20))
"""Whether torch.export leads the way, and the opset."""
UNSOUND = {"projected_lstm": "its states do not have 4 units", "learned_spectrum": "do not match"}
"""Files that an exporter writes so that onnxruntime refuses them, too."""


def made(name: str) -> tuple[Any, tuple[Any, ...], list[Array]]:
    """The module with lively statistics, what it is called with, and what it answers."""
    torch.manual_seed(1)
    module, example = MODULES[name]()
    module.eval()
    with torch.no_grad():
        module(*example)
        for layer in module.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                layer.running_mean.normal_(0, 0.2)
                layer.running_var.uniform_(0.5, 2)
            if getattr(layer, "affine", False):
                layer.weight.uniform_(0.5, 1.5)
                layer.bias.normal_(0, 0.3)
        answers = module(*example)
    return module, example, [each.numpy() for each in _flat(answers)]


def _flat(answers: Any) -> list[Any]:
    return [part for each in answers for part in _flat(each)] if isinstance(answers, tuple | list) else [answers]


def inputs(graph: Graph, example: tuple[Any, ...]) -> dict[str, Array]:
    return {
        name: value.numpy().reshape(1, *graph.tensors[name].shape).astype(graph.tensors[name].dtype)
        for name, value in zip(graph.inputs, example, strict=True)
    }


@pytest.mark.parametrize(("dynamo", "opset"), WAYS)
@pytest.mark.parametrize("name", MODULES)
def test_exports_answer_as_the_module_does(name: str, dynamo: bool, opset: int, tmp_path: Path) -> None:
    module, example, wanted = made(name)
    path = tmp_path / "net.onnx"
    options = {"external_data": False} if dynamo else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(module, example, path, dynamo=dynamo, opset_version=opset, verbose=False, **options)
        except Exception as error:
            pytest.skip(f"PyTorch cannot export it: {type(error).__name__}")
    try:
        graph = passes.run(load(path))
    except ModelError as error:
        assert UNSOUND[name] in str(error)
        return
    found = interpret.run(graph, inputs(graph, example))
    assert len(graph.outputs) == len(wanted)
    for output, answer in zip(graph.outputs, wanted, strict=True):
        apart = np.abs(found[output].reshape(answer.shape).astype(np.float64) - answer)
        assert apart.max() <= 1e-5 * max(np.abs(answer).max(), 1e-9)


@pytest.mark.parametrize("name", sorted(MODULES.keys() - UNSOUND.keys()))
def test_modules_become_integers_for_a_board(name: str) -> None:
    module, example, _ = made(name)
    graph = nnbuild.from_torch(module, example).compiled.graph
    samples = {k: np.concatenate([v, v]) for k, v in inputs(graph, example).items()}
    network = nnbuild.from_torch(module, example, board="stm32", quantize="int8", calibrate=samples)
    assert network.compiled.graph.outputs


@pytest.mark.full
def test_a_module_trained_with_its_quantization(tmp_path: Path) -> None:
    """The exporter writes weights as floats that the graph quantizes, and a Clip behind every QuantizeLinear."""
    ort, ao = pytest.importorskip("onnxruntime"), pytest.importorskip("torch.ao.quantization")
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)]
    module = torch.nn.Sequential(ao.QuantStub(), *layers, torch.nn.ReLU(), torch.nn.MaxPool2d(2), ao.DeQuantStub())
    module.qconfig = ao.QConfig(ao.default_fake_quant, ao.default_per_channel_weight_fake_quant)
    trained = ao.prepare_qat(module.train())
    for _ in range(10):
        trained(torch.randn(8, 3, 8, 8))
    trained.eval().apply(ao.disable_observer)
    path = tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(trained, (torch.randn(1, 3, 8, 8),), str(path), dynamo=False, opset_version=17)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).normal(size=(20, 1, 3, 8, 8)).astype(np.float32)
    wanted = np.stack([session.run(None, {session.get_inputs()[0].name: row})[0] for row in x])
    graph = passes.run(load(path))
    assert {graph.tensors[op.outputs[0]].dtype for op in graph.ops if "conv2d" in op.kind} == {"int8"}
    found = interpret.run(graph, {graph.inputs[0]: x.reshape(20, *graph.tensors[graph.inputs[0]].shape)})
    apart = np.abs(found[graph.outputs[0]].reshape(wanted.shape) - wanted)
    step = np.diff(np.unique(wanted)).min()
    assert apart.max() < 1.01 * step
    assert (apart > 0).mean() < 4e-3

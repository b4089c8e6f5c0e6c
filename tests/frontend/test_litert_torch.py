"""Modules as users of PyTorch write them, through litert-torch, Google's converter, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install nnbuild[torch])")
pytest.importorskip("litert_torch")

import litert_torch

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.test_onnx_exports import inputs, made
from tests.support.torch_modules import MODULES

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", MODULES)
def test_files_answer_as_the_module_does(name: str, tmp_path: Path) -> None:
    module, example, wanted = made(name)
    path = tmp_path / "net.tflite"
    try:
        litert_torch.convert(module, example).export(str(path))
    except Exception as error:
        pytest.skip(f"litert-torch cannot convert it: {type(error).__name__}")
    try:
        graph = passes.run(load(path))
    except ModelError as error:
        pytest.fail(str(error))
    found = interpret.run(graph, inputs(graph, example))
    assert len(graph.outputs) == len(wanted)
    for output, answer in zip(graph.outputs, wanted, strict=True):
        apart = np.abs(found[output].reshape(answer.shape).astype(np.float64) - answer)
        assert apart.max() <= 1e-5 * max(np.abs(answer).max(), 1e-9)

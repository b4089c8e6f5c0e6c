"""PyTorch modules in memory; PyTorch itself is not needed to test what stands around its exporter."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nnbuild
from nnbuild.base.errors import UsageError
from tests.frontend.test_onnx_models import MODELS, golden


class FakeModule:
    training = True

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode


def torch_that(export: Any) -> ModuleType:
    fake = ModuleType("torch")
    vars(fake).update(nn=SimpleNamespace(Module=FakeModule), onnx=SimpleNamespace(export=export))
    return fake


@pytest.mark.skipif(not MODELS.is_dir(), reason="the folder shared/models/onnx is not there")
@pytest.mark.slow
def test_a_module_is_exported_in_evaluation_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    module, seen = FakeModule(), []

    def export(given: FakeModule, example: tuple[Any, ...], file: str, **options: Any) -> None:
        seen.append((given.training, example, options["dynamo"], options["external_data"]))
        Path(file).write_bytes((MODELS / "dscnn_dynamo.onnx").read_bytes())

    monkeypatch.setitem(sys.modules, "torch", torch_that(export))
    network = nnbuild.from_torch(module, "an example")
    assert seen == [(False, ("an example",), True, False)]
    assert module.training
    assert network.name.lower() == "fakemodule"
    x, y = golden("dscnn")
    np.testing.assert_allclose(network.run(x[:2])["y"], y[:2], atol=1e-6)


def test_what_pytorch_says_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise RuntimeError("data-dependent shape\nand a long story")

    monkeypatch.setitem(sys.modules, "torch", torch_that(export))
    with pytest.raises(UsageError, match=r"cannot export it \(RuntimeError: data-dependent shape\)"):
        nnbuild.from_torch(FakeModule(), ())


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(UsageError, match="not dict"):
        nnbuild.from_torch({}, ())

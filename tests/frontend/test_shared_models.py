"""Two public models with Keras' answers beside them, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"


@pytest.mark.parametrize("name", ["pretrainedResnet", "kws_ref_model"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_agrees_with_its_golden_answers(name: str, dtype: str) -> None:
    if not MODELS.is_dir():
        pytest.skip("needs ../shared/models")
    graph = load(MODELS / f"{name}.h5")
    with np.load(MODELS / f"{name}_golden.npz") as golden:
        x, y = golden["x"], golden["y"]
    for each in (graph, passes.run(graph)):
        found = interpret.run(each, {each.inputs[0]: x}, dtype)[each.outputs[0]]
        assert np.abs(found - y).max() < 2e-5


def test_folding_leaves_only_convolutions_and_what_joins_them() -> None:
    if not MODELS.is_dir():
        pytest.skip("needs ../shared/models")
    kinds = {op.kind for op in passes.run(load(MODELS / "pretrainedResnet.h5")).ops}
    assert kinds == {"conv2d", "binary", "pool2d", "reshape", "dense", "softmax"}

"""A network costs what it costs, whichever file it comes from: the same Keras model as `.h5` and as `.onnx`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from nnbuild.frontend import load
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.ops import interpret
from tests.frontend.test_onnx_models import MODELS
from tests.support.onnx_export import exported

SHARED = MODELS.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the folder shared/models is not there"),
]
NETWORKS = ("kws_ref_model", "pretrainedResnet")


def both(name: str, folder: Path) -> tuple[Path, Path]:
    keras = SHARED / f"{name}.h5"
    path = folder / f"{name}.onnx"
    path.write_bytes(exported(load(keras)))
    return keras, path


def cost(path: Path, board: str, quantize: str, layout: str = "model") -> tuple[float, int]:
    """Priced instructions and bytes of arena."""
    layouts = {"io_layout": layout} if path.suffix == ".onnx" else {}
    plan = compile_model(Options(path, board, quantize, **layouts), sizes_only=True).plan
    return sum(step.choice.price.cycles for step in plan.steps), plan.arena


@pytest.mark.turns(9)
@pytest.mark.parametrize(("board", "quantize"), [("stm32", "int8"), ("stm32", "float"), ("linux", "float")])
@pytest.mark.parametrize("name", NETWORKS)
def test_instructions_and_arena_are_the_keras_files(name: str, board: str, quantize: str, tmp_path: Path) -> None:
    keras, onnx = both(name, tmp_path)
    cycles, arena = cost(keras, board, quantize)
    for layout in ("model", "nhwc"):
        found = cost(onnx, board, quantize, layout)
        assert found[0] <= 1.01 * cycles
        assert found[1] <= 1.01 * arena


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_the_keras_file(name: str, tmp_path: Path) -> None:
    keras, onnx = (load(path) for path in both(name, tmp_path))
    shape = keras.tensors[keras.inputs[0]].shape
    x = np.random.default_rng(1).normal(size=(3, *shape)).astype(np.float32)
    wanted = interpret.run(keras, {keras.inputs[0]: x})[keras.outputs[0]]
    turned = x.transpose(0, 3, 1, 2).reshape(3, *onnx.tensors[onnx.inputs[0]].shape)
    found = interpret.run(onnx, {onnx.inputs[0]: turned})[onnx.outputs[0]]
    np.testing.assert_allclose(found, wanted, atol=1e-5)

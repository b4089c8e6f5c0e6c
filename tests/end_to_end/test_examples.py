"""Whole networks from their files to programs: a Transformer encoder, text, segmentation, attention of channels, a
model that prepares its own images, two towers, a recurrent convolution."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.board.tables import find
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.integer import quant_of
from tests.boards.conftest import needs_tools
from tests.kmod.workshop import Recipe, require_kernel
from tests.zoo import examples

MODELS = ("encoder", "text", "u_net", "squeeze_excite", "prepared", "towers", "conv_lstm")
FORMS = ("float", "int8", "int16", "tflite-float", "tflite-int8")
M4, KERNEL = "mps2-an386", "linux-kmod"
FEW = {
    ("linux", "towers", "tflite-float"),
    ("linux", "conv_lstm", "int8"),
    (M4, "text", "float"),
    (M4, "encoder", "tflite-int8"),
}
"""What is run even when little time is to be spent; of the others numpy's answers are looked at."""
MOST_PER_MAC = 1.3
"""Instructions of a multiply-add in the products of an int8 encoder on Cortex-M4."""


def files(name: str, form: str) -> tuple[Path, Path]:
    """The model and its samples."""
    stem = f"{name}_{form.removeprefix('tflite-')}" if form.startswith("tflite") else name
    ending = ".tflite" if form.startswith("tflite") else ".keras"
    return examples() / f"{stem}{ending}", examples() / f"{stem}.npz"


def options(name: str, form: str) -> list[str]:
    if form in ("float", "tflite-float", "tflite-int8"):
        return []
    return ["--quantize", form, "--calibrate", str(examples() / f"{name}_calibration.npz")]


def nnbuild(command: str, *words: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "nnbuild", command, *words, "--json", "-"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def answers(path: Path, samples: Path) -> tuple[Graph, Array, Array]:
    """The graph, what it makes of the samples, and what is wanted, in the model's own units."""
    graph = passes.run(load(path))
    with np.load(samples) as arrays:
        given = [arrays[key] for key in sorted(arrays) if key.startswith("x")]
        wanted = arrays["y"]
    found = interpret.run(graph, dict(zip(graph.inputs, given, strict=True)))[graph.outputs[0]]
    return graph, found.reshape(wanted.shape), wanted


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["float", "tflite-float"])
@pytest.mark.parametrize("name", MODELS)
def test_floats_are_those_of_keras(name: str, form: str) -> None:
    _, found, wanted = answers(*files(name, form))
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODELS)
def test_integers_are_those_of_tflite(name: str) -> None:
    """The towers' sums are those of kernels that go through floats; see SUM in docs/import.md."""
    graph, found, wanted = answers(*files(name, "tflite-int8"))
    quant = quant_of(graph.tensors[graph.outputs[0]])
    steps = np.rint(wanted / np.float32(quant.scale)) + quant.zero_point
    assert np.abs(found - steps).max() <= (name == "towers")
    assert len(np.unique(steps)) >= (8 if name == "towers" else 16)


@pytest.mark.turns(4)
@pytest.mark.oracle
@pytest.mark.emulator
@pytest.mark.parametrize(
    ("board", "name", "form"),
    [
        pytest.param(board, name, form, marks=() if (board, name, form) in FEW else pytest.mark.full)
        for board in ("linux", M4)
        for name in MODELS
        for form in FORMS
    ],
)
def test_programs(board: str, name: str, form: str) -> None:
    needs_tools(find(board))
    model, samples = files(name, form)
    words = ["--inputs", str(samples), "--board", board, *options(name, form)]
    assert nnbuild("check", str(model), *words)["verdict"] == "pass"


@pytest.mark.oracle
@pytest.mark.kernel
@pytest.mark.full
@pytest.mark.parametrize(("name", "form"), [*(("encoder", form) for form in FORMS), ("u_net", "int8")])
def test_kernel_modules(name: str, form: str) -> None:
    require_kernel(Recipe("f"))
    model, samples = files(name, form)
    words = ["--inputs", str(samples), "--board", KERNEL, *options(name, form)]
    assert nnbuild("check", str(model), *words)["verdict"] == "pass"


@pytest.mark.turns(4)
@pytest.mark.oracle
@pytest.mark.emulator
def test_products_of_an_encoder_are_cheap_on_cortex_m4() -> None:
    needs_tools(find(M4))
    model, _ = files("encoder", "int8")
    layers = nnbuild("profile", str(model), "--board", M4, "--price", "instructions", *options("encoder", "int8"))[
        "layers"
    ]
    products = [layer for layer in layers if layer["op"] in ("dense", "matmul")]
    assert len(products) == 17
    assert all(layer["cost_per_mac"] <= MOST_PER_MAC for layer in products)

"""What real networks lose in integers, that the compiled C computes the same, and that its objects hold integers only.

The samples of digits and words are not part of this repository: without them these tests are skipped by name.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import cli, passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from nnbuild.quantize.report import predicted
from tests.support.batch import SANITIZED, Entry, run_batch

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "examples" / "mnist"
SHARED = ROOT.parent / "shared"
LOST = {"int8": 0.003, "int16": 0.0005}
"""The share of MNIST's test images that may be lost."""
RIGHT = {"int8": 12, "int16": 13}
"""Of 13 words, how many must be heard as the float model hears them."""


def there(name: str) -> Path:
    if not (SHARED / name).is_file():
        pytest.skip(f"needs ../shared/{name}")
    return SHARED / name


def floats(model: Path) -> Graph:
    return passes.run(load(model))


def integers(graph: Graph, form: str, samples: Path) -> Graph:
    recipe = Recipe(form, Source(samples))
    return quantize_with(graph, recipe, ranges_of(graph, recipe))


@cache
def share_of_floats(images: int) -> float:
    """What the float model gets right of so many digits."""
    samples, known = digits(images)
    return float((classes(floats(MNIST / "mnist.h5"), samples) == known).mean())


def classes(graph: Graph, images: Array) -> Array:
    parts = np.array_split(images, max(1, len(images) // 500))
    return np.concatenate([predicted(interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]) for x in parts])


def digits(images: int) -> tuple[Array, Array]:
    with np.load(there("data/mnist.npz")) as file:
        return (file["x_test"][:images].astype(np.float32) / 255)[..., None], file["y_test"][:images]


def words(folder: Path) -> tuple[Array, Path]:
    """The samples, and a file to calibrate with."""
    with np.load(there("models/kws_ref_model_real.npz")) as file:
        samples = file["x"]
    np.savez(folder / "words.npz", x=samples)
    return samples, folder / "words.npz"


@pytest.mark.slow
@pytest.mark.parametrize("form", LOST)
@pytest.mark.parametrize("images", [2_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_digits_in_integers(form: str, images: int) -> None:
    samples, known = digits(images)
    made = integers(floats(MNIST / "mnist.h5"), form, MNIST / "calibration.npz")
    exact, found = share_of_floats(images), float((classes(made, samples) == known).mean())
    assert exact > 0.98
    allowed = max(LOST[form], 3 / images)  # of few images, one more or less is chance
    assert round(abs(exact - found) * images) <= round(allowed * images), f"float {exact:.2%}, {form} {found:.2%}"


def assert_same_bits(graph: Graph, samples: Array, folder: Path) -> None:
    inputs = {graph.inputs[0]: interpret.as_input(graph.tensors[graph.inputs[0]], samples, "float32")}
    wanted = interpret.run(graph, inputs)
    (found,) = run_batch([Entry(make_plan(graph, "net", Target()), inputs)], folder, SANITIZED)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize("form", ["int8", pytest.param("int16", marks=pytest.mark.slow)])
def test_digits_in_c(form: str, tmp_path: Path) -> None:
    images, _ = digits(500)
    made = integers(floats(MNIST / "mnist.h5"), form, MNIST / "calibration.npz")
    assert_same_bits(made, images, tmp_path)


@pytest.mark.parametrize("form", ["int8", pytest.param("int16", marks=pytest.mark.slow)])
def test_words_in_integers(form: str, tmp_path: Path) -> None:
    samples, calibration = words(tmp_path)
    graph = floats(there("models/kws_ref_model.h5"))
    made = integers(graph, form, calibration)
    assert (classes(graph, samples) == classes(made, samples)).sum() >= RIGHT[form]
    assert_same_bits(made, samples, tmp_path)


def built(form: str, folder: Path) -> list[str]:
    """Objects of the digits model. Vectorized loops would use SIMD registers for integers, which the policy forbids."""
    model = [str(MNIST / "mnist.h5"), "--quantize", form, "--calibrate", str(MNIST / "calibration.npz")]
    assert cli.main(["compile", *model, "--weights", "array", "-o", str(folder)]) == 0
    sources = [path.name for path in sorted(folder.glob("*.c"))]
    subprocess.run(["gcc", "-std=c99", "-O2", "-fno-tree-vectorize", "-c", *sources], cwd=folder, check=True)
    return [str(path) for path in sorted(folder.glob("*.o"))]


def audited(objects: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    status = cli.main(["audit", *objects, "--policy", "kernel", "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("form", LOST)
def test_objects_hold_integers_only(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The audit's strictest policy finds no floating-point instruction and no symbol of libm or of soft floats."""
    status, report = audited(built(form, tmp_path), capsys)
    assert (status, report["clean"], report["findings"]) == (0, True, [])
    needed = {need["symbol"] for need in report["needs"] if not need["symbol"].startswith("mnist_")}
    assert needed <= {"memcpy", "memset", "memmove"}


@pytest.mark.slow
def test_the_audit_sees_floats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = audited(built("float", tmp_path), capsys)
    assert (status, report["clean"]) == (1, False)
    assert "floating-point" in {finding["rule"] for finding in report["findings"]}

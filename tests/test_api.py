"""nnbuild from Python: models and samples in memory, the same results as the command line's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nnbuild
from nnbuild.api import Page, Verdict
from nnbuild.cli import main
from tests.frontend.keras_files import h5_bytes, put, small


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put(tmp_path_factory.mktemp("api") / "small.h5", h5_bytes(*small()))


@pytest.fixture(scope="module")
def network(file: Path) -> nnbuild.Network:
    return nnbuild.compile(file, quantize="int8", calibrate=samples(file))


def samples(file: Path) -> np.ndarray:
    shape = nnbuild.compile(file).compiled.graph
    size = shape.tensors[shape.inputs[0]].shape
    return np.random.default_rng(3).normal(size=(12, *size)).astype(np.float32)


def test_the_files_are_those_of_the_command(file: Path, tmp_path: Path) -> None:
    written = nnbuild.compile(file).write(tmp_path / "python")
    assert main(["compile", str(file), "-o", str(tmp_path / "command")]) == 0
    assert {path.name: path.read_bytes() for path in written} == {
        path.name: path.read_bytes() for path in (tmp_path / "command").iterdir()
    }


def test_a_check_a_run_and_a_page(network: nnbuild.Network, file: Path, tmp_path: Path) -> None:
    given = samples(file)
    verdict = network.check(given, agreement=0.5)
    assert isinstance(verdict, Verdict) and verdict and verdict.as_object()["verdict"] == "pass"
    assert "PASS: 12 samples" in str(verdict) and verdict._repr_html_().startswith("<pre>check of small")
    (output,) = network.run({"x": given}).values()
    assert output.shape[0] == 12
    page = network.report(given)
    assert isinstance(page, Page) and "small on linux, int8; check: PASS" in str(page)
    page.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page.html and "srcdoc" in page._repr_html_()
    assert network.profile().as_object()["layers"]


def test_a_gate_that_is_missed_is_false(network: nnbuild.Network, file: Path) -> None:
    assert not network.check(samples(file), min_cosine=1.5)


@pytest.mark.oracle
def test_a_keras_model_in_memory() -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2)], name="tiny"
    )
    given = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    network = nnbuild.compile(model)
    assert network.name == "tiny" and network.check(given)
    (output,) = network.run(given).values()
    np.testing.assert_allclose(output, model.predict(given, verbose=0), atol=1e-5)
    assert network.report(given).as_object()["name"] == "tiny"


WRONG = [
    (lambda file: nnbuild.compile(file, quantise="int8"), "it has no option 'quantise'"),
    (lambda file: nnbuild.compile(file, quantize="int4"), "quantize='int4': there is no such choice"),
    (lambda file: nnbuild.compile(3), "it takes no int"),
    (lambda file: nnbuild.compile(file.with_name("other.h5")), "other.h5"),
    (lambda file: nnbuild.compile(file, board="stm33"), "there is no such board"),
    (lambda file: nnbuild.compile(file).run(None), "it was given no samples"),
    (lambda file: nnbuild.compile(file).check(min_cosin=1), "there is none called 'min_cosin'"),
]


@pytest.mark.parametrize(("call", "told"), WRONG)
def test_what_is_wrong_is_said(call, told: str, file: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(nnbuild.NnbuildError) as raised:
        call(file)
    assert told in str(raised.value)


def test_npy_files_hold_the_samples_of_an_only_input(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", samples(file))
    assert main(["check", str(file), "--inputs", str(tmp_path / "x.npy")]) == 0
    (tmp_path / "x.npy").write_bytes(b"no array")
    assert main(["check", str(file), "--inputs", str(tmp_path / "x.npy")]) == 2


def test_importing_nnbuild_imports_nothing_more() -> None:
    code = "import sys, nnbuild; assert 'numpy' not in sys.modules; nnbuild.compile; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

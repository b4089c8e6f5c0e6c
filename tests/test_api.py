"""nnbuild from Python: models and samples in memory, the same results as the command line's."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
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


@pytest.mark.slow
def test_a_check_a_run_and_a_page(network: nnbuild.Network, file: Path, tmp_path: Path) -> None:
    given = samples(file)
    verdict = network.check(given, agreement=0.5)
    assert isinstance(verdict, Verdict) and verdict and verdict.as_object()["verdict"] == "pass"
    assert "PASS: 12 samples" in str(verdict) and ">PASS</b> small on linux" in verdict._repr_html_()
    (output,) = network.run({"x": given}).values()
    assert output.shape[0] == 12
    page = network.report(given)
    assert isinstance(page, Page) and "small on linux, int8; check: PASS" in str(page)
    page.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page.html and "srcdoc" in page._repr_html_()
    assert network.profile().as_object()["layers"]


class _Tags(HTMLParser):
    """Whether what is opened is closed, and which tags and texts there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_what_a_notebook_shows(network: nnbuild.Network, file: Path) -> None:
    missed = network.check(samples(file), min_cosine=1.5)
    shown = _Tags(missed._repr_html_())
    assert "FAIL  small on linux, int8, 12 samples: one run " in shown.text and "measured" in shown.text
    assert shown.text.index("MISSED") < shown.text.index("passed"), "what was missed stands first"
    costs = _Tags(network.profile()._repr_html_())
    assert {"table", "th", "td"} <= costs.seen and "100.0" not in costs.text[:20] and "layer op kernel ns" in costs.text
    files = _Tags(network._repr_html_())
    assert "small.c" in files.text and "details" in files.seen
    for each in (shown, costs, files):
        assert not each.seen & {"script", "style", "link", "img"}
    assert len(missed._repr_html_()) < 8_000


def test_names_are_escaped_in_a_notebook(network: nnbuild.Network, file: Path) -> None:
    verdict = network.check(samples(file))
    evil = replace(verdict, report=replace(verdict.report, model="<script>alert(1)</script>"))
    assert "<script" not in evil._repr_html_() and "&lt;script" in evil._repr_html_()


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
    (lambda file: nnbuild.compile(3), "it takes a file or a Keras model, not int"),
    (lambda file: nnbuild.compile(file.with_name("other.h5")), "other.h5"),
    (lambda file: nnbuild.compile(file, board="stm33"), "there is no such board"),
    (lambda file: nnbuild.compile(file).run(None), "there are no samples"),
    (lambda file: nnbuild.compile(file).check(min_cosin=1), "it has no gate 'min_cosin'. Did you mean min_cosine?"),
    (lambda file: nnbuild.compile(file, acuracy_drop=1), "Did you mean accuracy_drop?"),
    (lambda file: nnbuild.compile(file, quantize="int9"), "Did you mean int8?"),
    (lambda file: nnbuild.compile(file, board=3), "board=3: board takes a path"),
    (lambda file: nnbuild.compile(file).check(min_cosine="x"), "min_cosine='x': min_cosine takes a finite number"),
    (lambda file: nnbuild.compile(file, labels=["a", 3]), "labels=['a', 3]: labels takes a one-line name"),
    (lambda file: nnbuild.compile(file, labels=["a"]), "labels: it names 1 classes"),
    (lambda file: nnbuild.compile(file, labels=file.with_name("none.txt")), "none.txt: it cannot be read"),
    (lambda file: nnbuild.compile(file, features="sound.toml"), "sound.toml"),
    (lambda file: nnbuild.compile(file).profile(port="/dev/none", cycles=True), "--cycles: it models a processor"),
]
FITS_NOTHING = {
    "keep": ["x", 3, {"dense": "int9"}, {"dense": 3}, ["dense"]],
    "place": ["x", {"dense": "gpu"}],
    "kernels": ["x", 3],
    "shape": ["x", {"x": "x"}, {"x": (1, 0)}, {"x": 3}],
    "threads": ["2", 0, 2.5, True],
    "accuracy_drop": ["x", float("nan"), True],
    "layers": ["x", 1],
    "swappable": ["x"],
    "bias_correction": [None],
    "image_range": ["x", 3, (0, 1, 2), (0, "1")],
    "max_instructions": ["x", 0],
    "baud": ["x"],
    "isa": [3, [3], [], ""],
    "stream": [2.5],
    "name": [3],
    "memory": [3],
    "labels": [3],
    "features": [3],
    "device": [3],
    "quantize": [3, None, ["int8"]],
    "prune": [[3]],
    "share": ["x"],
    "flash": [[]],
}


@pytest.mark.parametrize(("call", "told"), WRONG)
def test_what_is_wrong_is_said(call, told: str, file: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(nnbuild.NnbuildError) as raised:
        call(file)
    assert told in str(raised.value)


@pytest.mark.parametrize(("option", "value"), [(name, each) for name, many in FITS_NOTHING.items() for each in many])
def test_a_value_that_fits_nothing_is_told_with_its_option(option: str, value: object, file: Path) -> None:
    with pytest.raises(nnbuild.NnbuildError) as raised:
        nnbuild.compile(file, **{option: value})
    assert re.match(rf"(--)?{option}\b", raised.value.where), raised.value


WRONG_SAMPLES = [
    np.zeros((3, 99), np.float32),
    np.zeros((), np.float32),
    np.zeros((0, 4), np.float32),
    [[1, 2], [3]],
    [object()],
    {"z": np.zeros(3)},
    {3: [[1.0]]},
]


@pytest.mark.parametrize("given", WRONG_SAMPLES)
def test_wrong_samples_are_told_by_their_argument(given: object, file: Path, network: nnbuild.Network) -> None:
    for argument, call in (
        ("calibrat", lambda: nnbuild.compile(file, quantize="int8", calibrate=given)),
        ("inputs", lambda: network.check(given)),
    ):
        with pytest.raises(nnbuild.NnbuildError) as raised:
            call()
        told = str(raised.value)
        assert argument in told and "nnbuild-" not in told and ".npz" not in raised.value.where, told


def test_options_as_they_are_natural_in_python(file: Path, tmp_path: Path) -> None:
    graph = nnbuild.compile(file).compiled.graph
    names = [f"class {i}" for i in range(int(np.prod(graph.tensors[graph.outputs[0]].shape)))]
    listed = tmp_path / "labels.txt"
    listed.write_text("\n".join(names))
    files = [nnbuild.compile(str(file), labels=each).files for each in (names, tuple(names), listed, str(listed))]
    assert all(each == files[0] for each in files)
    other = nnbuild.compile(file, isa=["c99"], cores=1, calibration="minmax", board="linux", image_range=[0, 1])
    assert other.files == nnbuild.compile(file, isa="c99", threads=np.int64(1)).files
    np.save(tmp_path / "x.npy", samples(file))
    assert nnbuild.compile(file, quantize="int8", calibrate=str(tmp_path / "x.npy")).check(tmp_path / "x.npy")


def test_inputs_of_any_name(file: Path, network: nnbuild.Network) -> None:
    with pytest.raises(nnbuild.NnbuildError, match="There is no array for input"):
        network.run({"file": samples(file)})


def test_signatures_show_what_the_documentation_names() -> None:
    for call in (nnbuild.compile, nnbuild.from_torch):
        assert {"board", "quantize", "calibrate", "labels", "isa"} <= set(inspect.signature(call).parameters)


@pytest.mark.emulator
def test_modelled_cycles(file: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    costs = nnbuild.compile(file, board="stm32").profile(cycles=True)
    assert costs.as_object()["board"] == "stm32f405" and "cycles" in str(costs)


def test_npy_files_hold_the_samples_of_an_only_input(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", samples(file))
    assert main(["check", str(file), "--inputs", str(tmp_path / "x.npy")]) == 0
    (tmp_path / "x.npy").write_bytes(b"no array")
    assert main(["check", str(file), "--inputs", str(tmp_path / "x.npy")]) == 2


def test_importing_nnbuild_imports_nothing_more() -> None:
    code = "import sys, nnbuild; assert 'numpy' not in sys.modules; nnbuild.compile; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

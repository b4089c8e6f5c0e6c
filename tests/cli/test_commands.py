"""What each command prints, as text and as JSON, and the code it ends with."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from nnbuild.cli import GROUPS, known, main
from nnbuild.frontend import load
from nnbuild.jobs.pipeline import Compiled
from nnbuild.jobs.program_files import program_files
from nnbuild.ops import interpret
from tests.cli.conftest import Nnbuild, numbers
from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, sequential

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "examples" / "mnist" / "mnist.h5"


def test_inspect(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("inspect", model)
    assert said.status == 0
    assert said.err == ""
    assert said.out.splitlines()[0] == "input x: float32 [4]"
    (row,) = [line for line in said.out.splitlines() if line.startswith("dense ")]
    assert row.split() == ["dense", "dense", "3", "15", "12", "12", "0%", "12"]
    (total,) = [line for line in said.out.splitlines() if line.startswith("total")]
    assert total.split() == ["total", "15", "12", "0%"]


def test_inspect_json(nnbuild: Nnbuild, model: Path) -> None:
    facts = nnbuild("inspect", model, "--json").json()
    assert facts["inputs"] == [{"name": "x", "shape": [4], "type": "float32"}]
    assert [output["shape"] for output in facts["outputs"]] == [[3]]
    told = {"parameters": 15, "macs": 12, "bytes": 12, "weights": 12, "zeros": 0, "distinct": 12}
    assert facts["layers"] == [{"name": "dense", "op": "dense", "shape": [3], **told}]
    assert facts["total"] == {"parameters": 15, "macs": 12, "largest_activation": 12}
    assert facts["states"] == 0


def test_inspect_the_example(nnbuild: Nnbuild) -> None:
    facts = nnbuild("inspect", MNIST, "--json").json()
    assert facts["total"]["macs"] == sum(row["macs"] for row in facts["layers"]) > 250_000
    assert facts["inputs"][0]["shape"] == [28, 28, 1]


FILES = ["small.c", "small.h", "small_kernels.c", "small_private.h", "small_weights.c"]


def test_compile(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--isa", "c99")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"{tmp_path}/out: small.h, small_private.h, small.c")
    assert "1 steps, 60 bytes of weights" in said.out
    assert said.out.splitlines()[1] == "the arena is fullest in dense, 28 bytes: x 16, dense 12"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_compile_json(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--isa", "c99", "--json")
    facts = said.json()
    assert facts["files"] == FILES
    assert facts["weights"] == 60
    assert facts["peak"] == {"step": 0, "layer": "dense", "size": 28, "alive": [["x", 16], ["dense", 12]]}
    assert facts["hash"] in (tmp_path / "out" / "small.h").read_text()


def test_compile_under_another_name(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--name", "My net-2", "--weights", "binary", "--link")
    assert said.status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "my_net_2.h",
        "my_net_2_private.h",
        "my_net_2.c",
        "my_net_2_kernels.c",
        "my_net_2_weights.S",
        "my_net_2_weights.bin",
        "nn_target.c",
    }


def test_compile_again_touches_nothing(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    nnbuild("compile", model, "-o", tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    nnbuild("compile", model, "-o", tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


def test_run_with_several_inputs_and_outputs(nnbuild: Nnbuild, forked: Path, tmp_path: Path) -> None:
    left, right = numbers(5, 2), numbers(5, 3)
    for index, names in enumerate([("left", "right"), ("x0", "x1")]):
        inputs, outputs = tmp_path / "x.npz", tmp_path / f"y{index}.npz"
        np.savez(inputs, **dict(zip(names, (left, right), strict=True)))
        said = nnbuild("run", forked, "--inputs", inputs, "--outputs", outputs)
        assert (said.status, said.err) == (0, "")
        assert said.out == f"{outputs}: the outputs of 5 samples on linux\n"
        with np.load(outputs) as found:
            assert sorted(found.files) == ["y0", "y1"]
            assert found["y0"].dtype == found["y1"].dtype == np.float32
            np.testing.assert_array_equal(found["y0"], np.concatenate([left, right], axis=1))
            graph = load(forked)
            wanted = interpret.run(graph, dict(zip(graph.inputs, (left, right), strict=True)), "float64")
            np.testing.assert_allclose(found["y1"], wanted[graph.outputs[1]], rtol=1e-5, atol=1e-5)


def test_outputs_are_an_npz(nnbuild: Nnbuild, forked: Path, tmp_path: Path) -> None:
    said = nnbuild("run", forked, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npy")
    assert said.status == 2
    assert f"Write {tmp_path / 'y.npz'}." in said.err.replace("\n  ", " ")


def test_run_carries_the_state_or_begins_anew(nnbuild: Nnbuild, recurrent: Path, tmp_path: Path) -> None:
    x, graph = numbers(6, 1, 2), load(recurrent)
    np.savez(tmp_path / "x.npz", x=x)
    found = {}
    for reset in (False, True):
        option = ["--reset-each"] if reset else []
        said = nnbuild("run", recurrent, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", *option)
        assert said.status == 0
        with np.load(tmp_path / "y.npz") as file:
            assert file.files == ["y"]
            found[reset] = file["y"]
        wanted = interpret.run(graph, {graph.inputs[0]: x}, "float64", reset_each=reset)[graph.outputs[0]]
        np.testing.assert_allclose(found[reset], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found[True][0], found[False][0])
    assert np.abs(found[True][1:] - found[False][1:]).max() > 0.01


def test_run_json(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=numbers(2, 4))
    said = nnbuild("run", model, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", "--json")
    assert said.json() == {"samples": 2, "outputs": str(tmp_path / "y.npz")}


def test_check_passes_and_reports(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=numbers(7, 4))
    junit = tmp_path / "report.xml"
    said = nnbuild("check", model, "--inputs", tmp_path / "x.npz", "--json", "--junit", junit, "--board", "x86")
    assert said.status == 0
    facts = said.json()
    assert facts["verdict"] == "pass"
    assert (facts["board"], facts["samples"], facts["misses"]) == ("linux", 7, [])
    assert facts["memory"]["arena"] > 0
    assert ElementTree.parse(junit).getroot().attrib["failures"] == "0"


def test_check_fails_on_a_wrong_golden_output(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    x, graph = numbers(3, 4), load(model)
    y = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
    np.savez(tmp_path / "good.npz", x=x, y=y)
    np.savez(tmp_path / "bad.npz", x=x, y=y + 0.01)
    assert nnbuild("check", model, "--inputs", tmp_path / "good.npz").status == 0
    said = nnbuild("check", model, "--inputs", tmp_path / "bad.npz", "--json", tmp_path / "report.json")
    assert said.status == 1
    assert "error against the golden output is" in said.out
    assert "FAIL: 1 of " in said.out
    assert '"verdict": "fail"' in (tmp_path / "report.json").read_text()


def test_check_fails_on_a_missed_gate(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("check", model, "--min-cosine", "1.5")
    assert said.status == 1
    assert "cosine against float is 1, at least 1.5 wanted" in said.out


def test_check_layers_names_every_layer(nnbuild: Nnbuild, recurrent: Path, forked: Path) -> None:
    for path, layers in ((recurrent, ["lstm"]), (forked, ["both", "head"])):
        said = nnbuild("check", path, "--layers", "--json")
        assert said.status == 0
        facts = said.json()
        assert [row["layer"] for row in facts["differences"]] == layers
        assert all(row["agrees"] for row in facts["differences"])


def test_check_layers_names_the_wrong_layer(nnbuild: Nnbuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of the second layer has gone bad; only samples that get past the first one show it."""
    config = sequential(input_layer("x", [1]), dense("first", 1, activation="relu"), dense("second", 1))
    one, half = np.ones((1, 1), np.float32), np.full((1, 1), 0.5, np.float32)
    weights = {"first": [one, np.zeros(1, np.float32)], "second": [half, np.zeros(1, np.float32)]}
    model = put(tmp_path / "net.h5", h5_bytes(config, weights))

    def spoilt(compiled: Compiled) -> dict[str, bytes]:
        files = program_files(compiled)
        wrong = files["net_weights.c"].replace(b"0.5f", b"0.625f")
        assert wrong != files["net_weights.c"]
        return {**files, "net_weights.c": wrong}

    monkeypatch.setattr("nnbuild.jobs.job.program_files", spoilt)
    np.savez(tmp_path / "x.npz", x=np.array([[-1], [-2], [3], [4]], np.float32))
    said = nnbuild("check", model, "--inputs", tmp_path / "x.npz", "--layers")
    assert said.status == 1
    assert "the first layer that differs from the reference is 'second' (dense): largest error 0.375" in said.out
    assert re.search(r"^layers of sample 2$", said.out, re.MULTILINE)
    assert re.search(r"^first .* agrees ", said.out, re.MULTILINE)


def test_check_layers_of_the_example(nnbuild: Nnbuild) -> None:
    """Nothing is folded: the normalizations and activations of the file are there, one by one."""
    said = nnbuild("check", MNIST, "--layers")
    assert said.status == 0
    wanted = [row["name"] for row in nnbuild("inspect", MNIST, "--json").json()["layers"] if row["op"] != "reshape"]
    found = re.findall(r"^(\S+) +\S+ +agrees ", said.out, re.MULTILINE)
    assert found == wanted
    assert f"all {len(wanted)} layers agree" in said.out or "PASS" in said.out


def test_profile(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    facts = nnbuild("profile", model, "--json").json()
    assert {"board", "model", "quantize", "unit", "total", "layers", "memory"} <= facts.keys()
    assert (facts["board"], facts["unit"]) == ("linux", "ns")
    assert [row["name"] for row in facts["layers"]] == ["dense"]
    assert facts["layers"][0].keys() >= {"name", "op", "kernel", "macs", "cost", "percent", "percent_so_far"}
    assert facts["total"] == round(facts["duration"]["mean"]) > 0
    assert facts["duration"]["min"] <= facts["duration"]["mean"] <= facts["duration"]["max"]
    assert (facts["hertz"], facts["macs"]) == (10**9, 12)
    assert facts["cost_per_mac"] == facts["duration"]["mean"] / 12
    assert facts["stack"].keys() == {"used", "size", "bound"}
    assert facts["init_ticks"] >= 0
    assert facts["memory"].keys() >= {"flash_code", "flash_weights", "arena", "state", "stack"}
    assert facts["memory"]["flash_weights"] >= 60
    assert facts["memory"]["state"] == 0
    text = nnbuild("profile", model).out
    assert text.splitlines()[0].split() == ["layer", "op", "kernel", "MACs", "ns", "%", "sum", "%", "per", "MAC"]
    assert re.search(r"^one run .* ns \(min .*, max .*, std .*\) = ", text, re.MULTILINE)
    assert "\nmemory     flash_code" in text


def test_boards(nnbuild: Nnbuild) -> None:
    said = nnbuild("boards")
    assert said.status == 0
    assert any(line.startswith("linux, x86") for line in said.out.splitlines())
    rows = {row["name"]: row for row in nnbuild("boards", "--json").json()["boards"]}
    assert "x86" in rows["linux"]["aliases"]


def test_docs(nnbuild: Nnbuild) -> None:
    listed = nnbuild("docs").out.splitlines()
    assert any(line.split()[0] == "import" for line in listed)
    assert nnbuild("docs", "import").out.startswith("# What nnbuild reads")
    assert nnbuild("docs", "imports").status == 2


def test_errors_name_only_pages_that_there_are() -> None:
    """By the command that shows them: who has only the wheel has no folder of documents."""
    root = Path(__file__).resolve().parents[2]
    named = set()
    for path in (root / "nnbuild").rglob("*"):
        if path.suffix in (".py", ".cmake"):
            named |= set(re.findall(r"nnbuild docs ([a-z-]+)", path.read_text(encoding="utf-8")))
    assert {"import", "layers", "cmake"} <= named
    assert named - {path.stem for path in (root / "docs").glob("*.md")} <= {"lists"}


def test_audit_json(nnbuild: Nnbuild, tmp_path: Path) -> None:
    source, made = tmp_path / "twice.c", tmp_path / "twice.o"
    source.write_text("int twice(int x) { return 2 * x; }\n")
    subprocess.run(["gcc", "-c", str(source), "-o", str(made)], check=True)
    said = nnbuild("audit", made, "--policy", "hosted", "--json")
    assert said.status == 0
    assert said.json()["clean"] is True


def test_version_and_help(nnbuild: Nnbuild) -> None:
    assert re.fullmatch(r"nnbuild \d+\.\d+\S*\n", nnbuild("--version").out)
    top = nnbuild("--help")
    assert top.status == 0
    for title, group in GROUPS.items():
        assert f"\n{title}:\n" in top.out
        assert all(f"\n  {command}" in top.out for command in group)
    for command in known():
        said = nnbuild(command, "--help")
        assert said.status == 0
        assert said.out.startswith(f"usage: nnbuild {command}")
        assert nnbuild("help", command).out == said.out
    assert nnbuild("help").out == top.out


@pytest.mark.turns(2)
@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_for_terminals(model: Path, terminal: bool) -> None:
    """A line that is rewritten in place belongs on a screen, not in a log."""
    command = [sys.executable, "-m", "nnbuild", "check", str(model)]
    if not terminal:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return
    master, slave = pty.openpty()
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=slave, text=True)
        shown = os.read(master, 65536).decode()
    finally:
        os.close(slave)
        os.close(master)
    assert done.returncode == 0
    assert "sample 1/21" in shown
    assert shown.endswith("\x1b[K"), "the line is gone when the work is done"
    assert "\x1b" not in done.stdout


def test_a_closed_pipe_is_no_error(model: Path) -> None:
    command = f"'{sys.executable}' -m nnbuild boards | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_the_other_form_of_the_weights_is_removed(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    """A build that takes all files of the folder would define every constant twice."""
    folder = tmp_path / "out"
    for form, ending in (("array", [".c"]), ("binary", [".S", ".bin"]), ("array", [".c"])):
        assert nnbuild("compile", model, "-o", folder, "--weights", form).status == 0
        assert sorted(path.suffix for path in folder.glob("*_weights*")) == ending


def test_phases_are_shown_on_a_terminal(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line, which is clean again before anything else is said; in a pipe there is none."""
    assert main(["compile", str(model), "-o", str(tmp_path / "piped")]) == 0
    assert "…" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["compile", str(model), "-o", str(tmp_path / "shown")]) == 0
    said = capsys.readouterr().err
    assert "\r\x1b[Kreading the model …\r\x1b[K" in said and "\r\x1b[Kprinting the C …\r\x1b[K" in said


def test_parameters_are_counted_as_keras_does(nnbuild: Nnbuild) -> None:
    """24,908 is what model.summary() says of it: moving averages count."""
    model = ROOT.parent / "shared" / "models" / "kws_ref_model.h5"
    if not model.is_file():
        pytest.skip("kws_ref_model.h5 of ../shared/models is not there")
    facts = nnbuild("inspect", model, "--json").json()
    assert facts["total"]["parameters"] == sum(row["parameters"] for row in facts["layers"]) == 24_908


@pytest.mark.parametrize("command", ["check", "run", "report", "mutate", "evidence"])
def test_help_says_what_files_samples_come_in(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert ".npz or .npy" in " ".join(capsys.readouterr().out.split())


def test_values_that_quantization_leaves_nothing_of_are_told(nnbuild: Nnbuild, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    kernel = chance.normal(size=(4, 3)) * [300, 1e-3, 300]
    arrays = [values.astype(np.float32) for values in (kernel, np.array([1000.0, 0.0, 0.0]))]
    net = sequential(input_layer("x", [4]), dense("dense", 3))
    path = put(tmp_path / "net.h5", h5_bytes(net, {"dense": arrays}))
    samples = tmp_path / "samples.npy"
    np.save(samples, chance.normal(size=(60, 4)).astype(np.float32))
    options = [path, "--quantize", "int8", "--calibrate", samples]
    note = "nnbuild: note: output 'dense': its values at 1 (of 3) vary by less than quantization errs."
    for said in (nnbuild("check", *options, "--inputs", samples), nnbuild("quantize", *options)):
        assert said.status == 0
        assert note in said.err
    assert "errs" not in nnbuild("check", *options).err


@pytest.mark.turns(2)
@pytest.mark.parametrize("way", ["integer", "float"])
def test_samples_beyond_those_of_the_calibration_are_told(nnbuild: Nnbuild, tmp_path: Path, way: str) -> None:
    """Here they come as 0 to 255, and calibration knew 0 to 1."""
    chance = np.random.default_rng(0)
    arrays = [values.astype(np.float32) for values in (chance.normal(size=(4, 3)), np.zeros(3))]
    path = put(tmp_path / "net.h5", h5_bytes(sequential(input_layer("x", [4]), dense("dense", 3)), {"dense": arrays}))
    near, far = tmp_path / "near.npy", tmp_path / "far.npy"
    pixels = np.concatenate([[[0, 0, 0, 1]], chance.random(size=(59, 4))])
    np.save(near, pixels.astype(np.float32))
    np.save(far, np.round(255 * pixels).astype(np.float32))
    options = [path, "--quantize", "int8", "--calibrate", near, "--io", way]
    said = nnbuild("check", *options, "--inputs", far).err
    assert "nnbuild: note: input 'x': 60 of 60 samples reach beyond 0 to 1, which its integers hold, up to 255" in said
    assert ("output 'dense': 60 of 60 samples lead to values far beyond" in said) == (way == "integer")
    for command in (["check", "--inputs", near], ["check"], ["run", "--inputs", near, "--outputs", tmp_path / "y.npz"]):
        assert "beyond" not in nnbuild(command[0], *options, *command[1:]).err
    assert "60 of 60" in nnbuild("run", *options, "--inputs", far, "--outputs", tmp_path / "y.npz").err

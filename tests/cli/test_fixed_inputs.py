"""Inputs that are always the same, as constants of the compiled model."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import nnbuild as library
from nnbuild.base.errors import UsageError
from nnbuild.frontend import load
from nnbuild.frontend.import_options import ImportOptions
from nnbuild.jobs.options import Options
from nnbuild.jobs.project import Parts, project_files
from nnbuild.jobs.scons_options import PAIRS, _pairs, _with_numbers
from nnbuild.ops import interpret
from tests.cli.conftest import Nnbuild, numbers
from tests.cli.test_errors import assert_said
from tests.frontend.keras_files import called, functional, h5_bytes, input_layer, layer, put
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.support.running import ROOT, start

LEFT = (1.5, -2.0)


def test_keras(nnbuild: Nnbuild, forked: Path, tmp_path: Path) -> None:
    whole, cut = load(forked), load(forked, options=ImportOptions(fixed={"left": LEFT}))
    assert cut.inputs == ("right",)
    right = numbers(4, 3)
    wanted = interpret.run(whole, {"left": np.tile(np.float32(LEFT), (4, 1)), "right": right})
    found = interpret.run(cut, {"right": right})
    for one, other in zip(whole.outputs, cut.outputs, strict=True):
        np.testing.assert_allclose(found[other], wanted[one], atol=1e-6)
    np.savez(
        tmp_path / "s.npz", right=right, left=numbers(4, 2), y0=wanted[whole.outputs[0]], y1=wanted[whole.outputs[1]]
    )
    said = nnbuild("check", forked, "--fix", "left=1.5,-2", "--inputs", tmp_path / "s.npz")
    assert said.status == 0, said.err


def test_tflite(tmp_path: Path) -> None:
    """A whole number that a table is read at."""
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    tensors = [
        T("x", (1, 3), "float32", ()), T("row", (1,), "int32", ()), T("t", (4, 3), "float32", (), data=table),
        T("found", (1, 3), "float32", ()), T("y", (1, 3), "float32", ()),
    ]  # fmt: skip
    file = File(tensors, [O("GATHER", [2, 1], [3], "GatherOptions"), O("ADD", [0, 3], [4], "AddOptions")], [0, 1], [4])
    path = tmp_path / "m.tflite"
    path.write_bytes(to_bytes(file))
    graph = load(path, options=ImportOptions(fixed={"row": (2,)}))
    assert graph.inputs == ("x",) and [op.kind for op in graph.ops] == ["binary"]
    x = numbers(2, 3)
    np.testing.assert_array_equal(interpret.run(graph, {"x": x})[graph.outputs[0]], x + table[2])
    network = library.compile(path, fix={"row": 2})
    assert network.check(x).passed


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    """An ONNX model that branches by an input."""
    onnx = pytest.importorskip("onnx")
    make, kinds = onnx.helper, onnx.TensorProto
    y = make.make_tensor_value_info("y", kinds.FLOAT, [1, 4])
    branches = [make.make_graph([make.make_node(kind, ["x"], ["y"])], kind, [], [y]) for kind in ("Neg", "Abs")]
    nodes = [
        make.make_node("Equal", ["rate", "slow"], ["is_slow"]),
        make.make_node("If", ["is_slow"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = [make.make_tensor_value_info(*port) for port in (("x", kinds.FLOAT, [1, 4]), ("rate", kinds.INT64, []))]
    slow = make.make_tensor("slow", kinds.INT64, [], [8000])
    model = make.make_model(make.make_graph(nodes, "g", inputs, [y], [slow]), opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 8
    path = tmp_path / "rates.onnx"
    onnx.save(model, str(path))
    return path


def test_onnx(nnbuild: Nnbuild, rates: Path, tmp_path: Path) -> None:
    x = numbers(3, 4)
    for rate, right in ((8000, -x), (16000, np.abs(x))):
        np.savez(tmp_path / "s.npz", x=x, y=right)
        assert nnbuild("check", rates, "--fix", f"rate={rate}", "--inputs", tmp_path / "s.npz").status == 0
    said = nnbuild("check", rates)
    assert "or fix what it depends on, if that never changes: --fix rate=NUMBER." in said.err


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        ("speed=1", "--fix speed: the inputs of rates.onnx are rate, x. Name one."),
        ("rate=1.5", "--fix rate: the input is of type int64, which does not hold 1.5. Give a number that it holds."),
        ("x=1e39", "--fix x: the input is of type float32, which does not hold 1e+39. Give a number that it holds."),
        ("x=nan", "--fix x: the input is of type float32, which does not hold nan. Give a number that it holds."),
        ("x=1,2", "--fix x: it has 2 numbers, but the input is [1, 4]. Give one number for all elements, or 4."),
    ],
)
def test_other_numbers_are_refused(nnbuild: Nnbuild, rates: Path, fix: str, said: str) -> None:
    assert_said(nnbuild("compile", rates, "--dry-run", "--fix", fix), said)


def test_one_input_is_left(nnbuild: Nnbuild, rates: Path) -> None:
    said = nnbuild("compile", rates, "--dry-run", "--fix", "x=0", "--fix", "rate=8000")
    assert_said(said, "--fix: no input of rates.onnx is left. Leave it out for one of them.")


@pytest.mark.turns(2)
@pytest.mark.parametrize("build", ["scons", "cmake"])
def test_a_new_project(nnbuild: Nnbuild, rates: Path, build: str, tmp_path: Path) -> None:
    if shutil.which(build) is None:
        pytest.skip(f"{build} is not installed")
    given = ["--model", rates, "--shape", "x=1,4", "--fix", "rate=8000"]
    assert nnbuild("new", tmp_path / "p", "--build", build, *given).status == 0
    if build == "scons":
        done = start("scons", "-C", tmp_path / "p")
    else:
        found = [f"-Dnnbuild_DIR={ROOT / 'nnbuild' / 'builds' / 'cmake'}", f"-DNNBUILD_PYTHON={sys.executable}"]
        assert start("cmake", "-S", tmp_path / "p", "-B", tmp_path / "b", *found).status == 0
        done = start("cmake", "--build", tmp_path / "b", "--target", "server_check")
    assert done.status == 0 and "PASS" in done.text, done.text


def test_a_new_project_of_platformio(rates: Path) -> None:
    parts = Parts("linux", rates, "float", None, None, None, (("x", (1, 4)),), (("rate", (8000.0,)),), "nhwc")
    said = project_files("platformio", parts)["platformio.ini"].decode()
    lines = ["custom_nnbuild_shape = x=1,4", "custom_nnbuild_fix = rate=8000", "custom_nnbuild_io_layout = nhwc"]
    assert "\n".join(lines) in said


def test_samples_that_are_numbered_with_the_fixed_input(nnbuild: Nnbuild, forked: Path, tmp_path: Path) -> None:
    """Which of them are left, nobody knows."""
    np.savez(tmp_path / "s.npz", x0=numbers(2, 2), x1=numbers(2, 3), x2=numbers(2, 1))
    said = nnbuild("check", forked, "--inputs", tmp_path / "s.npz")
    cause = "There is no array for input 'left'; it holds x0, x1, x2. Name the arrays left, right, or x0, x1."
    assert_said(said, f"{tmp_path / 's.npz'}: {cause}")


def test_a_build_says_it_in_words() -> None:
    assert _pairs("fix", "rate=16000;mask=1,0") == (("rate", (16000,)), ("mask", (1, 0)))
    assert _with_numbers(("rate", 16000)) == _with_numbers(["rate", [16000]]) == ("rate", (16000,))
    assert _pairs("fix", PAIRS["fix"][1])
    assert Options(Path("m"), fix=(("rate", (16000.0, 0.5)),)).import_words == ["--fix", "rate=16000,0.5"]


@pytest.mark.parametrize("dtype", ["int64", "uint32"])
def test_what_the_graph_does_not_hold_is_refused(dtype: str, tmp_path: Path) -> None:
    """Whole numbers of Keras are 32 bits with a sign there."""
    parts = [
        called(input_layer("x", [2])),
        called(input_layer("n", [2])),
        called(layer("Concatenate", "y", axis=-1), "x"),
    ]
    parts[1]["config"]["dtype"] = dtype
    parts[2]["inbound_nodes"] = [[["x", 0, 0, {}], ["n", 0, 0, {}]]]
    path = put(tmp_path / "m.h5", h5_bytes(functional(parts, ["x", "n"], ["y"]), {}))
    assert load(path, options=ImportOptions(fixed={"n": (3,)})).inputs == ("x",)
    with pytest.raises(UsageError, match=r"the input is of type int32, which does not hold 4\.29497e\+09\."):
        load(path, options=ImportOptions(fixed={"n": (2.0**32 - 1,)}))


def test_a_type_that_is_not_read_is_told(tmp_path: Path) -> None:
    tensors = [T("x", (2,), "float32", ()), T("s", (2,), "complex64", ()), T("y", (2,), "float32", ())]
    path = tmp_path / "m.tflite"
    path.write_bytes(to_bytes(File(tensors, [O("ABS", [0], [2])], [0, 1], [2])))
    with pytest.raises(UsageError, match=r"--fix s: the input is of type COMPLEX64, which nnbuild does not read\."):
        load(path, options=ImportOptions(fixed={"s": (1,)}))

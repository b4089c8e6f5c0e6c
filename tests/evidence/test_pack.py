"""nnbuild evidence: its own script passes a pack, refuses changed ones, and two machines make the same bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import tampering
from nnbuild import cli
from nnbuild.evidence import coverage, misra, origins
from nnbuild.evidence import pack as pack_module
from nnbuild.evidence.layout import find
from nnbuild.evidence.pack import sites_of
from nnbuild.evidence.replicas import Replica
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Constant, Graph, Op
from nnbuild.ops.activation import Activation
from nnbuild.ops.tolerance import Standard
from tests.frontend.keras_files import called, dense, functional, h5_bytes, input_layer, layer, put, random_arrays
from tests.support.running import ROOT

pytestmark = pytest.mark.slow

SHAPE = (8, 8, 3)
TEMPLATE = ROOT / "nnbuild" / "templates" / "evidence" / "verify.py"


def network(folder: Path) -> Path:
    """A convolution, a depthwise one, a sum of both, a pool and a dense layer; one channel is dead, one nearly so."""
    config = functional(
        [
            called(input_layer("x", list(SHAPE))),
            called(layer("Conv2D", "conv", filters=8, kernel_size=[3, 3], padding="same", activation="relu"), "x"),
            called(layer("DepthwiseConv2D", "deep", kernel_size=[3, 3], padding="same"), "conv"),
            called(layer("Add", "both"), "conv", "deep"),
            called(layer("GlobalAveragePooling2D", "pool"), "both"),
            called(dense("last", 5, activation="softmax"), "pool"),
        ],
        ["x"],
        ["last"],
    )
    config["config"]["layers"][3]["inbound_nodes"] = [[["conv", 0, 0, {}], ["deep", 0, 0, {}]]]
    conv, bias = random_arrays((3, 3, 3, 8), (8,))
    conv[..., 0], conv[..., 1] = 0, conv[..., 1] * 1e-6
    arrays = {"conv": [conv, bias], "deep": random_arrays((3, 3, 8, 1), (8,)), "last": random_arrays((8, 5), (5,))}
    np.savez(folder / "calibration.npz", x=np.random.default_rng(0).normal(size=(16, *SHAPE)).astype(np.float32))
    return put(folder / "net.h5", h5_bytes(config, arrays))


def made(folder: Path, pack: Path, *options: str) -> int:
    model = network(folder)
    int8 = ["--quantize", "int8", "--calibrate", str(folder / "calibration.npz")]
    return cli.main(["evidence", str(model), *int8, "--no-other-boards", "-o", str(pack), *options])


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence")
    assert made(folder, folder / "pack") == 0
    return folder / "pack"


def verified(pack: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(pack / "verify.py")], capture_output=True, text=True)


def facts(pack: Path) -> Any:
    return json.loads((pack / "evidence.json").read_text())


def test_the_script_is_short_and_needs_numpy_alone() -> None:
    text = TEMPLATE.read_text()
    assert len(text.splitlines()) <= 300
    imported = {line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported - set(sys.stdlib_module_names) == {"numpy"}


def test_a_pack_is_complete_and_passes(pack: Path) -> None:
    done = verified(pack)
    assert (done.returncode, done.stderr) == (0, "")
    assert "PASS: 3 layers proved, 3 found in the program, 0 open points" in done.stdout
    assert f"; {len(facts(pack)['replicas'])} targets within 0\n" in done.stdout
    found = facts(pack)
    assert found["open"] == [] and found["not_placed"] == {}
    assert len(found["replicas"]) >= 6 and all(row["same_bits"] for row in found["replicas"])
    covered = found["coverage"]
    assert covered["lines_reached"] > 0.95 * covered["lines"] and all(gap["reason"] for gap in covered["gaps"])
    assert all(rule["why"] for rule in found["misra"]["rules"])
    page = (pack / "index.html").read_text()
    assert "From layers to addresses" in page and "<script" not in page


@pytest.mark.turns(3)
def test_it_is_the_same_wherever_it_is_made(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere" / "deeper"))
    assert made(tmp_path, tmp_path / "pack") == 0
    there = {path.relative_to(pack): path for path in pack.rglob("*") if path.is_file()}
    again = {path.relative_to(tmp_path / "pack"): path for path in (tmp_path / "pack").rglob("*") if path.is_file()}
    assert there.keys() == again.keys()
    assert [str(name) for name in there if there[name].read_bytes() != again[name].read_bytes()] == []


def test_changed_packs_are_refused(pack: Path) -> None:
    refused, passed = tampering.trials(pack, 16, seed=1)
    assert passed == []
    assert set(refused.values()) == {2}


@pytest.mark.parametrize(("kernel", "value"), [("last/kernel", 1e30), ("conv/kernel", 1e-40), ("conv/kernel", 8.0)])
def test_weights_instead_of_zeros_are_refused(kernel: str, value: float, pack: Path, tmp_path: Path) -> None:
    """Large ones, which become 0 where they are cast to bytes, and any in a channel that has none."""
    forger = tampering.Forger(pack, tmp_path)
    row = next(row for row in forger.json("proofs.json")["origins"] if row["constant"] == kernel)
    path = forger.folder / facts(pack)["model"]
    raw = bytearray(path.read_bytes())
    weights = np.frombuffer(bytes(raw), row["dtype"], int(np.prod(row["shape"])), row["offset"])
    at = row["offset"] + 4 * int(np.abs(weights).argmin())
    raw[at : at + 4] = np.array(value, row["dtype"]).tobytes()
    path.write_bytes(bytes(raw))
    forger.hash_again()
    assert forger.verdict() == (1, f"REFUSED: {kernel}: the model file differs")


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        (("proofs", "layers", "places"), "a layer is not proved, or not placed"),
        (("proofs", "places"), "a layer is not proved, or not placed"),
        (("proofs", "origins"), "a constant is not compared with the model file"),
        (("proofs", "packed"), "conv/conv2d: other weights or sums"),
        (("evidence", "replicas"), "vectors or targets are missing"),
        (("evidence", "vectors"), "vectors or targets are missing"),
    ],
)
def test_packs_that_leave_out_proofs_are_refused(what: tuple[str, ...], cause: str, pack: Path, tmp_path: Path) -> None:
    """Without a proof there is nothing to refuse, and the hashes are right."""
    forger = tampering.Forger(pack, tmp_path)
    file, *keys = what
    held = forger.json(f"{file}.json")
    forger.write_json(f"{file}.json", held | {key: type(held[key])() for key in keys})
    forger.hash_again()
    assert forger.verdict() == (1, f"REFUSED: {cause}")


def test_targets_that_err_alike_are_an_open_point() -> None:
    """Floats are compared with the reference, not only with one another."""
    ran = [Replica("gcc", "c99", (), "", {"y": np.full((2, 3), 1.5, np.float32)})]
    right = {"y": Standard(np.full((2, 3), 1.5, np.float32), np.zeros(2))}
    wrong = {"y": Standard(np.full((2, 3), 1.25, np.float32), np.full(2, 1e-6))}
    assert pack_module._unlike(right, ran) == []
    assert pack_module._unlike(wrong, ran) == ["gcc: output y differs from the reference"]


@pytest.mark.full
@pytest.mark.parametrize("board", ["linux", "stm32"])
def test_hundreds_of_changed_packs_are_refused(tmp_path: Path, board: str) -> None:
    assert made(tmp_path, tmp_path / "pack", "--board", board) == 0
    _, passed = tampering.trials(tmp_path / "pack", 640, seed=2)
    assert passed == []


def test_numbers_that_round_otherwise_are_refused(pack: Path, tmp_path: Path) -> None:
    """Even where program and proof agree: the rule itself is computed again."""
    forger = tampering.Forger(pack, tmp_path)
    arrays, proofs = forger.arrays(), forger.json("proofs.json")
    key = proofs["layers"][0]["columns"]["multiplier"]
    right = arrays[key].copy()
    arrays[key][2] += 1
    for name, data in arrays.items():
        if data.dtype == np.int32 and name.startswith("p") and np.array_equal(data[: len(right)], right):
            program = forger.folder / facts(pack)["program"]
            raw = program.read_bytes()
            arrays[name] = data + np.eye(1, len(data), 2, dtype=np.int32)[0]
            program.write_bytes(raw.replace(data.tobytes(), arrays[name].tobytes()))
            break
    else:
        pytest.fail("the program holds no such numbers")
    forger.write_arrays(arrays)
    forger.hash_again()
    code, said = forger.verdict()
    assert code == 1 and "another multiplier" in said


@pytest.mark.parametrize("board", ["linux", "stm32", "microbit", "stm32f100", "mps2-an500"])
@pytest.mark.parametrize("optimize", ["speed", "size"])
def test_weights_and_numbers_are_found_on_all_processors(tmp_path: Path, board: str, optimize: str) -> None:
    options = Options(network(tmp_path), board, "int8", tmp_path / "calibration.npz", optimize=optimize)
    for step in compile_model(options).plan.steps:
        for site, kernel in sites_of(step):
            if "kernel" in site.constants:
                found = find(site, kernel)
                assert found is not None, kernel.name
                assert found[1] is not None and found[1].complete, kernel.name


@pytest.mark.turns(4)
@pytest.mark.parametrize("board", ["linux", "stm32"])
def test_words_and_their_long_multipliers_are_found(tmp_path: Path, board: str) -> None:
    """Lower halves of multipliers often end in zeros, of which hashes say little."""
    assert made(tmp_path, tmp_path / "pack", "--quantize", "int16", "--board", board) == 0
    done = verified(tmp_path / "pack")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.turns(4)
@pytest.mark.parametrize("option", [("--weights-bits", "4"), ("--share", "6")])
def test_compressed_weights_pass(tmp_path: Path, option: tuple[str, str]) -> None:
    assert made(tmp_path, tmp_path / "pack", *option, "--optimize", "size", "--board", "stm32") == 0
    done = verified(tmp_path / "pack")
    assert done.returncode == 0, done.stderr


@pytest.mark.turns(4)
@pytest.mark.parametrize("stream", ["0,hop=2", "1"])
def test_a_stream_is_fed_row_by_row(tmp_path: Path, stream: str) -> None:
    """What takes a row is a part of the program, so that the vectors reach it; on either axis of an image."""
    pack = tmp_path / "pack"
    assert made(tmp_path, pack, "--stream", stream) == 0
    assert verified(pack).returncode == 0


@pytest.mark.turns(3)
def test_a_pack_that_its_script_refuses_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = pack_module.write

    def damaged(made: pack_module.Pack, folder: Path) -> None:
        write(made, folder)
        (folder / "graph.json").write_bytes(b"{}")

    monkeypatch.setattr(pack_module, "write", damaged)
    assert made(tmp_path, tmp_path / "pack") == 1
    told = capsys.readouterr().out
    assert "open: verify.py: REFUSED: graph.json has another hash" in told or "REFUSED: the pack is damaged" in told
    assert "FAIL: re-check it with" in told


@pytest.mark.turns(4)
@pytest.mark.parametrize("board", ["linux", "stm32"])
def test_files_whose_sums_are_rounded_once_pass(tmp_path: Path, board: str) -> None:
    """As onnxruntime's quantizer writes them: a convolution, a mean and a dense layer, each between conversions."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    chance, nodes, held = np.random.default_rng(3), [], {}

    def between(name: str, scale: float, point: int) -> str:
        held.update({f"{name}_s": np.float32(scale), f"{name}_z": np.int8(point)})
        nodes.append(helper.make_node("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [f"{name}_d"]))
        return f"{name}_d"

    def weights(name: str, *shape: int) -> str:
        held.update({name: chance.integers(-127, 128, shape).astype(np.int8), f"{name}_s": np.float32(0.004)})
        held[f"{name}_z"] = np.int8(0)
        nodes.append(helper.make_node("DequantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_d"]))
        return f"{name}_d"

    nodes.append(
        helper.make_node("Conv", [between("x", 0.03, 3), weights("w", 6, 3, 3, 3)], ["c"], kernel_shape=[3, 3])
    )
    nodes.append(helper.make_node("ReduceMean", [between("c", 0.05, -7)], ["m"], axes=[2, 3], keepdims=0))
    nodes.append(helper.make_node("Gemm", [between("m", 0.01, 5), weights("v", 6, 4)], ["y"]))
    nodes.append(helper.make_node("Identity", [between("y", 0.02, 0)], ["out"]))
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])]
    ends.append(helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 4]))
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    made_of = ["evidence", str(tmp_path / "net.onnx"), "--board", board, "--no-other-boards"]
    assert cli.main([*made_of, "-o", str(tmp_path / "pack")]) == 0
    found = verified(tmp_path / "pack")
    assert found.returncode == 0, found.stderr
    assert "2 layers proved" in found.stdout


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (3,), (2, 1, 3), (2, 3, 2, 4)])
def test_constants_are_found_in_the_model_file(shape: tuple[int, ...]) -> None:
    """Whatever the order of their axes there, and also as factors that were folded in and rounded."""
    data = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    held = data.transpose(tuple(reversed(range(data.ndim)))).tobytes()
    op = Op("op", Activation("tanh", ()), ("x",), ("y",), {"kernel": "k"})
    imported = Graph("net", {}, {"k": Constant("k", data)}, (op,), (), ())
    factors = np.arange(1, 1 + data.shape[-1]) if shape else np.ones(1)
    steps = np.rint(data.astype(np.float64) * factors * 8).astype(np.int8)
    for constant, exact in ((data, True), (steps, False)):
        graph = Graph("net", {}, {"k": Constant("k", constant.copy())}, (op,), (), ())
        found, missing = origins.origins(imported, graph, b"before" + held + b"behind")
        if exact or len(shape) > 1:
            assert missing == {}
            assert found[0].spot.offset == 6 and (found[0].ratio is None) == exact
        else:
            assert missing.keys() == {"k"}


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("")
    assert cli.main(["evidence", "net.h5", "-o", str(tmp_path)]) == 2
    assert "a pack needs an empty folder, and this one is not empty" in capsys.readouterr().err


def test_without_cppcheck_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nnbuild.base.errors import ToolMissing
    from nnbuild.emit.artifact import Artifact

    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolMissing, match="cppcheck"):
        misra.findings(Artifact({}), tmp_path)


def test_a_rule_without_a_justification_is_named() -> None:
    found = misra.counted("Cppcheck", "a.c:3:misra-c2012-15.5\na.c:4:misra-c2012-99.9\na.c:3:misra-c2012-15.5\n")
    assert found.counts == {"15.5": 1, "99.9": 1}
    assert found.unjustified == ["99.9"]


def test_transformed_weights_leave_their_numbers_to_be_found(tmp_path: Path) -> None:
    """Winograd's form: a multiplier that would do as well as the program's is another one all the same."""
    convolution = layer("Conv2D", "conv", filters=32, kernel_size=[3, 3], padding="same", activation="relu")
    config = functional([called(input_layer("x", [16, 16, 32])), called(convolution, "x")], ["x"], ["conv"])
    model = put(tmp_path / "net.h5", h5_bytes(config, {"conv": random_arrays((3, 3, 32, 32), (32,))}))
    compiled = compile_model(Options(model, "stm32", "int8"))
    (site, kernel), *_ = (pair for step in compiled.plan.steps for pair in sites_of(step) if pair[0].constants)
    assert "winograd" in kernel.name
    found = find(site, kernel)
    assert found is not None and found[1] is not None and not found[1].complete
    seen = np.concatenate([part.first for part in found[1].parts])
    first = site.constants["kernel"].data.size + 32 * found[1].roles.index("multiplier")
    assert set(range(first, first + 32)) <= set(seen.tolist())


def test_long_names_are_a_deviation(tmp_path: Path) -> None:
    network(tmp_path)
    options = Options(tmp_path / "net.h5", "stm32", "int8", calibrate=tmp_path / "calibration.npz", name="n" * 63)
    found = misra.findings(compile_model(options).artifact, tmp_path)
    assert "5.1" in found.counts
    assert found.unjustified == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("if (status != 0) {", coverage.STATUS),
        ("if (value < -128) value = -128;", coverage.BOUND),
        ("int32_t result0 = (sum0 > 0 ? sum0 + 62 : sum0 - 62) / 125;", coverage.SIGN),
        ("if (first < last) {", coverage.SIZES),
        ("const int32_t next = x + 1 < end ? x + 1 : x;", coverage.SIZES),
        ("if (even < end) {", coverage.SIZES),
        ("const int32_t rows = end - strip < 3 ? end - strip : 3;", coverage.SIZES),
        ("if (piece == begin || block == 0) {", coverage.SIZES),
        ("lift(out + (begin < 12 ? begin * 4 : 45) * 24, ((end * 4 < 49 ? end * 4 : 49) - 3) * 24);", coverage.SIZES),
        ("lift(out + (begin < 12 ? begin * 4 : 45) * 24, (in[0] < 3 ? 1 : 2) * 24);", ""),
        ("if (in[x] > largest) {", ""),
        ("out[x] = (int8_t)value;", ""),
    ],
)
def test_reasons_are_given_where_they_are_known(line: str, reason: str) -> None:
    texts = ["void net_00_x(void)", "{", f"    {line}", "}"]
    assert coverage.reason(texts, 2, "net_00_x", frozenset({"net_00_x"})) == reason
    assert coverage.reason(texts, 2, "net_expf", frozenset({"net_00_x"})) == coverage.LIBRARY


def test_what_stands_under_a_condition_has_its_reason() -> None:
    texts = ["void f(void)", "{", "    while (left < last) {", "        out[0] = in[0];", "    }", "}"]
    assert coverage.reason(texts, 3, "f", frozenset({"f"})) == coverage.SIZES

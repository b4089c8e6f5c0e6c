"""Short runs of the `.onnx` fuzzer: what is spoilt is refused in words, or imported, planned and printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx import load
from nnbuild.frontend.onnx.protobuf import Damaged, Message, unpacked
from tests.fuzz.harness import replayed
from tests.fuzz.onnx_models import FUZZER

pytestmark = pytest.mark.fuzz


def fuzzed(cases: int, seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.onnx_models", "--cases", str(cases), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.turns(4)
def test_spoilt_models_are_refused_in_words() -> None:
    fuzzed(200, seed=11)


@pytest.mark.full
def test_many_spoilt_models_are_refused_in_words() -> None:
    fuzzed(20_000, seed=12)


@pytest.mark.oracle  # their files come from the onnx package, slowly
@pytest.mark.parametrize(
    "case",
    [
        *((3, 1440), (3, 22133), (3, 13865), (3, 104467), (3, 105082), (4, 7868), (5, 4070), (7, 6146), (4, 30518)),
        *((8, 57988), (8, 84983), (8, 201660), (8, 212379), (8, 318703)),
        *((8, 478804), (8, 521688), (8, 590754), (8, 633014), (8, 635839), (8, 724655)),
    ],
)
def test_what_longer_runs_found(case: tuple[int, int], tmp_path: Path) -> None:
    replayed(FUZZER, *case, tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"\x0a", b"\x0a\x05ab", b"\x08" + b"\xff" * 11, b"\x0b", b"\x07\x01", b"\x00\x00", b"\x0a\xff\xff\xff\xff\x0f"],
)
def test_broken_bytes_are_no_message(data: bytes) -> None:
    with pytest.raises(Damaged):
        Message(memoryview(data))


def test_outputs_that_are_read_again_keep_their_names(tmp_path: Path) -> None:
    """A node's second output is the tensor that its first is computed from."""
    from onnx import helper

    ports = {
        name: helper.make_tensor_value_info(name, 1, [1, 2, 4, 8]) for name in ("q", "k", "v", "y", "keys", "values")
    }
    past = {name: helper.make_tensor_value_info(name, 1, [1, 2, 3, 8]) for name in ("pk", "pv")}
    for name in ("keys", "values"):
        ports[name].type.tensor_type.shape.dim[2].dim_value = 7
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "keys", "values"])
    inputs = [ports["q"], ports["k"], ports["v"], past["pk"], past["pv"]]
    graph = helper.make_graph([node], "g", inputs, [ports["y"], ports["keys"], ports["values"]])
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]).SerializeToString())
    assert load(path, "net").outputs == ("y", "keys", "values")


def test_numbers_that_do_not_end_are_no_list() -> None:
    assert unpacked(memoryview(b"\x01\xac\x02\x00")).tolist() == [1, 300, 0]
    for data in (b"\x80", b"\x01\xff", b"\x80" * 11 + b"\x01"):
        with pytest.raises(Damaged):
            unpacked(memoryview(data))


@pytest.mark.parametrize("name", ["../weights.bin", "/etc/hostname", "", "a/../../weights.bin"])
def test_weights_lie_in_the_models_own_folder(name: str, tmp_path: Path) -> None:
    import onnx

    (tmp_path / "weights.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "net.onnx"

    def written(location: str) -> Path:
        helper = onnx.helper
        ports = [helper.make_tensor_value_info(n, 1, [1, 4]) for n in "xy"]
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ports[:1], ports[1:])
        tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
        tensor.external_data.add(key="location", value=location)
        graph.initializer.append(tensor)
        path.write_bytes(helper.make_model(graph).SerializeToString())
        return path

    with pytest.raises(ModelError, match="outside the model's folder"):
        load(written(name), "net")
    (folder / "weights.bin").write_bytes(bytes(16))
    assert load(written("weights.bin"), "net").outputs == ("y",)
    (folder / "weights.bin").write_bytes(bytes(8))
    with pytest.raises(ModelError, match="ends before its 16 bytes"):
        load(path, "net")

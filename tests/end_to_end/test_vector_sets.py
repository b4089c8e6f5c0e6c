"""What the benchmarks of instruction sets count and say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import aarch64, vector_sets
from benchmarks.models import SHARED
from nnbuild.board.tables import find
from nnbuild.isa.registry import fits, isas

TOOLS = {
    "linux-rv64v": ("clang-19", "ld.lld-19", "qemu-riscv64"),
    "mps3-an547": ("arm-none-eabi-gcc", "qemu-system-arm"),
}
KWS = SHARED / "kws_ref_model.tflite"


def test_bars_are_of_sets_that_their_boards_have() -> None:
    places = {(bar.isa, bar.board) for bar in vector_sets.BARS} | {(isa, board) for isa, board, *_ in vector_sets.AHEAD}
    assert [place for place in places if not fits(isas()[place[0]], find(place[1]).architecture)] == []
    vectors = {"neon", "neon_dotprod", "neon_i8mm", "rvv", "rvv256", "mve"}
    assert vectors | {"rv32im", "armv7em_dsp"} == {isa for isa, _ in places}


@pytest.mark.parametrize(("found", "how"), [(1.2, "aim met"), (1.3, "met"), (1.5, "met"), (1.51, "missed")])
def test_verdicts(found: float, how: str) -> None:
    assert vector_sets.verdict(found, vector_sets.Bar("neon", "linux-arm64", "kws", 1.5, 1.2)) == how


def test_the_peer_sees_the_processor_it_is_to_choose_kernels_for() -> None:
    told = {each.isa: each.cpuinfo for each in aarch64.PROCESSORS}
    assert "CPU part\t: 0xd08" in told["neon"] and "asimddp" not in told["neon"]
    assert "asimddp" in told["neon_dotprod"] and "i8mm" not in told["neon_dotprod"]
    assert told["neon_i8mm"].splitlines()[1].endswith(" asimddp bf16 i8mm")


def test_a_table_has_the_compiler_and_the_processor_that_are_named(tmp_path: Path) -> None:
    made = vector_sets.table_of("linux-arm64", "gcc", tmp_path, "cortex-a72")
    assert made is not None
    found = find(str(made))
    assert [tool["name"] for tool in found.table["toolchains"]] == ["gcc"]
    assert found.table["emulator"]["command"][1:3] == ["-cpu", "cortex-a72"]
    assert vector_sets.table_of("linux-rv64v", "gcc", tmp_path) is None


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize(
    ("model", "board", "isa", "most"),
    [
        ("kws_ref_model.h5", "linux-rv64v", "rvv", 850_000),
        ("onnx/gru_tagger_script.onnx", "linux-rv64v", "rvv", 200_000),
        ("onnx/encoder_script.onnx", "linux-rv64v", "rvv", 270_000),
        ("onnx/encoder_script.onnx", "mps3-an547", "mve", 600_000),
    ],
)
def test_floats_in_vectors(model: str, board: str, isa: str, most: int, tmp_path: Path) -> None:
    """They pass the audit: no double precision, no frame whose size cannot be told."""
    if not (SHARED / model).is_file():
        pytest.skip(f"{model} is not here")
    table = vector_sets.table_of(board, None, tmp_path)
    if table is None or not all(shutil.which(tool) for tool in TOOLS[board]):
        pytest.skip(f"no tools for {board}")
    assert vector_sets.instructions(str(SHARED / model), table, isa) <= most


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "give models, or --bars"),
        (["--bars", "net.h5"], "give models, or --bars"),
        (["--bars", "--sets", "neno"], "there is no 'neno', only armv7m"),
        (["net.h5", "--boards", "rv32,pc"], "there is no 'pc', only linux-arm64"),
        (["--bars", "--model", "vgg"], "invalid choice: 'vgg'"),
    ],
)
def test_words_that_mean_nothing(words: list[str], cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        vector_sets.main(words)
    assert ended.value.code == 2 and cause in capsys.readouterr().err


@pytest.mark.full
def test_ours_and_the_peers_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    """One model on one processor: all four columns, or why one is missing."""
    if not KWS.is_file():
        pytest.skip(f"{KWS.name} is not here")
    aarch64.main([str(KWS), "--processor", "neon_dotprod"])
    said = capsys.readouterr()
    cells = said.out.splitlines()[-1].split("neon_dotprod")[1].split()[:4]
    if "-" in cells:
        pytest.skip(said.err)
    clang, gcc, *peers = (int(cell.replace(",", "")) for cell in cells)
    assert clang <= 480_000 and gcc <= 520_000
    assert min(peers) > 1.3 * clang

"""The table of the accelerator, where it lies beside an emulated processor, and what is said where it cannot."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.firmware.line import open_line
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.base.mapped_device import MappedDevice
from nnbuild.board.tables import find
from nnbuild.cli import main
from nnbuild.offload.table import find_device, read_device
from tests.systolic.simulated import FOLDER

PLACE = MappedDevice(0x5006_0000, 0x6000_0000, 0x100_0000, 6, Path("some, where.so"))


def test_it_is_found_by_its_name() -> None:
    device = find_device("systolic")
    assert [driver.name for driver in device.drivers] == ["simulator", "uio", "mmio"]
    assert device.drivers[2].simulated == (0x5006_0000, 0x6000_0000, 0x100_0000, 6)


def test_a_place_survives_the_command_line() -> None:
    assert MappedDevice.parsed(PLACE.option()) == PLACE


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("interrupt = 6", "", "driver.mmio.simulated.interrupt is missing"),
        ("interrupt = 6", "interrupt = -1", "driver.mmio.simulated.interrupt = -1 is not an integer"),
        (
            "interrupt = 6",
            "interrupts = 6",
            "driver.mmio.simulated.interrupts is not a known field. Did you mean interrupt",
        ),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, cause: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "mine")
    table = tmp_path / "mine" / "device.toml"
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(UsageError, match=cause):
        read_device(table)


def test_a_board_that_unicorn_has_not_is_refused(tmp_path: Path) -> None:
    board = replace(find("mps2-an386"), mapped=lambda: PLACE)
    with pytest.raises(ToolMissing, match="simulated in unicorn only, which does not have this board"):
        open_line(board, tmp_path / "program.elf", None)


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("profile",),
        ("profile", "--alternatives"),
        ("mutate",),
        ("run", "--inputs", "x.npz", "--outputs", "y.npz"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(
    ("board", "cause"),
    [("mps2-an386", "simulated in unicorn only, which does not have this board"), ("pico", "no emulator supports it")],
)
def test_what_no_emulator_runs_is_refused_before_the_model_is_read(
    words: tuple[str, ...], board: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "gone.h5", "--board", board, "--device", "systolic"]) == ToolMissing.exit_code
    assert cause in capsys.readouterr().err


def test_a_device_that_nothing_simulates_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unless its driver computes the tasks itself."""
    shutil.copytree(FOLDER, tmp_path / "mine")
    table = tmp_path / "mine" / "device.toml"
    text = table.read_text()
    table.write_text(text[: text.index("[driver.mmio.simulated]")])
    words = ["check", "gone.h5", "--board", "stm32f405", "--device", str(table.parent)]
    assert main(words) == ToolMissing.exit_code
    assert "the driver mine:mmio needs its device, which no emulator has" in capsys.readouterr().err
    table.write_text(table.read_text() + "software = true\n")
    assert main(words) == UsageError.exit_code  # there is no such model
    assert "gone.h5" in capsys.readouterr().err


def test_reports_leave_out_a_run_that_no_emulator_can_do() -> None:
    backend, board = backend_of(find("stm32f405")), find("stm32f405")
    assert backend.cannot_run(board, None) == ""
    real = replace(board, real_device="mine:mmio")
    assert backend.cannot_run(real, None) == "the driver mine:mmio needs its device, which no emulator has"
    assert backend.cannot_run(real, "/dev/ttyACM0") == ""
    other = replace(find("mps2-an386"), mapped=lambda: PLACE)
    assert "simulated in unicorn only" in backend.cannot_run(other, None)


def test_evidence_of_a_device_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "gone.h5", "--device", "systolic", "-o", str(tmp_path / "pack")]) == UsageError.exit_code
    assert "--device systolic: a pack compares boards and compilers" in capsys.readouterr().err

"""Which tool flashes a board, what it is called with, and which programs are refused before anything is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import serial

from nnbuild.backends.firmware.flash import choose, flash_program, image_for
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import boards, find
from nnbuild.device.bootloader import HalfFlashed
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.program_files import descriptor_of, refuse_other_model
from tests.cli.conftest import Nnbuild, model, nnbuild  # noqa: F401 - fixtures

FLASHED = [board for board in boards() if board.flash is not None]
Built = Callable[..., Path]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """A program of so many bytes that says it is for a board."""
    compiler = shutil.which("arm-none-eabi-gcc")
    if compiler is None:
        pytest.skip("arm-none-eabi-gcc is not installed")

    environment = dict(os.environ)  # as it was before a test took the tools away

    def build(mark: str | None = "stm32f405", size: int = 1000, address: int = 0x08000000) -> Path:
        (tmp_path / "x.S").write_text(f".section .text\n.global _start\n_start:\n.fill {size}, 1, 0xa5\n")
        marks = [f"-Wl,--defsym=nn_board_{mark}=0"] if mark else []
        command = [compiler, "-nostdlib", f"-Wl,-Ttext={address:#x}", *marks, "x.S", "-o", "x.elf"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=environment)
        return tmp_path / "x.elf"

    return build


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A PATH with nothing on it but stand-ins that note how they were called and run these lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    shell = "/bin/sh"

    def have(name: str, lines: str = "") -> Path:
        (folder / name).write_text(f'#!{shell}\nfor word; do echo "$word" >> {tmp_path}/called; done\n{lines}\n')
        (folder / name).chmod(0o755)
        return tmp_path / "called"

    return have


def quiet(what: str) -> Callable[[int, int | None], None]:
    return lambda done, total: None


MAKERS_OWN = {"pico2-riscv": "picotool", "esp32c3-devkitm": "esptool", "esp32c6-devkitc": "esptool"}
"""What their makers flash them with; they have no other tool in common with the rest."""


@pytest.mark.parametrize("board", FLASHED, ids=lambda board: board.name)
def test_tables(board: Any) -> None:
    """Pages, where they are given, make up the whole flash; every tool can be called."""
    assert not board.flash.pages or sum(board.flash.pages) == board.memory("flash").length
    tools = {tool.name for tool in board.flash.tools}
    if board.flash.chip:
        assert tools == {"serial", "openocd", "st-flash", "pyocd"}
    else:  # without a bootloader that is spoken here
        assert tools == {MAKERS_OWN.get(board.name, "pyocd")}
    places = dict.fromkeys(("elf", "hex", "bin", "address", "size", "read"), "x")
    for tool in board.flash.tools:
        assert all(word.format(**places) for command in tool.commands for word in command)


def test_the_boards_order(tools: Callable[..., Path]) -> None:
    tools("openocd")
    tools("st-flash")
    assert choose(find("stm32"), None, None).name == "openocd"
    assert choose(find("stm32"), None, "/dev/ttyUSB0").name == "serial"
    assert choose(find("nucleo-f446re"), None, "/dev/ttyACM0").name == "openocd"
    assert choose(find("nucleo-f446re"), "st-flash", None).name == "st-flash"
    assert choose(find("nucleo-f446re"), "serial", "/dev/ttyUSB0").name == "serial"


def test_nothing_to_flash_with(tools: Callable[..., Path]) -> None:
    with pytest.raises(ToolMissing) as raised:
        choose(find("stm32"), None, None)
    assert str(raised.value) == (
        "board 'stm32f405': no tool to flash it is usable (serial, openocd, st-flash, pyocd). "
        "connect a serial port and name it with --port; or apt install openocd; or apt install stlink-tools; "
        "or pip install pyocd"
    )
    assert raised.value.exit_code == 3
    with pytest.raises(ToolMissing, match=r"--tool openocd: it is not installed. For board 'stm32f405': apt install"):
        choose(find("stm32"), "openocd", None)
    with pytest.raises(ToolMissing, match="--tool serial: no port is named"):
        choose(find("stm32"), "serial", None)


def test_unknown_tool_and_board_without() -> None:
    with pytest.raises(
        UsageError, match=r"--tool dfu: board 'stm32f405' does not support this tool. Its tools: serial, "
    ):
        choose(find("stm32"), "dfu", None)
    with pytest.raises(UsageError, match="board 'rv32': its table names no flash tool"):
        choose(find("rv32"), None, None)


def test_the_command_is_shown(built: Built, tools: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> None:
    program = built()
    called = tools("openocd", 'echo "** Verified OK **"')
    assert flash_program(find("stm32"), program, progress=quiet) == "openocd"
    words = called.read_text().splitlines()
    assert words[:5] == ["-f", "interface/stlink.cfg", "-f", "target/stm32f4x.cfg", "-c"]
    assert words[5].startswith("program /") and words[5].endswith("program.hex verify reset exit")
    said = capfd.readouterr()
    assert said.err.startswith("openocd -f interface/stlink.cfg -f target/stm32f4x.cfg -c 'program /")
    assert "** Verified OK **" in said.out


def test_a_tool_that_fails(built: Built, tools: Callable[..., Path]) -> None:
    program = built()
    tools("st-flash", "exit 7")
    with pytest.raises(HalfFlashed) as raised:
        flash_program(find("stm32"), program, tool="st-flash", progress=quiet)
    assert str(raised.value) == (
        "st-flash on board 'stm32f405': It ended with code 7, and the part may be erased or half written. "
        "See its output above, check the probe and its cable, and flash again."
    )


@pytest.mark.parametrize("same", [True, False])
def test_a_tool_that_does_not_compare(built: Built, tools: Callable[..., Path], same: bool) -> None:
    """pyocd reads the flash back into a file; a wrong byte in it is found by us."""
    program = built()
    cp = shutil.which("cp", path="/bin:/usr/bin")
    lines = f'set -- $7\n{cp} "${{4%.read}}.bin" "$4"\n' + ("" if same else 'echo >> "$4"')
    tools("pyocd", lines)
    if same:
        assert flash_program(find("stm32"), program, tool="pyocd", progress=quiet) == "pyocd"
        return
    with pytest.raises(HalfFlashed, match="The data read back differs from the data written"):
        flash_program(find("stm32"), program, tool="pyocd", progress=quiet)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"mark": "nucleo_f446re"}, "It was built for nucleo-f446re, not for stm32f405. Build it for stm32f405."),
        ({"mark": None}, "It does not name its board. Build it for stm32f405."),
        ({"address": 0}, "It begins at 0x00000000, and the flash of stm32f405 at 0x08000000. Build it for stm32f405."),
        ({"size": 1_048_577}, "It takes 1,048,608 bytes, 32 more than the flash of stm32f405 has."),
    ],
)
def test_programs_that_are_refused(built: Built, wrong: dict[str, Any], text: str) -> None:
    program = built(**wrong)
    with pytest.raises(UsageError) as raised:
        image_for(find("stm32"), program)
    assert text in str(raised.value)
    assert raised.value.exit_code == 2


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no such program"):
        image_for(find("stm32"), tmp_path / "none.elf")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(UsageError, match=r"It is not an ELF program .* Give the program.elf of a build"):
        image_for(find("stm32"), tmp_path / "text")


def test_a_program_with_another_model(nnbuild: Nnbuild, model: Path, built: Built, tools: Callable[..., Path]) -> None:  # noqa: F811
    program = built()
    tools("openocd")
    said = nnbuild("flash", model, "--board", "stm32", "--program", program)
    assert said.status == 2
    assert "It contains another model, or was built with other options. Build it anew." in said.err


def test_a_program_with_a_front_end_is_told_from_others(model: Path, tmp_path: Path) -> None:  # noqa: F811
    """By the front end as well as by the network."""
    keyword = EXAMPLE.parent / "keyword"
    heard = compile_model(Options(keyword / "words.h5", board="stm32", features=keyword / "sound.toml"))
    program = tmp_path / "program"
    program.write_bytes(descriptor_of(heard))
    refuse_other_model(heard, program)
    for other in (Options(keyword / "words.h5", board="stm32"), Options(model, board="stm32")):
        with pytest.raises(UsageError, match="It contains another model"):
            refuse_other_model(compile_model(other), program)


def test_parity_of_the_bootloader(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even parity for the bootloader, at the board's rate."""
    asked: dict[str, Any] = {}

    def port(path: str, **settings: Any) -> None:
        asked.update(settings, path=path)
        raise serial.SerialException(16, "busy")

    monkeypatch.setattr(serial, "serial_for_url", port)
    with pytest.raises(ToolMissing, match="Another program is using this port"):
        flash_program(find("stm32"), built(), port="/dev/ttyUSB0", progress=quiet)
    assert (asked["path"], asked["baudrate"], asked["parity"]) == ("/dev/ttyUSB0", 115_200, serial.PARITY_EVEN)

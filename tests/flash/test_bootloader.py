"""The stand-in for the ROM's bootloader answers as the real ones do: stm32flash, unmodified, flashes it."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.board.tables import find
from tests.flash.bootloader import Rom, on_pty


@pytest.mark.parametrize("name", ["stm32f405", "stm32f100", "nucleo-f446re"])
@pytest.mark.parametrize("extended", [True, False])
def test_stm32flash_takes_it_for_real(tmp_path: Path, name: str, extended: bool) -> None:
    """A pty has no parity, so stm32flash is told to do without."""
    if shutil.which("stm32flash") is None:
        pytest.skip("stm32flash is not installed")
    image = tmp_path / "image.bin"
    image.write_bytes(random.Random(0).randbytes(40_000))
    board = find(name)
    rom = Rom(board, extended=extended)
    with on_pty(board, rom, tmp_path) as port:
        command = ["stm32flash", "-m", "8n1", "-b", "115200", "-w", str(image), "-v", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"0x{rom.chip:04x}" in done.stdout
    assert rom.flash[:40_000] == image.read_bytes()
    assert rom.flash[40_000:40_100] == b"\xff" * 100

"""The driver's port through Linux' userspace I/O, with a file in the place of the device."""

from __future__ import annotations

import mmap
import os
import subprocess
from pathlib import Path

from nnbuild.base.paths import FIRMWARE
from tests.systolic.simulated import FOLDER, device

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror", "-O1")
ABSENT, OK = "1", "0"


def test_registers_and_memory_are_mapped(tmp_path: Path) -> None:
    program, file = tmp_path / "program", tmp_path / "uio"
    own = [FIRMWARE / "device" / "nn_device.c", *(FOLDER / "driver" / f"{name}.c" for name in ("systolic", "uio"))]
    includes = [f"-I{FIRMWARE / 'include'}", f"-I{FOLDER / 'driver'}"]
    subprocess.run(["gcc", *STRICT, *includes, *own, Path(__file__).parent / "uio.c", "-o", program], check=True)

    def ends(expected: str) -> int:
        return subprocess.run([program, expected], env={**os.environ, "NN_SYSTOLIC_UIO": str(file)}).returncode

    assert ends(ABSENT) == 0
    with file.open("wb") as made:
        made.truncate(mmap.PAGESIZE + (1 << 24))
    assert ends(ABSENT) == 0  # another device
    with file.open("r+b") as made:
        made.write(device().ID.to_bytes(4, "little") + device().VERSION.to_bytes(4, "little"))
    assert ends(OK) == 0
    with file.open("rb") as made:
        made.seek(mmap.PAGESIZE + 0x1003)
        assert made.read(5) == bytes([1, 2, 3, 4, 5])

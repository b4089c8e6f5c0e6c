"""nn_device.c with a driver that does what the test tells it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nnbuild.base.paths import FIRMWARE

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror", "-fsanitize=undefined")


def test_tickets_deadlines_tags_and_memory(tmp_path: Path) -> None:
    program = tmp_path / "api"
    sources = [FIRMWARE / "device" / "nn_device.c", Path(__file__).parent / "device_api.c"]
    subprocess.run(["gcc", *FLAGS, f"-I{FIRMWARE / 'include'}", *sources, "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0


def test_the_header_is_short_enough_to_be_read() -> None:
    assert len((FIRMWARE / "include" / "nn_device.h").read_text().splitlines()) <= 200

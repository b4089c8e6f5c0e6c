"""What the link costs on a microcontroller, and that it needs nothing there but memcpy and memset."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from link_devices import LINK, ROOT, WARNINGS

needs_arm = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")


def compile_arm(folder: Path, cpu: str, payload: int) -> list[Path]:
    objects = []
    for source in LINK:
        target = folder / f"{source.stem}.o"
        command = ["arm-none-eabi-gcc", *WARNINGS, "-mthumb", f"-mcpu={cpu}", "-Os", "-ffreestanding"]
        options = [
            "-I",
            str(ROOT / "firmware/link"),
            f"-DNN_LINK_PAYLOAD={payload}u",
            "-c",
            str(source),
            "-o",
            str(target),
        ]
        done = subprocess.run([*command, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        objects.append(target)
    return objects


@needs_arm
@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7"])
def test_flash_stays_small(tmp_path: Path, cpu: str) -> None:
    objects = compile_arm(tmp_path, cpu, 1024)
    listing = subprocess.run(["arm-none-eabi-size", *objects], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()[1:]]
    assert sum(int(row[0]) for row in rows) <= 2304
    assert all(row[1:3] == ["0", "0"] for row in rows), "the link owns no static data"


@needs_arm
def test_nothing_else_is_needed(tmp_path: Path) -> None:
    objects = compile_arm(tmp_path, "cortex-m0", 128)
    listing = subprocess.run(["arm-none-eabi-nm", *objects], capture_output=True, text=True, check=True).stdout
    defined = set(re.findall(r" [TR] (\w+)", listing))
    needed = set(re.findall(r" U (\w+)", listing)) - defined
    ours = ("nn_platform_", "nn_target_")
    jump_table = "__gnu_thumb1_case_"  # gcc's way to write a switch on this core; it is in libgcc
    assert {name for name in needed if not name.startswith((*ours, jump_table))} == {"memcpy", "memset"}


@needs_arm
@pytest.mark.parametrize(("payload", "most"), [(128, 360), (1024, 2160)])
def test_ram_follows_the_payload(tmp_path: Path, payload: int, most: int) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text(f'#include "nn_link.h"\ntypedef char fits[sizeof(nn_link) <= {most} ? 1 : -1];\n')
    command = ["arm-none-eabi-gcc", *WARNINGS, "-mthumb", "-mcpu=cortex-m0", f"-DNN_LINK_PAYLOAD={payload}u"]
    done = subprocess.run(
        [*command, "-I", str(ROOT / "firmware/link"), "-fsyntax-only", str(probe)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

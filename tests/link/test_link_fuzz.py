"""The fuzzer of the device's side, in a short and a long run, with the smallest and the usual frames."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from link_devices import HERE, LINK, compile_c

SANITIZE = ("-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def fuzz(folder: Path, payload: int, count: int, seed: int, compiler: str = "gcc") -> None:
    sources = [*LINK, HERE / "fuzz_link.c", HERE / "fake_target.c"]
    program = compile_c(sources, folder / "fuzz", f"-DNN_LINK_PAYLOAD={payload}u", *SANITIZE, compiler=compiler)
    done = subprocess.run([program, str(count), str(seed)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    statuses = [int(value) for value in re.findall(r"status \d: (\d+)", done.stdout)]
    assert all(statuses[status] > 0 for status in (0, 1, 2, 3, 5, 6, 7)), done.stdout
    assert done.stdout.startswith(f"{count} inputs, {count // 2} with a valid CRC")
    assert statuses[0] > count // 5, "too few requests get deep enough to matter"


@pytest.mark.fuzz
@pytest.mark.parametrize("payload", [64, 1024])
def test_short(tmp_path: Path, payload: int) -> None:
    fuzz(tmp_path, payload, 30_000, seed=payload)


@pytest.mark.full
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("payload", [64, 128, 1024])
def test_long(tmp_path: Path, payload: int, compiler: str) -> None:
    fuzz(tmp_path, payload, 2_000_000, seed=payload + 1, compiler=compiler)

"""The driver and nn_device.c against a device that is broken at its pins."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base import paths
from nnbuild.base.paths import FIRMWARE
from tests.systolic.simulated import FOLDER, Simulated, extent, library, needs_verilator, random_inputs, random_task
from tests.systolic.simulated import triple as described

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror", "-O1")
AT = 0x400


def scenarios(count: int) -> bytes:
    """Tasks to load, compute and store: what memory holds before, descriptors, and what is expected."""
    rng = np.random.default_rng(5)
    parts = [struct.pack("<I", count)]
    with Simulated() as sim:
        while count:
            task = random_task(rng)
            out = task.output
            gaps = out.row - out.shape[1] * -(-out.shape[2] // 8) * 8  # would hold what was there before
            if gaps or sum(extent(each) + 8 for each in (*task.inputs, out)) > 8000:
                continue
            inputs = random_inputs(rng, task)
            sim.memory[:] = 0
            descriptors, at, end = described(task, inputs, sim, AT, 0, tag=int(rng.integers(0, 60000)))
            image = sim.memory[AT:at].tobytes()
            assert sim.run(descriptors, 1 << 19) == 0
            expected = sim.memory[at:end].tobytes()
            numbers = (len(image), len(descriptors), sim.read("span"), at, len(expected))
            parts += [struct.pack("<5I", *numbers), image, *descriptors, expected]
            sim.reset()
            count -= 1
    return b"".join(parts)


@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize("trials", [550, pytest.param(12_100, marks=pytest.mark.full)])
def test_nothing_wrong_is_accepted(trials: int, tmp_path: Path) -> None:
    library()
    data, program = tmp_path / "scenarios", tmp_path / "faults"
    data.write_bytes(scenarios(30))
    own = [FIRMWARE / "device" / "nn_device.c", FOLDER / "driver" / "systolic.c", Path(__file__).parent / "faults.c"]
    includes = [f"-I{FIRMWARE / 'include'}", f"-I{FOLDER / 'driver'}", f"-I{FOLDER / 'sim'}"]
    made = paths.cache() / "systolic-8" / "libsystolic_sim.so"
    subprocess.run(["gcc", *STRICT, *includes, *own, made, f"-Wl,-rpath,{made.parent}", "-o", program], check=True)
    done = subprocess.run([program, data, str(trials), "1"], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr

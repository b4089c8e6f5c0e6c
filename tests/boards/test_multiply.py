"""The firmware's own product of 64-bit numbers, in the emulator of a core that has none."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from benchmarks.replay import REGISTERS, Replay
from nnbuild.bound import prove, read_image
from tests.bound.assembled import STACK, assembled
from tests.support.running import ROOT

NAME = "__aeabi_lmul"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("multiply")
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-Os", "-S", "-o", "-"]
    source = ROOT / "firmware" / "arch" / "cortex_m" / "nn_multiply.c"
    text = subprocess.run([*command, str(source)], check=True, capture_output=True, text=True).stdout
    return assembled(folder, f"push {{lr}}\nbl {NAME}\npop {{pc}}\n.syntax divided\n{text}\n", "cortex-m0")


@pytest.mark.emulator
def test_products_of_64_bits(program: Path) -> None:
    replay, chance = Replay(program), random.Random(1)
    ends = [0, 1, 0xFFFF, 0x10000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    pairs = [(a, b) for a in ends for b in ends] + [
        (chance.getrandbits(64), chance.getrandbits(64)) for _ in range(400)
    ]
    counts = set()
    for a, b in pairs:
        counts.add(replay.count("f", a & 0xFFFFFFFF, a >> 32, b & 0xFFFFFFFF, b >> 32))
        low, high = (replay.cpu.reg_read(register) for register in REGISTERS[:2])
        assert low | high << 32 == a * b % (1 << 64), (a, b)
    assert counts == {prove(read_image(program), "f", STACK).instructions}

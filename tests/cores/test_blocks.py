"""Convolutions of few places and many channels: those who share one share its weights."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import find_isas
from nnbuild.model.graph import Graph
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.cores import Cores
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.on_cores import program

CASES = {"one tap": (7, 1, 128, 256), "nine taps": (7, 3, 32, 384), "fewer products": (14, 3, 32, 256)}


def convolution(name: str) -> Graph:
    side, taps, channels, filters = CASES[name]
    chance = np.random.default_rng(1)
    constants = {
        "kernel": chance.normal(size=(taps, taps, channels, filters)).astype(np.float32),
        "bias": chance.normal(size=filters).astype(np.float32),
    }
    border = (taps // 2, taps // 2)
    return single(Conv2D(padding=(border, border), clamp=Clamp(low=0.0)), [(side, side, channels)], constants)


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
@pytest.mark.parametrize("name", CASES)
def test_two_cores_get_the_same_share(name: str, isa: str) -> None:
    (step,) = make_plan(convolution(name), "net", Target(isa=find_isas(isa, "native")[0], cores=Cores(2, 0))).steps
    first, second = step.part_cycles
    assert max(first, second) / (first + second) < 0.52


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_parts_of_blocks_are_the_whole(name: str, tmp_path: Path) -> None:
    built = program(convolution(name), Target(isa=find_isas("native", "native")[0]), tmp_path)
    assert built is not None
    assert subprocess.run([built], timeout=60).returncode == 0

"""RISC-V's vectors stay in registers: on the stack each may take as much as the architecture's longest."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.plan.plan import make_plan
from tests.kernels.test_values import drawn
from tests.kernels.test_variants import candidates, graphs
from tests.support.emulators import RISCV

FLAGS = "-std=c99 -O2 -ffp-contract=off -fno-vectorize -fno-slp-vectorize -S -o -"
SPILLED = re.compile(r"\bvs[1248]r\.v\b.*Spill")
MOST = 7
"""Registers on the stack that still leave a run within Linux' bound of 64 KB."""
EVERY = 10
"""The share of layers to compile: one of so many."""
FULL = ("lstm-narrow", "gru-narrow")
"""Layers that use nearly all registers: all of them are compiled."""


@pytest.mark.turns(4)
@pytest.mark.slow
@pytest.mark.skipif(shutil.which(RISCV[0].split()[0]) is None, reason="clang-19 is not installed")
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
def test_few_vectors_wait_on_the_stack(form: str, tmp_path: Path) -> None:
    values = [] if form == "float" else [(what, graph, target) for what, graph, target in drawn(form)]
    shapes = [(name, graph, target) for name, graph in graphs(form) for _, target in candidates(graph)]
    mine = [each for each in chain(values, shapes) if each[2].isa.name in ("zve32x", "rvv")]
    full = [each for each in mine if each[0].startswith(FULL)]
    mine = mine[::EVERY] + full
    assert len(mine) > 20
    spilled = {}
    for number, (name, graph, target) in enumerate(mine):
        for file, content in emit(make_plan(graph, "net", target)).files.items():
            (tmp_path / file).write_bytes(content)
        command = [*RISCV[0].split()[:-1], *FLAGS.split(), "-Ifirmware/link", f"-I{tmp_path}"]
        done = subprocess.run([*command, str(tmp_path / "net_kernels.c")], capture_output=True, encoding="latin-1")
        assert done.returncode == 0, done.stderr
        sizes = [int(line.group(0)[2]) for line in SPILLED.finditer(done.stdout)]
        if sum(sizes) > MOST:
            spilled[f"{number} {name} {target.forced_kernels}"] = sizes
    assert spilled == {}

"""Layers of few output channels, whose inputs are the lanes of vectors: exact on every set, and chosen where faster."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import isas
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import few_channels, normal
from tests.kernels.test_riscv_registers import FLAGS, SPILLED
from tests.kernels.test_variants import PORTABLE, Case, candidates, compare, emulated, graph_of, natively, runs_here
from tests.support.emulators import RISCV
from tests.support.graphs import single
from tests.support.quantized import quantized


def found(form: str, isa: str) -> list[Case]:
    made = ((name, graph_of(name, maker, form)) for name, maker in few_channels())
    return [
        (name, kernel, graph, target)
        for name, graph in made
        if graph is not None
        for kernel, target in candidates(graph, isa)
        if kernel == f"{isa}_summed"
    ]


SUMMED = [isa for isa in isas().values() if found("int8", isa.name)]


def test_every_set_with_vectors_of_integers_has_the_kernel() -> None:
    wanted = {"sse2", "avx2_fma", "avx_vnni", "avx512", "avx512_vnni", "neon", "neon_dotprod", "zve32x", "zve32x_256"}
    assert wanted <= {isa.name for isa in SUMMED}


@pytest.mark.slow
@pytest.mark.turns(9)
@pytest.mark.parametrize("form", ["int8", "int16", "real"])
@pytest.mark.parametrize("isa", SUMMED, ids=lambda isa: isa.name)
def test_the_same_bits_as_the_reference(isa: Isa, form: str, tmp_path: Path) -> None:
    mine = found(form, isa.name)
    assert len(mine) > 5
    elsewhere = emulated(isa)
    if runs_here(isa) or elsewhere:
        compare(mine, form, tmp_path / "native", (), elsewhere)
    if natively(isa):
        compare(mine, form, tmp_path / "portable", PORTABLE)


@pytest.mark.parametrize("isa", ["sse2", "avx2_fma", "avx512", "zve32x"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_it_is_chosen_for_one_channel_only(isa: str, kernel: int) -> None:
    for depth in (16, 32, 64, 100):
        for filters, wanted in ((1, True), (16, False)):
            layer = Conv2D(padding=((kernel // 2, kernel // 2),) * 2)
            graph = single(layer, [(8, 16, depth)], {"kernel": normal(kernel, kernel, depth, filters)})
            made = make_plan(quantized(graph, "int8", seed=1), "net", Target(isas()[isa]))
            assert made.steps[0].kernel_name.endswith("_summed") == wanted, (depth, filters)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(RISCV[0].split()[0]) is None, reason="clang-19 is not installed")
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_no_vector_waits_on_the_stack(form: str, tmp_path: Path) -> None:
    for name, kernel, graph, target in found(form, "zve32x"):
        for file, content in emit(make_plan(graph, "net", target)).files.items():
            (tmp_path / file).write_bytes(content)
        command = [*RISCV[0].split()[:-1], *FLAGS.split(), "-Ifirmware/link", f"-I{tmp_path}"]
        done = subprocess.run([*command, str(tmp_path / "net_kernels.c")], capture_output=True, encoding="latin-1")
        assert done.returncode == 0, done.stderr
        assert re.search(SPILLED, done.stdout) is None, (name, kernel)

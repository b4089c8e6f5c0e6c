"""Where bytes count for more than time, the file itself says so to the compiler, whatever the flags."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from nnbuild.emit.emit import emit
from nnbuild.isa.encoding import SSE
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Array, Graph
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import NETS
from tests.emit.test_golden import case
from tests.support.many import run_many

GRAPHS = {"conv_int8": lambda: case("conv2d-10", "int8"), "convolutions": NETS["conv"]}
COMPACT = Target(optimize="size", compact=True)


def text_bytes(plan: Plan, folder: Path, *command: str) -> int:
    emit(plan).write(folder)
    source, made = folder / f"{plan.prefix}_kernels.c", folder / "kernels.o"
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-c", str(source), "-o", str(made)], check=True)
    with made.open("rb") as file:
        return sum(part["sh_size"] for part in ELFFile(file).iter_sections() if part.name.startswith(".text"))


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", GRAPHS)
def test_fewer_bytes_with_any_flags(name: str, compiler: str, level: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    plan = make_plan(GRAPHS[name](), "net", COMPACT)
    assert plan.encoding.compact
    compact = text_bytes(plan, tmp_path, compiler, level)
    assert compact < text_bytes(replace(plan, encoding=SSE), tmp_path, compiler, level)


def numbers(graph: Graph) -> dict[str, Array]:
    chance = np.random.default_rng(3)
    tensors = [graph.tensors[name] for name in graph.inputs]
    return {
        each.name: (50 * chance.normal(size=(4, *each.shape))).clip(-128, 127).astype(each.dtype) for each in tensors
    }


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["c99", "avx2_fma"])
def test_the_same_bits(isa: str, tmp_path: Path) -> None:
    graphs = [make() for make in GRAPHS.values()]
    targets = [replace(COMPACT, isa=isas()[isa])] * len(graphs)
    plain, quick = (
        run_many([(graph, numbers(graph)) for graph in graphs], tmp_path / level, flags=[level], targets=targets)
        for level in ("-O0", "-O2")
    )
    for one, other in zip(plain, quick, strict=True):
        assert all(one[name].tobytes() == other[name].tobytes() for name in one)

"""The objects of integer models: no floating-point instruction, no call of a floating-point routine, no libm."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.emit import emit
from nnbuild.model.graph import Graph, Quant
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_convert import FLOAT, conversion
from tests.kernels.test_integer import GROUPS, made
from tests.support.compiled import STRICT

pytestmark = pytest.mark.slow

ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft", "-O2", "-ffreestanding"]
X86 = ["gcc", "-O2", "-mno-sse", "-mno-mmx", "-mno-80387", "-ffreestanding"]
FLOAT_INSTRUCTION = re.compile(r"^v?(add|sub|mul|div|sqrt|min|max|u?comi)s[sd]$|^v?cvt|^f[a-z]+$|p[sd]$")
ALLOWED = {"memcpy", "memset", "memmove", "memcmp", "__aeabi_lmul"}


def graphs(dtype: str) -> list[Graph]:
    """One of each operation and function."""
    every = [(name, maker) for group in GROUPS.values() for name, maker in group.items()]
    kinds = {name.rpartition("-")[0] or name: (name, maker) for name, maker in every}
    return [made(name, maker, dtype, 0) for name, maker in kinds.values()]


def compiled(models: list[Graph], folder: Path, tool: list[str]) -> Path:
    """All kernels of all models as one object."""
    names = []
    for index, graph in enumerate(models):
        plan = make_plan(graph, f"m{index}", Target())
        emit(plan).write(folder)
        names += [f"{plan.prefix}", f"{plan.prefix}_kernels"]
    (folder / "all.c").write_text("".join(f'#include "{name}.c"\n' for name in names))
    command = [*tool, *STRICT, "-c", f"-I{folder}", str(folder / "all.c"), "-o", str(folder / "all.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "all.o"


def called(tool: str, path: Path) -> set[str]:
    """The external symbols of an object, without the models' own constants."""
    text = subprocess.run([tool, "-u", str(path)], capture_output=True, text=True, check=True).stdout
    return {name for name in re.findall(r"U (\S+)", text) if not re.match(r"m\d+_", name)}


def instructions(path: Path) -> set[str]:
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"^\s+[0-9a-f]+:\s+(\S+)", text.stdout, re.MULTILINE))


@pytest.mark.turns(4)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_microcontroller_needs_no_float_routine(dtype: str, tmp_path: Path) -> None:
    assert called("arm-none-eabi-nm", compiled(graphs(dtype), tmp_path, ARM)) <= ALLOWED


@pytest.mark.turns(4)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_kernel_flags_suffice_on_a_pc(dtype: str, tmp_path: Path) -> None:
    path = compiled(graphs(dtype), tmp_path, X86)
    assert called("nm", path) <= ALLOWED
    assert not {name for name in instructions(path) if FLOAT_INSTRUCTION.search(name)}


def test_a_float_conversion_would_be_seen(tmp_path: Path) -> None:
    graph = conversion(FLOAT, ("int8", Quant((float(np.float32(0.1)),))), 4)
    assert "__aeabi_fdiv" in called("arm-none-eabi-nm", compiled([graph], tmp_path, ARM))

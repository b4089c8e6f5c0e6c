"""The frames of RISC-V functions that save vectors, from their instructions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.audit.archive import open_file
from nnbuild.audit.callgraph import CallGraph, ObjectCalls
from nnbuild.audit.source_locations import Locator
from nnbuild.audit.vector_frames import LONGEST_REGISTER, frame_of, saves_vectors

SAVED = ["c.addi16sp sp, -0x40", "csrr a5, 3106", "c.slli a5, 3", "sub sp, sp, a5"]
NEEDS_CLANG = pytest.mark.skipif(shutil.which("clang-19") is None, reason="no clang-19")
PROGRAM = """\
#include <riscv_vector.h>
void other(void *);
void two(const float *p, float *q)
{
    char big[5000];
    vfloat32m4_t a = __riscv_vle32_v_f32m4(p, 16);
    vfloat32m2_t b = __riscv_vle32_v_f32m2(p + 9, 8);
    other(big);
    __riscv_vse32_v_f32m4(q, a, 16);
    __riscv_vse32_v_f32m2(q + 16, b, 8);
}
void array(const float *p, float *q, int n)
{
    float x[n];
    vfloat32m4_t a = __riscv_vle32_v_f32m4(p, 16);
    other(x);
    __riscv_vse32_v_f32m4(q, a, 16);
}
void rounded(const float *p, float *q)
{
    _Alignas(128) char big[40];
    vfloat32m4_t a = __riscv_vle32_v_f32m4(p, 16);
    other(big);
    __riscv_vse32_v_f32m4(q, a, 16);
}
"""


@pytest.mark.parametrize(
    ("more", "fixed", "registers"),
    [
        ([], 64, 8),
        (
            ["csrr a0, 3106", "c.slli a0, 3", "c.add sp, a0", "c.addi16sp sp, 0x40", "addi sp, s0, -0x40"],
            64,
            8,
        ),  # it is restored
        (["addi sp, sp, -0x800"], 64 + 2048, 8),
        (["andi sp, sp, -0x40"], 64 + 64, 8),
        (["c.lui a3, 1", "addiw a3, a3, 0x3a0", "sub sp, sp, a3"], 64 + 4096 + 0x3A0, 8),
        (["li t0, -0x3000", "add sp, sp, t0"], 64 + 0x3000, 8),
        (["lui a0, 0xffffd", "add sp, sp, a0", "sub sp, s0, a5"], 64 + 0x3000, 8),
        (["csrr a5, vlenb", "c.li a6, 5", "mul a5, a5, a6", "sub sp, sp, a5"], 64, 13),
        (["csrr a5, vlenb", "sh1add a5, a5, a5", "sub sp, sp, a5"], 64, 11),
        (["csrr a5, vlenb", "slli a6, a5, 2", "c.add a6, a5", "c.mv a4, a6", "sub sp, sp, a4"], 64, 13),
    ],
)
def test_frames(more: list[str], fixed: int, registers: int) -> None:
    assert saves_vectors(SAVED)
    assert frame_of([*SAVED, *more]) == (fixed, registers)


@pytest.mark.parametrize(
    "more",
    [
        ["c.mv sp, a1"],
        ["sub sp, sp, t0"],
        ["lw a5, 0(a0)", "sub sp, sp, a5"],
        ["jalr ra", "sub sp, sp, a5"],
    ],
)
def test_frames_that_cannot_be_told(more: list[str]) -> None:
    assert frame_of([*SAVED, *more]) is None


def test_a_frame_of_two_constants() -> None:
    lines = ["c.addi16sp sp, -0x70", "addi sp, sp, -0x280", "addi sp, s0, -0x70", "c.addi16sp sp, 0x70"]
    assert not saves_vectors(lines)
    assert frame_of(lines) == (0x70 + 0x280, 0)


def test_a_length_that_is_not_for_the_stack() -> None:
    assert not saves_vectors(["csrr t3, 3106", "srli a4, t3, 1"])


@NEEDS_CLANG
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
def test_objects(level: str, tmp_path: Path) -> None:
    graph = _graph(tmp_path, level)
    two, array = graph.functions["two"], graph.functions["array"]
    assert not two.dynamic and two.frame is not None and 5000 < two.frame - 6 * LONGEST_REGISTER < 12_000
    assert array.dynamic


@NEEDS_CLANG
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
def test_objects_for_registers_of_a_known_length(level: str, tmp_path: Path) -> None:
    """Six registers of 16 bytes, of which .stack_sizes say nothing, nor of rounding down to a multiple of 128."""
    functions = _graph(tmp_path, level, "-mrvv-vector-bits=128").functions
    two, rounded = functions["two"], functions["rounded"]
    assert not two.dynamic and two.frame is not None and 5000 + 6 * 16 < two.frame < 6000
    assert not rounded.dynamic and rounded.frame is not None and 40 + 128 + 4 * 16 < rounded.frame < 600
    assert functions["array"].dynamic


def _graph(folder: Path, level: str, *flags: str) -> CallGraph:
    source, made = folder / "saved.c", folder / "saved.o"
    source.write_text(PROGRAM)
    tool = ["clang-19", "--target=riscv64-linux-gnu", "-march=rv64gcv", "-fstack-size-section", "-ffreestanding"]
    subprocess.run([*tool, *flags, level, "-c", str(source), "-o", str(made)], check=True, capture_output=True)
    graph = CallGraph()
    (file,) = open_file(made).objects
    ObjectCalls(graph, Locator(file)).add()
    return graph

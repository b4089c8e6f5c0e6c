"""The static bound of the stack against what a run really takes of it."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from nnbuild.backends.object_audit import model_stack
from nnbuild.backends.recipe import compile_all
from nnbuild.backends.registry import backend_of
from nnbuild.emit.artifact import Artifact
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.program_files import program_files
from tests.frontend.keras_files import h5_bytes, input_layer, layer, put, sequential

ROOT = Path(__file__).resolve().parents[2]

# Runs the model on a stack of its own, painted beforehand, and prints how deep the paint was spoilt.
MEASURE = r"""
#include <stdio.h>
#include <string.h>
#include "m.h"
static m_context context;
static unsigned char area[1 << 18] __attribute__((aligned(64)));
int main(void)
{
    int (*run)(m_context *) = m_run;
    unsigned char *at = area;
    m_init(&context);
    memset(area, 0xa5, sizeof area);
    __asm__ volatile("mov %%rsp, %%rbx\n mov %0, %%rsp\n call *%1\n mov %%rbx, %%rsp"
                     : : "r"(area + sizeof area), "r"(run), "D"(&context)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                       "xmm14", "xmm15");
    while (*at == 0xa5) {
        ++at;
    }
    printf("%d\n", (int)(area + sizeof area - at));
    return 0;
}
"""


def copies(folder: Path) -> Path:
    """A model whose C the compiler turns into calls of memcpy."""
    start = input_layer("x", [40, 30])
    layers = [layer("Cropping1D", "cut", cropping=[3, 4]), layer("RepeatVector", "again", n=3)]
    return put(folder / "copies.h5", h5_bytes(sequential(start, layers[0], layer("Flatten", "flat"), layers[1]), {}))


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stack is changed in x86-64 assembly")
@pytest.mark.parametrize("model", ["float", "int8", "copies"])
def test_no_run_goes_deeper_than_its_bound(tmp_path: Path, model: str) -> None:
    """Leaf functions use the 128 bytes below the stack pointer, and copies call memcpy; compilers tell of neither."""
    if model == "copies":
        compiled = compile_model(Options(copies(tmp_path), name="m"))
    else:
        compiled = compile_model(Options(ROOT / "examples" / "mnist" / "mnist.h5", quantize=model, name="m"))
    files = Artifact(program_files(compiled))
    files.write(tmp_path)
    compile_all(backend_of(compiled.board).recipe(compiled.board, files.files), tmp_path)
    bound = model_stack(compiled.board, "m", tmp_path).depth
    (tmp_path / "measure.c").write_text(MEASURE)
    objects = [str(tmp_path / f"m{part}.o") for part in ("", "_kernels", "_weights")]
    program = tmp_path / "measure"
    # Bound at once: looking a symbol up at its first call would be counted as the model's.
    command = ["gcc", "-O1", "-Wl,-z,now", str(tmp_path / "measure.c"), *objects, "-o", str(program)]
    subprocess.run(command, check=True)
    measured = int(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)
    assert 0 < measured <= bound < measured + 256

"""Numbers beyond 32 bits by halves of products, on Cortex-M0, which multiplies 32 bits only."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.vendored import definitions
from nnbuild.emit.instructions import instructions
from nnbuild.isa.armv6m import SHORT as SHORT_OPS
from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.matmul import MatMul
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.compiled import SANITIZE, STRICT
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

SHORT = frozenset({"armv6m"})


def product(rows: int, depth: int, columns: int, turned: bool) -> Graph:
    right = (columns, depth) if turned else (depth, columns)
    return quantized(single(MatMul(turned=turned), [(rows, depth), right], {}), "int16", 3)


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_words_at_their_extremes(turned: bool, tmp_path: Path) -> None:
    graphs = [product(3, 5, 3, turned), product(1, 700, 2, turned)]
    runs = []
    for graph in graphs:
        given = full_range(graph, 3, 1)
        for at, end in enumerate((-32768, 32767)):
            for values in given.values():
                values[at] = end
        runs.append((graph, given))
    targets = [Target(isas()["armv6m"], forced_kernels={graph.ops[0].name: "halves"}) for graph in graphs]
    for (graph, given), got in zip(runs, run_many(runs, tmp_path, targets=targets, flags=SANITIZE), strict=True):
        (out,) = graph.outputs
        np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out])


def test_products_of_words_are_computed_so() -> None:
    graph = product(4, 8, 4, False)
    (step,) = make_plan(graph, "m", Target(isas()["armv6m"], wide_product=28)).steps
    assert step.kernel_name == "halves"
    assert all(kernel.needs == SHORT for kernel in variants("matmul") if kernel.name == "halves")


PROGRAM = """\
#include <stdint.h>
{routines}
int32_t upper(int32_t a, int32_t b);
int32_t upper(int32_t a, int32_t b) {{ return p_small_high_by_upper(a, (int32_t)((uint32_t)b & 0xffff0000U)); }}
int32_t both(int32_t a, int32_t b, int32_t lower, int32_t sum);
int32_t both(int32_t a, int32_t b, int32_t lower, int32_t sum)
{{
    return p_small_high_long_add(a, b, lower, sum);
}}
"""


def library(folder: Path, *flags: str) -> ctypes.CDLL:
    used = [SHORT_OPS.instruction(name) for name in ("high_by_upper", "high_long_add")]
    (folder / "p.c").write_text(PROGRAM.format(routines=instructions(used, "p", "")))
    name = f"p{len(flags)}.so"
    checks = ["-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run(["gcc", *STRICT, *checks, *flags, "-shared", "-fPIC", "p.c", "-o", name], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / name))


def test_halves_are_what_they_stand_for(tmp_path: Path) -> None:
    halves, whole = library(tmp_path, "-D__ARM_ARCH_6M__"), library(tmp_path)
    chance = np.random.default_rng(2)
    ends = [-(2**31), 2**31 - 1, 0, -1, 1, 65535, -65536, 1 << 30]
    rows = [*np.array(np.meshgrid(ends, ends, ends)).reshape(3, -1).T.tolist()]
    rows += (chance.integers(-(2**31), 2**31, (3000, 3)) >> chance.integers(0, 31, (3000, 3))).tolist()
    for a, b, lower in rows:
        assert halves.upper(a, b) == whole.upper(a, b)
        if b >= 0:  # as multipliers are
            assert halves.both(a, b, lower, 7) == whole.both(a, b, lower, 7)


def test_vendored_functions_of_cortex_m0_take_no_long_products() -> None:
    names = ["requantize", "requantize64", "fine_tanh"]
    assert "(int64_t)" in definitions(names, "m")
    assert "(int64_t)" not in definitions(names, "m", SHORT)
    assert definitions(["scale_wide"], "m", SHORT) == definitions(["scale_wide"], "m")

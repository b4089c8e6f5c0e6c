"""One binary with several instruction sets: the best that the processor has is taken, and all give the same bits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.isa.registry import find, find_isas
from nnbuild.ops import interpret
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.compiled import build, run
from tests.support.quantized import full_range, quantized

pytestmark = pytest.mark.slow

SETS = ("sse2", "avx2", "avx512_vnni")
CASES = ("conv2d-0", "dense-1", "depthwise-0-1", "activation-tanh", "conv2d-outer")


def plan_of(name: str) -> Plan:
    graph = quantized(dict(cases())[name](), "int8", seed=3)
    best, *others = find_isas(",".join(SETS), "native")
    return make_plan(graph, "net", Target(best, extra_isas=tuple(others), alignment=64))


def forced(program: Path, level: int) -> Path:
    """The same program, in which init takes this level whatever the processor has."""
    source = program.parent / "main.c"
    source.write_text(source.read_text().replace("if (net_run", f"context.isa = {level};\n        if (net_run"))
    return program


@pytest.mark.turns(6)
@pytest.mark.parametrize("name", CASES)
def test_every_version_computes_the_reference(name: str, tmp_path: Path) -> None:
    plan = plan_of(name)
    assert [isa.name for isa in plan.isas] == ["avx512_vnni", "avx2_fma", "sse2"]
    inputs = full_range(plan.graph, 4, seed=1)
    wanted = interpret.run(plan.graph, inputs)
    for level in range(find_native_level() + 1):
        folder = tmp_path / str(level)
        folder.mkdir()
        program = build(plan, folder)
        forced(program, level)
        found = run(rebuild(program), plan, inputs)
        for output in plan.graph.outputs:
            np.testing.assert_array_equal(found[output], wanted[output])


def rebuild(program: Path) -> Path:
    folder = program.parent
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    subprocess.run(["gcc", "-std=c99", "-O1", f"-I{folder}", *sources, "-o", str(program)], check=True)
    return program


def find_native_level() -> int:
    features = find("native", "native").features
    return max(level for level, name in enumerate(SETS) if find(name, "native").features <= features)


def test_init_takes_the_best_there_is(tmp_path: Path) -> None:
    plan = plan_of("dense-1")
    program = build(plan, tmp_path)
    body = 'static net_context c; net_init(&c); printf("%d", c.isa);'
    (tmp_path / "main.c").write_text(f'#include <stdio.h>\n#include "net.h"\nint main(void) {{ {body} }}')
    found = subprocess.run([str(rebuild(program))], capture_output=True, text=True, check=False).stdout
    assert found == str(find_native_level())


def test_sets_that_no_program_can_find_out() -> None:
    with pytest.raises(UsageError) as caught:
        find_isas("sse2,c99", "native")
    assert "cannot detect whether its processor has c99" in str(caught.value)


def test_unknown_sets_get_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        find("ssse", "native")
    assert "Did you mean ssse3?" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        find("sse2", "cortex_m")
    assert "boards of architecture cortex_m have no such instructions" in str(caught.value)


@pytest.mark.parametrize("names", ["rvv,zve32x", "rvv256,rvv,zve32x", "rvv,zve32x_256"])
def test_sets_that_no_program_can_tell_apart(names: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_isas(names, "rv64")
    assert "at run time. Name only one of them." in str(caught.value)


def test_other_sets_of_riscv_can_be_told_apart() -> None:
    assert [isa.name for isa in find_isas("rvv,rvv256", "rv64")] == ["rvv256", "rvv"]

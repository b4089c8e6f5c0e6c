"""Nothing but a C99 compiler: attributes, assembly and builtins stand behind checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import NETS
from tests.emit.test_golden import case
from tests.support.compiled import main_text, run

pytestmark = pytest.mark.slow

GRAPHS = {**NETS, "conv_int8": lambda: case("conv2d-10", "int8"), "softmax_int8": lambda: case("softmax-0-1", "int8")}
SETS = ("c99", "armv7em_dsp", "avx2_fma")
COMPILERS = {
    "pedantic": ("gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-O1"),
    "no-gnu": ("gcc", "-std=c99", "-pedantic-errors", "-Werror", "-U__GNUC__", "-O1"),
    "tcc": ("tcc", "-Wall"),
}


def program(plan: Plan, folder: Path, command: tuple[str, ...]) -> Path:
    files = emit(plan)
    files.write(folder)
    (folder / "main.c").write_text(main_text(plan, reset_each=False))
    objects = []
    for name in files.files:
        if name.endswith(".c"):
            objects.append(str(folder / f"{name}.o"))
            compiled(*command, "-c", str(folder / name), "-o", objects[-1])
    compiled("gcc", f"-I{folder}", str(folder / "main.c"), *objects, "-o", str(folder / "run"))
    return folder / "run"


def compiled(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def given(graph: Graph) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(1)
    shapes = {name: (4, *graph.tensors[name].shape) for name in graph.inputs}
    if all(graph.tensors[name].dtype == "float32" for name in graph.inputs):
        return {name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: chance.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}


@pytest.mark.turns(3)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_compiler_without_extensions_computes_the_same(name: str, isa: str, compiler: str, tmp_path: Path) -> None:
    command = COMPILERS[compiler]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    if compiler == "tcc" and isa != "c99":
        pytest.skip("tcc is asked for portable models only")
    if isa == "avx2_fma" and (compiler != "pedantic" or not name.endswith("int8")):
        pytest.skip("the integer kernels of x86 are written in intrinsics, and floats may be fused")
    graph = GRAPHS[name]()
    plan = make_plan(graph, "net", Target(isas()[isa]))
    plain = make_plan(graph, "net", Target())
    inputs = given(graph)
    found = run(program(plan, tmp_path / "one", command), plan, inputs)
    wanted = run(program(plain, tmp_path / "other", ("gcc", "-std=c99", "-O0")), plain, inputs)
    for output in graph.outputs:
        assert found[output].tobytes() == wanted[output].tobytes()

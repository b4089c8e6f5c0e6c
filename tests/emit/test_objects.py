"""What the generated C is made of, seen in its objects and by other compilers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.emit import emit
from nnbuild.emit.header import header, init_symbol
from nnbuild.ops import interpret
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import NETS, hostile
from tests.kernels.cases import cases
from tests.support.batch import Entry, run_batch
from tests.support.compiled import STRICT
from tests.support.objects import compile_objects, symbols

pytestmark = pytest.mark.slow

WITH_CLANG = ["gcc", pytest.param("clang", marks=pytest.mark.skipif(not shutil.which("clang"), reason="needs clang"))]
SOURCES = ("", "_kernels", "_weights")


def every_kernel() -> list[Plan]:
    return [make_plan(maker(), f"k{index}", Target()) for index, (_, maker) in enumerate(cases())]


def together(plans: list[Plan], folder: Path, part: str) -> str:
    """One translation unit of the same part of many models."""
    for plan in plans:
        emit(plan).write(folder)
    name = f"all{part}.c"
    (folder / name).write_text("".join(f'#include "{plan.prefix}{part}.c"\n' for plan in plans))
    return name


@pytest.mark.turns(4)
@pytest.mark.parametrize("compiler", WITH_CLANG)
def test_no_kernel_needs_more_than_memcpy_and_memset(compiler: str, tmp_path: Path) -> None:
    """No heap, no stdio, no libm, and nothing writable outside of the caller's context."""
    names = [together(every_kernel(), tmp_path, part) for part in SOURCES]
    plain = compile_objects(tmp_path, names, (compiler, "-O0", "-fno-pic", "-ffreestanding"))
    for net in NETS:
        emit(make_plan(NETS[net](), net, Target())).write(tmp_path)
    names = [f"{net}{part}.c" for net in NETS for part in SOURCES]
    optimized = compile_objects(tmp_path, names, (compiler, "-O3", "-fno-pic", "-ffreestanding"))
    known: dict[str, str] = {}
    for path in (*plain, *optimized):
        found = symbols(path)
        assert {name for name, kind in found.items() if kind in "DdBbCcVv"} == set(), path.name
        known |= {name: kind for name, kind in found.items() if kind not in "Uu" or name not in known}
    needed = {name for name, kind in known.items() if kind in "Uu"}
    assert needed <= {"memcpy", "memset"}


def test_no_forbidden_word() -> None:
    """Before any compiler sees it: what a careful person would not write for a small machine."""
    forbidden = re.compile(
        r"\b(malloc|calloc|free|alloca|printf|double|long double|goto|setjmp|errno|static \w+ \w+ =)\b"
    )
    for plan in every_kernel():
        for name, content in emit(plan).files.items():
            text = re.sub(r"/\*.*?\*/", "", content.decode(), flags=re.DOTALL)
            assert not forbidden.search(text), f"{plan.graph.ops[0].kind}: {name}"


@pytest.mark.parametrize(
    "compiler",
    ["g++", pytest.param("clang++", marks=pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++"))],
)
@pytest.mark.parametrize("standard", ["c++98", "c++20"])
def test_the_header_is_cpp_too(compiler: str, standard: str, tmp_path: Path) -> None:
    for name, net in NETS.items():
        emit(make_plan(net(), name, Target())).write(tmp_path)
        command = [
            compiler,
            f"-std={standard}",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-x",
            "c++",
            "-fsyntax-only",
            str(tmp_path / f"{name}.h"),
        ]
        command.insert(1, "-Wno-pragma-once-outside-header")
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_cpp_program_links_with_two_models(tmp_path: Path) -> None:
    """Also with optimization across files, where two functions of one name would meet."""
    plans = [make_plan(NETS[name](), name, Target()) for name in ("conv", "lstm")]
    for plan in plans:
        emit(plan).write(tmp_path)
    names = [f"{plan.prefix}{part}.c" for plan in plans for part in SOURCES]
    objects = compile_objects(tmp_path, names, ("gcc", "-O2", "-flto"))
    (tmp_path / "main.cpp").write_text(
        '#include "conv.h"\n#include "lstm.h"\n'
        "static conv_context a;\nstatic lstm_context b;\n"
        "int main() {\n    conv_init(&a);\n    lstm_init(&b);\n"
        "    for (int i = 0; i < CONV_INPUT0_SIZE; ++i) conv_input(&a, 0)[i] = 1.0f;\n"
        "    for (int i = 0; i < LSTM_INPUT0_SIZE; ++i) lstm_input(&b, 0)[i] = 1.0f;\n"
        "    return conv_run(&a) + lstm_run(&b);\n}\n"
    )
    program = tmp_path / "program"
    command = [
        "g++",
        "-O2",
        "-flto",
        f"-I{tmp_path}",
        str(tmp_path / "main.cpp"),
        *map(str, objects),
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(program)]).returncode == 0


@pytest.mark.parametrize("other", ["dense", "conv"])
def test_a_program_links_only_with_the_model_of_its_header(other: str, tmp_path: Path) -> None:
    """Models of one name that take turns in one folder, or a program that was not compiled again."""
    for name in {"dense", other}:
        emit(make_plan(NETS[name](), "net", Target())).write(tmp_path / name)
    (tmp_path / "main.c").write_text(
        '#include "net.h"\nstatic net_context c;\nint main(void) { net_init(&c); return net_run(&c); }\n'
    )
    code = [str(tmp_path / other / f"net{part}.c") for part in SOURCES]
    command = ["gcc", "-O2", "-I", str(tmp_path / "dense"), str(tmp_path / "main.c"), *code]
    done = subprocess.run([*command, "-o", str(tmp_path / "program")], capture_output=True, text=True)
    assert (done.returncode == 0) == (other == "dense")
    if other != "dense":
        assert (
            f"undefined reference to `{init_symbol((tmp_path / 'dense' / 'net.h').read_text(), 'net')}'" in done.stderr
        )


def test_the_first_functions_name_tells_the_whole_header() -> None:
    """Other weights, other names of classes and another arena are other models."""
    plans = [make_plan(NETS["conv"](), "net", Target(optimize=way)) for way in ("speed", "ram")]
    texts = [header(plans[0], "0"), header(plans[0], "1"), header(plans[0], "0", ("a", "b")), header(plans[1], "0")]
    assert len({init_symbol(text, "net") for text in texts}) == len(set(texts)) >= 3


def samples(plan: Plan) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(3)
    return {n: chance.normal(size=(4, *plan.tensor(n).shape)).astype(np.float32) for n in plan.graph.inputs}


def test_names_are_data(tmp_path: Path) -> None:
    """A model cannot write C through the names of its layers."""
    plan = make_plan(hostile(), "net", Target())
    inputs = samples(plan)
    (found,) = run_batch([Entry(plan, inputs)], tmp_path)
    (output,) = plan.graph.outputs
    wanted = interpret.run(plan.graph, inputs, "float64")[output]
    np.testing.assert_allclose(found[output], wanted, rtol=1e-5, atol=1e-5)
    for name, content in emit(plan).files.items():
        text = content.decode("ascii")
        assert "int evil" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), name
        assert "??" not in text
        assert "\r" not in text


@pytest.mark.parametrize("compiler", WITH_CLANG)
@pytest.mark.parametrize("name", NETS)
def test_weights_in_a_binary_file(name: str, compiler: str, tmp_path: Path) -> None:
    """The same constants, byte for byte, whether C arrays hold them or the assembler takes them in."""
    plan = make_plan(NETS[name](), name, Target())
    dumps = []
    for form in ("array", "binary"):
        folder = tmp_path / form
        emit(plan, form).write(folder)
        suffix = ".c" if form == "array" else ".S"
        gives = "".join(f"    fwrite({n}, sizeof {n}, 1, stdout);\n" for n in plan.constants)
        main = f'#include <stdio.h>\n#include "{name}_private.h"\nint main(void)\n{{\n{gives}    return 0;\n}}\n'
        (folder / "main.c").write_text(main)
        command = [compiler, *STRICT, f"-I{folder}", str(folder / "main.c"), str(folder / f"{name}_weights{suffix}")]
        done = subprocess.run([*command, "-o", str(folder / "main")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        dumps.append(subprocess.run([str(folder / "main")], capture_output=True, check=True).stdout)
    assert dumps[0] == dumps[1] == b"".join(data.tobytes() for data in plan.constants.values())

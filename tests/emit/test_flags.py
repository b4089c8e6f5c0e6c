"""The same bits whatever the compiler and its flags: floats are computed as the files say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Array, Graph
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import dense
from tests.kernels.cases import cases
from tests.kernels.test_float import samples
from tests.kernels.test_variants import runs_here
from tests.support.many import run_many

ZIG = f"{sys.executable} -m ziglang cc"
LEVELS = ("-O0", "-O2", "-O3", "-Os")
TEMPTING = ("", "-march=native", "-ffp-contract=fast", "-mfma", "-mfma -ffp-contract=fast")
OFTEN = (("-O3", "-mfma -ffp-contract=fast"), ("-Os", ""))
"""The others are tested in full runs."""
SETS = ("c99", "sse2", "avx2_fma", "avx512")
KINDS = (
    "activation",
    "conv2d-1",
    "depthwise-0-1",
    "dense-1",
    "lstm-1",
    "gru-0",
    "gru-3",
    "simple_rnn-0",
    "softmax-0-1",
)
OTHERS = (
    "layer_norm-1",
    "lrn",
    "affine-0",
    "prelu-(4",
    "resize_bilinear-(3",
    "binary",
    "pool-average-1",
    "reduce-mean-0",
)
LEFT_OUT = ("binary-add", "binary-subtract", "binary-maximum", "binary-minimum", "-2", "-3", "-right", "-stateful")


SLOWER = partial(pytest.param, marks=pytest.mark.slow)


def graphs() -> Iterator[tuple[Graph, dict[str, Array]]]:
    """One of every kind that multiplies, and every function."""
    for name, maker in cases():
        if name.startswith((*KINDS, *OTHERS)) and not name.startswith(LEFT_OUT[:4]) and not name.endswith(LEFT_OUT[4:]):
            graph = maker()
            yield graph, samples(graph, name.endswith("positive"), 8)


def outputs(name: str, folder: Path, compiler: str, flags: str) -> list[bytes]:
    isa = isas()[name]
    if not runs_here(isa):
        pytest.skip(f"this processor has no {name}")
    runs = list(graphs())
    found = run_many(
        runs, folder, compiler=compiler, strict=("-w",), flags=flags.split(), targets=[Target(isa)] * len(runs)
    )
    return [value.tobytes() for values in found for value in values.values()]


@cache
def _wanted(name: str, folder: Path) -> list[bytes]:
    """Of an unoptimized build by gcc."""
    return outputs(name, folder, "gcc", "-O0 -std=c99 -ffp-contract=off")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    ("name", "compiler"), [SLOWER("c99", "gcc"), SLOWER("c99", "clang"), SLOWER("avx2_fma", "clang")]
)
def test_the_most_tempting_flags_change_no_bit(name: str, compiler: str, plain: Path, tmp_path: Path) -> None:
    assert outputs(name, tmp_path, compiler, "-O2 -march=native -ffp-contract=fast") == _wanted(name, plain / name)


@pytest.mark.turns(12)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "flags"),
    [
        pytest.param(level, flags, marks=() if (level, flags) in OFTEN else pytest.mark.full)
        for level in LEVELS
        for flags in TEMPTING
    ],
)
@pytest.mark.parametrize("compiler", ["gcc", "clang", ZIG], ids=["gcc", "clang", "zig"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name == "sse2")) for name in SETS])
def test_no_flag_changes_a_bit(name: str, compiler: str, level: str, flags: str, plain: Path, tmp_path: Path) -> None:
    assert outputs(name, tmp_path, compiler, f"{level} {flags}") == _wanted(name, plain / name)


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("gcc", "-ffast-math"),
        ("gcc", "-fassociative-math -fno-signed-zeros -fno-trapping-math"),
        ("gcc", "-freciprocal-math"),
        ("gcc", "-ffinite-math-only"),
        ("gcc", "-fno-signed-zeros"),
        ("gcc", "-m32 -mfpmath=387 -ffreestanding"),
        ("clang", "-ffast-math"),
        ("clang", "-ffinite-math-only"),
    ],
)
def test_flags_that_cannot_be_undone_are_refused(compiler: str, flags: str, tmp_path: Path) -> None:
    emit(make_plan(dense(), "net", Target())).write(tmp_path)
    command = [compiler, "-O2", *flags.split(), "-c", str(tmp_path / "net_kernels.c"), "-o", str(tmp_path / "net.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "float operations must be done as written" in done.stderr


@pytest.mark.parametrize("method", ["0", "16"])
def test_evaluation_in_float_is_accepted(method: str, tmp_path: Path) -> None:
    """A processor with half floats makes gcc say 16, which is 0 for single ones."""
    emit(make_plan(dense(), "net", Target())).write(tmp_path)
    said = ["-U__FLT_EVAL_METHOD__", f"-D__FLT_EVAL_METHOD__={method}"]
    subprocess.run(["gcc", *said, "-c", str(tmp_path / "net_kernels.c"), "-o", str(tmp_path / "net.o")], check=True)

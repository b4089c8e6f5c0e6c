"""The vector functions: their error bounds, and the same bits on every width.

The ordinary test takes samples of every sign and exponent, and the points where a function changes its method; `-m
full` takes every float.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.vendored import definitions, float_rules
from nnbuild.base.writer import Instruction, Writer
from nnbuild.emit.instructions import instructions
from nnbuild.isa import vector_functions as functions
from nnbuild.isa.registry import isas, vector_sets
from nnbuild.isa.vectors import Vectors
from tests.kernels.test_variants import runs_here
from tests.support.compiled import STRICT

pytestmark = pytest.mark.slow

FUNCTIONS: dict[str, Callable[[Vectors], Instruction]] = {
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "sigmoid": functions.sigmoid,
    "expm1": functions.expm1,
    "cell_tanh": functions.cell_tanh,
    "cell_sigmoid": functions.cell_sigmoid,
    "log1p": functions.log1p,
    "erf": functions.erf,
    "rint": functions.rint,
    "floor": functions.floor,
    "ceil": functions.ceil,
}
LIBRARY = ("expf", "logf", "rintf", "floorf", "ceilf")
"""Functions whose bits are those of the library's."""
EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "expm1": np.expm1,
    "cell_tanh": np.tanh,
    "cell_sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "log1p": np.log1p,
    "erf": np.vectorize(math.erf, [np.float64]),
}
CLOSE = {"cell_sigmoid": 2.5e-7}
"""Absolute error bounds, where the error is not relative to the result."""
FUSED = ("cell_tanh", "cell_sigmoid")
"""Their last bits differ where the set fuses multiplication and addition."""
ULPS = {"tanh": 2.7, "sigmoid": 2.6, "expm1": 2.1, "cell_tanh": 5.1, "log1p": 2.6, "erf": 9.0}
WITHIN = {"expm1": (-np.inf, 87.99999), "log1p": (0.0, 1.0)}
"""The domain in use."""
LEAST_NORMAL = 2.0**-126
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 87.0, -87.0, 88.0, 88.72284, 89.0, -104.0, 10.0, -10.0, 1e-45]
SPECIAL += [sign * (half + 0.5) for sign in (1, -1) for half in (0, 1, 2, 2**21, 2**22 - 1, 2**22, 2**23 - 1)]
PER_EXPONENT = 2048
COMPILERS = [
    ("gcc", "-O2"),
    ("clang", "-O2"),
    ("clang", "-O2", "-march=native", "-ffp-contract=fast"),
    ("gcc", "-O2", "-DNN_PORTABLE"),
]

FLOATS = [vectors for vectors in vector_sets() if "float" in vectors.kernels and vectors.name in isas()]


def inputs() -> np.ndarray:
    """Samples of every sign and exponent, special values with their neighbours."""
    chance = np.random.default_rng(0)
    mantissas = chance.integers(0, 1 << 23, (512, PER_EXPONENT), np.uint32)
    strata = ((np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)) | mantissas).reshape(-1)
    special = np.array(SPECIAL, np.float32).view(np.uint32)
    around = (special[:, None] + np.arange(-8, 8, dtype=np.int64)[None]).astype(np.uint32).reshape(-1)
    bits = np.concatenate([strata, around])
    return bits[: len(bits) // 16 * 16].view(np.float32)


def program(folder: Path, tool: tuple[str, ...] = ("gcc", "-O2")) -> Path:
    """A program that reads floats and writes the results of each function on each width, and the library's."""
    w = Writer("f")
    parts, calls = [], []
    for floats in FLOATS:
        isa = isas()[floats.name]
        if not runs_here(isa) and "-DNN_PORTABLE" not in tool:
            continue
        target = "" if "-DNN_PORTABLE" in tool else f'__attribute__((target("{isa.target}"))) '
        known, functions = set(w.instructions), []
        for name, maker in FUNCTIONS.items():
            call = floats.call(w, "f_store", "out + i", w.call(maker(floats), floats.load(w, "in + i")))
            functions.append(
                f"{target}static void {floats.name}_{name}(const float *in, float *out, long n)\n{{\n"
                f"    for (long i = 0; i < n; i += {floats.lanes})\n        {call};\n}}\n"
            )
            calls.append(f"{floats.name}_{name}")
        new = [instruction for name, instruction in w.instructions.items() if name not in known]
        parts += [instructions(new, "f", target), *functions]
    for name in LIBRARY:
        calls.append(f"library_{name}")
        loop = f"for (long i = 0; i < n; ++i)\n        out[i] = f_{name}(in[i]);"
        parts.append(f"static void library_{name}(const float *in, float *out, long n)\n{{\n    {loop}\n}}\n")
    options = ", ".join(f'"{option}"' for option in isas()["sse2"].gcc_options)
    includes = "".join(f"#include <{name}>\n" for name in ("immintrin.h", "stdint.h", "stdio.h"))
    head = f"{float_rules()}\n#ifndef __clang__\n#pragma GCC optimize({options})\n#endif\n{includes}"
    body = "\n".join(f"    {call}(in, out, n);\n    fwrite(out, 4, (size_t)n, stdout);" for call in calls)
    main = (
        "static float in[CHUNK], out[CHUNK];\n\nint main(void)\n{\n"
        "    const long n = (long)fread(in, 4, CHUNK, stdin);\n" + body + "\n    return 0;\n}\n"
    )
    source = folder / "functions.c"
    source.write_text(head + definitions([*LIBRARY, "product"], "f") + "".join(parts) + main)
    (folder / "calls").write_text("\n".join(calls))
    out = folder / "functions"
    done = subprocess.run([*tool, *STRICT, f"-DCHUNK={1 << 22}", str(source), "-o", str(out)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return out


def results(values: np.ndarray, compiled: Path) -> dict[str, np.ndarray]:
    done = subprocess.run([str(compiled)], input=values.tobytes(), capture_output=True, check=True)
    calls = compiled.with_name("calls").read_text().split()
    rows = np.frombuffer(done.stdout, np.float32).reshape(len(calls), len(values))
    return dict(zip(calls, rows, strict=True))


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units in the last place of the exact value; for subnormal values, in the smallest unit."""
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    unit = np.where(np.abs(exact) < LEAST_NORMAL, LEAST_NORMAL, unit)
    return np.abs(found.astype(np.float64) - exact) / unit


def check(values: np.ndarray, found: dict[str, np.ndarray]) -> None:
    here = [floats.name for floats in FLOATS if f"{floats.name}_exp" in found]
    for name in FUNCTIONS:
        first = found[f"{here[0]}_{name}"]
        nan = np.isnan(values) | np.isnan(first)
        for other in here[1:] if name not in FUSED else ():
            np.testing.assert_array_equal(first[~nan].view(np.uint32), found[f"{other}_{name}"][~nan].view(np.uint32))
            assert np.isnan(found[f"{other}_{name}"][nan]).all(), f"{name} loses a NaN on {other}"
        library = found.get(f"library_{name}f")
        if library is not None:
            np.testing.assert_array_equal(first[~nan].view(np.uint32), library[~nan].view(np.uint32), err_msg=name)
            assert np.isnan(library[nan]).all() and np.isnan(first[nan]).all()
            continue
        low, high = WITHIN.get(name, (-np.inf, np.inf))
        kept = ~nan & (low <= values) & (values <= high)
        with np.errstate(all="ignore"):
            exact = EXACT[name](values[kept].astype(np.float64))
            errors = np.abs(first[kept] - exact) if name in CLOSE else ulps(first[kept], exact)
        worst = int(errors.argmax())
        bound = CLOSE.get(name) or ULPS[name]
        assert errors[worst] <= bound, f"{name}({float(values[kept][worst]).hex()}) errs by {errors[worst]:.3g}"


@pytest.mark.turns(4)
@pytest.mark.parametrize("tool", COMPILERS, ids=" ".join)
def test_functions_keep_their_bounds_and_agree_on_every_width(tool: tuple[str, ...], tmp_path: Path) -> None:
    values = inputs()
    check(values, results(values, program(tmp_path, tool)))


@pytest.mark.full
def test_every_float(tmp_path: Path) -> None:
    compiled = program(tmp_path)
    for high in range(0, 1 << 32, 1 << 22):
        values = np.arange(high, high + (1 << 22), dtype=np.uint64).astype(np.uint32).view(np.float32)
        check(values, results(values, compiled))

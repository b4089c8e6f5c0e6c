"""Where the library is, and how the tests compile C."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBM = HERE.parents[1] / "firmware" / "libm"
# -fno-builtin keeps the reference the C library's own.
HOST_FLAGS = ("-std=gnu99", "-O2", "-fno-builtin")

Run = Callable[..., str]


def need(tool: str) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    return tool


@pytest.fixture(scope="session")
def libm() -> Path:
    return LIBM


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """The name of an installed tool; skips the test by the tool's name where there is none."""
    return need


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command to its end and return what it printed; a failure shows both outputs."""

    def run_command(*command: str | Path, timeout: float = 300) -> str:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run_command


@pytest.fixture(scope="session")
def accuracy(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that measures errors; built once a worker."""
    program = tmp_path_factory.mktemp("libm") / "accuracy"
    sources = [HERE / "accuracy.c", *sorted(LIBM.glob("nn_*.c"))]
    run(need("gcc"), *HOST_FLAGS, f"-I{LIBM}", f"-I{HERE}", *sources, "-o", program, "-lm", "-lpthread")
    return program


@pytest.fixture(scope="session")
def stated_bound() -> Callable[[str], float]:
    """The bound a function's own comment states: a number of ULP, or zero for 'Exact' and 'correctly rounded'."""

    def bound_of(name: str) -> float:
        text = (LIBM / f"nn_{name}.c").read_text()
        if found := re.search(r"Largest error(?: found)?: ([0-9.]+) ULP", text):
            return float(found[1])
        assert "Exact" in text or "correctly rounded" in text, f"nn_{name}.c states no error bound"
        return 0.0

    return bound_of

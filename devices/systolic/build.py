"""Builds the simulated device: python devices/systolic/build.py FOLDER [--lanes 16] [--coverage]

The result is a shared object, FOLDER/libsystolic_sim.so, which programs link and Python loads. Verilator's own run-time
is compiled once; what is up to date is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nnbuild.base.errors import ToolMissing

HERE = Path(__file__).resolve().parent
PACKAGES = ("systolic_registers", "systolic_types")
INCLUDES = HERE.parents[1] / "firmware" / "include"
FLAGS = ("-std=c++20", "-fcoroutines", "-fPIC", "-DVM_TRACE=0")


def sources() -> list[Path]:
    """Packages first, for they are read in this order."""
    rest = sorted(path for path in (HERE / "rtl").glob("*.sv") if path.stem not in PACKAGES)
    return [*(HERE / "rtl" / f"{name}.sv" for name in PACKAGES), *rest]


def lint(lanes: int = 8) -> str:
    """What Verilator has to say, which should be nothing."""
    command = [
        "verilator",
        "--lint-only",
        "-Wall",
        "--top-module",
        "systolic",
        f"-GLANES={lanes}",
        *map(str, sources()),
    ]
    return subprocess.run(command, capture_output=True, text=True).stderr


def simulator(folder: Path, lanes: int = 8, coverage: bool = False) -> Path:
    """The shared object, made anew where a source has changed; by one process at a time."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _simulator(folder, lanes, coverage)


def _simulator(folder: Path, lanes: int, coverage: bool) -> Path:
    library, stamp = folder / "libsystolic_sim.so", folder / "stamp"
    mark = _mark(lanes, coverage)
    if library.exists() and stamp.exists() and stamp.read_text() == mark:
        return library
    verilated = folder / "verilated"
    options = ["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", f"-GLANES={lanes}", "-Mdir", str(verilated)]
    options += ["--coverage-line"] if coverage else []
    _run("verilator", *options, "--top-module", "systolic", *map(str, sources()))
    root = Path(_run("verilator", "--getenv", "VERILATOR_ROOT").strip()) / "include"
    flags = [
        *FLAGS,
        f"-iquote{INCLUDES}",
        f"-I{root}",
        f"-I{root / 'vltstd'}",
        f"-I{verilated}",
        f"-DVM_COVERAGE={int(coverage)}",
    ]
    flags += [f"-DSYSTOLIC_LANES={lanes}", "-O1" if coverage else "-O3"]
    runtime = [root / f"{name}.cpp" for name in ("verilated", "verilated_threads", *["verilated_cov"] * coverage)]
    wanted = [*runtime, *sorted(verilated.glob("*.cpp")), HERE / "sim" / "systolic_sim.cpp"]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda path: _compiled(folder, path, flags), wanted))
    _run("g++", "-shared", "-o", str(library), *objects, "-lpthread")
    stamp.write_text(mark)
    return library


def _mark(lanes: int, coverage: bool) -> str:
    own = [*sources(), *sorted((HERE / "sim").glob("*.*")), Path(__file__)]
    text = b"".join(path.read_bytes() for path in own) + f"{lanes} {coverage}".encode()
    return hashlib.sha256(text).hexdigest()


def _compiled(folder: Path, source: Path, flags: list[str]) -> str:
    """An object; Verilator's run-time is not made twice."""
    made = folder / f"{source.stem}.o"
    own = source.is_relative_to(folder) or source.is_relative_to(HERE)
    if own or not made.exists():
        _run("g++", *flags, "-c", str(source), "-o", str(made))
    return str(made)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        cause = f"its simulator is made by {command[0]}, which is not installed."
        raise ToolMissing("device 'systolic'", cause, f"Type apt-get install {command[0]}.") from None
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise ToolMissing("device 'systolic'", f"{command[0]} cannot make its simulator: {said}", "Mend what it says.")
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--coverage", action="store_true")
    chosen = parser.parse_args()
    print(simulator(chosen.folder, chosen.lanes, chosen.coverage))

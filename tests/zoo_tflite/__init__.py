"""A zoo of small `.tflite` models with TFLite's own results.

    directory = zoo()          # generated on first use (about a minute of CPU), then cached
    for case in cases():       # Case(name, kind, mode, inputs)
        directory / f"{case.name}.tflite", directory / f"{case.name}.npz"

`generate.py` says what the files hold: int8, int16 (16-bit activations, 8-bit weights) and float32
models, random full-range inputs, and what TFLite's reference kernels make of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent
CACHE = Path.home() / ".cache" / "nnbuild" / "zoo_tflite"
PACKAGES = ("tensorflow", "tf-keras", "ai-edge-litert", "numpy")


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    mode: str
    inputs: int


def _key() -> str:
    """Changes with the generator and with the packages that make the models."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*.py")):
        digest.update(source.read_bytes())
    for package in PACKAGES:
        digest.update(f"{package}={importlib.metadata.version(package)}".encode())
    return digest.hexdigest()[:16]


@cache
def zoo() -> Path:
    """The directory with all the models."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / _key()
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes wait for the first
        if not (folder / "index.json").exists():
            _generate(folder)
    return folder


def _generate(folder: Path) -> None:
    fresh = Path(tempfile.mkdtemp(dir=CACHE))
    command = [sys.executable, "-m", "tests.zoo_tflite.generate", str(fresh)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, cwd=SOURCES.parents[1], env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the TFLite zoo could not be made: {done.stderr[-2000:]}")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


@cache
def cases() -> tuple[Case, ...]:
    index = json.loads((zoo() / "index.json").read_text())
    return tuple(Case(**entry) for entry in index["cases"])

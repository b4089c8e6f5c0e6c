"""Short runs of the `.tflite` fuzzer: what is spoilt is refused in words, or computed alike in numpy and in C."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import frontend, passes
from nnbuild.base.errors import NnbuildError
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.frontend.tflite_files import to_bytes
from tests.fuzz.harness import replayed
from tests.fuzz.tflite import FUZZER, spoil_file
from tests.fuzz.tflite_seeds import SEEDS
from tests.support.many import run_many
from tests.support.quantized import full_range

pytestmark = pytest.mark.fuzz

INTEGER = [name for name in SEEDS if name.endswith(("-int8", "-int16"))]
CHECKED = ["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"]


def fuzzed(cases: int, seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.tflite", "--cases", str(cases), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_spoilt_files_are_refused_in_words() -> None:
    fuzzed(800, seed=11)


@pytest.mark.full
def test_many_spoilt_files_are_refused_in_words() -> None:
    fuzzed(12000, seed=12)


@pytest.mark.parametrize(
    "case",
    [
        *((3, 10211), (3, 47193), (3, 59721), (4, 6419), (4, 16984), (5, 847), (5, 14249), (6, 344), (7, 477)),
        *((7, 4495), (8, 34653), (8, 107864), (8, 154918), (8, 178303), (20, 5190), (20, 43844)),
    ],
)
def test_what_longer_runs_found(case: tuple[int, int], tmp_path: Path) -> None:
    replayed(FUZZER, *case, tmp_path)


def spoilt_graphs(folder: Path, seed: str, count: int) -> Iterator[Graph]:
    """Integer graphs out of spoilt files that are still read, no two alike."""
    seen: set[str] = set()
    path, number = folder / "case.tflite", 0
    while len(seen) < count:
        number += 1
        rng = random.Random(f"{seed} {number}")
        try:
            path.write_bytes(to_bytes(spoil_file(SEEDS[rng.choice(INTEGER)], rng)))
            graph = passes.run(frontend.load(path, "x"))
        except (NnbuildError, struct.error, TypeError, OverflowError, ValueError, AttributeError):
            continue
        tensors = graph.tensors.values()
        key = repr([(tensor.shape, tensor.quant) for tensor in tensors] + [op.attributes for op in graph.ops])
        if graph.ops and key not in seen and sum(prod(tensor.shape) for tensor in tensors) < 10**5:
            seen.add(key)
            yield graph


def test_spoilt_files_that_are_read_compute_alike(tmp_path: Path) -> None:
    """Odd scales and zero points included: no overflow in C, and the bits of the reference."""
    runs = [(graph, full_range(graph, 6, seed=i)) for i, graph in enumerate(spoilt_graphs(tmp_path, "alike", 60))]
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, flags=CHECKED), strict=True):
        wanted = interpret.run(graph, inputs)
        for name in graph.outputs:
            np.testing.assert_array_equal(found[name], wanted[name])

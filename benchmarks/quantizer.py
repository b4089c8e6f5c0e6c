"""How near int8 stays to the float model, beside TensorFlow's converter: python benchmarks/quantizer.py [--models N]

Keras models at random (`random_keras`), both calibrated with the same 32 samples; the error is that of the outputs of
32 others, as a root mean square. Prints each model's two errors, as shares of its largest output, and how their ratio
is distributed: below 1, nnbuild is nearer. What the converter does not write, or its interpreter not compute, is left
out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.file_campaign import Untold, converted_bytes, of_tflite
from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

SAMPLES = 32
TINY = 1e-5
"""Below this share of the largest output an error is none."""
TOGETHER = 10
"""Models of one process: the converter ends some."""


def errors(seed: int, folder: Path) -> tuple[float, float] | None:
    """The converter's and nnbuild's."""
    import keras

    from benchmarks.random_keras import random_model

    keras.backend.clear_session()
    model = random_model(keras, seed)
    if len(model.inputs) > 1 or "int" in str(model.inputs[0].dtype):
        return None
    shape = (2 * SAMPLES, *model.inputs[0].shape[1:])
    x = np.random.default_rng([seed, 30]).normal(size=shape).astype(np.float32)
    made = model(x, training=False)
    wanted = np.asarray(made[0] if isinstance(made, (list, tuple)) else made)[SAMPLES:]
    try:
        (folder / "model.tflite").write_bytes(converted_bytes(model, [x[:SAMPLES]], "int8", seed))
        theirs = of_tflite(folder / "model.tflite", [x[SAMPLES:]])[0]
    except Untold:
        return None
    model.save(folder / "model.keras")
    return _error(theirs, wanted), _error(_ours(folder / "model.keras", x), wanted)


def _ours(path: Path, x: Array) -> Array:
    graph = passes.run(load(path))
    (name,) = graph.inputs
    ranges = calibrate(graph, lambda: iter([{name: x[:SAMPLES]}]), "minmax", 8)
    made = quantize_with(graph, Recipe(form="int8", float_edge=True), ranges)
    return interpret.run(made, {name: x[SAMPLES:]})[made.outputs[0]]


def _error(found: Array, wanted: Array) -> float:
    off = found.reshape(wanted.shape).astype(np.float64) - wanted
    return float(np.sqrt(np.mean(off**2)) / max(float(np.abs(wanted).max()), 1e-9))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=7000)
    parser.add_argument("--seeds", nargs="*", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.seeds:
        _print(arguments.seeds)
        return 0
    ratios: list[float] = []
    waiting = list(range(arguments.first, arguments.first + arguments.models))
    while waiting:
        command = [sys.executable, __file__, "--seeds", *map(str, waiting[:TOGETHER])]
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        begun = [int(line.split()[1]) for line in said.splitlines() if line.startswith("begun ")]
        waiting = waiting[max(1, len(begun)) :]  # behind the one with which the process ended, if it did
        for line in said.splitlines():
            if line.startswith("model "):
                print(line)
                ratios.append(float(line.split()[-1]))
    if not ratios:
        print("no model was converted")
        return 1
    tenth, median, last = np.quantile(ratios, [0.1, 0.5, 0.9])
    print(
        f"{len(ratios)} models: median ratio {median:.2f}, nine of ten from {tenth:.2f}, nine of ten below {last:.2f}"
    )
    return 0


def _print(seeds: list[int]) -> None:
    for seed in seeds:
        print(f"begun {seed}", flush=True)
        with tempfile.TemporaryDirectory() as name:
            found: Any = errors(seed, Path(name))
        if found is not None and found[0] > TINY:
            theirs, ours = found
            print(f"model {seed}: converter {theirs:.5f}, nnbuild {ours:.5f}, ratio {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

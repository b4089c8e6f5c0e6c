"""What front ends cost on a Cortex-M4, in emulated instructions a row, against their bars.

python benchmarks/features.py [BOARD]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

from nnbuild.features.config import recipe_of
from nnbuild.jobs.job import place, profile_job
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model

CASES = {
    "microfrontend, 30 ms each 10 ms": ('kind = "micro"', 45_000),
    "log-mel of MLPerf's streaming wake word, 1024/512": ('kind = "log_mel"\npreset = "mlperf_str_ww"', 80_000),
    "MFCC of MLPerf's keyword spotting, 480/320": ('kind = "mfcc"\npreset = "mlperf_kws"', None),
    "log-mel of tf.signal, 480/320": ('kind = "log_mel"', None),
    "log-mel of librosa, 2048/512": ('kind = "log_mel"\npreset = "librosa"', None),
    "three axes of an accelerometer, 256/128": ('kind = "sensor"', None),
}
"""The settings of each, and the most it may take."""


def network(path: Path, rows: int, width: int) -> None:
    """One dense layer over rows of features."""
    layers = [
        {"class_name": "InputLayer", "config": {"batch_input_shape": [None, rows, width], "name": "rows"}},
        {"class_name": "Flatten", "config": {"name": "flatten"}},
        {"class_name": "Dense", "config": {"name": "dense", "units": 2, "activation": "softmax", "use_bias": True}},
    ]
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(
            {"class_name": "Sequential", "config": {"name": "net", "layers": layers}}
        )
        file.attrs["keras_version"] = "2.15.0"
        weights = file.create_group("model_weights")
        weights.attrs["layer_names"] = [b"flatten", b"dense"]
        weights.create_group("flatten").attrs["weight_names"] = np.array([], "S1")
        dense = weights.create_group("dense")
        dense.attrs["weight_names"] = [b"dense/kernel:0", b"dense/bias:0"]
        dense["dense/kernel:0"] = np.random.default_rng(0).normal(size=(rows * width, 2)).astype(np.float32)
        dense["dense/bias:0"] = np.zeros(2, np.float32)


def cost(settings: str, board: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "f.toml").write_text(f"[features]\n{settings}\n")
        width = recipe_of(folder / "f.toml").front_end.row[1]
        network(folder / "net.h5", 4, width)
        options = Options(folder / "net.h5", board, "int8", features=folder / "f.toml")
        with place(None) as where:
            profile = profile_job(compile_model(options), where)
    return profile.layers[0].cost


def main(board: str) -> int:
    missed = 0
    for name, (settings, bar) in CASES.items():
        found = cost(settings, board)
        told = "" if bar is None else f"   at most {bar:,}: {'PASS' if found <= bar else 'FAIL'}"
        missed += bar is not None and found > bar
        print(f"{name:<52} {found:>9,}{told}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "mps2-an386"))

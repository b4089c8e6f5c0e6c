"""What the two large models share: seeded weights that keep activations in range, and the files they are saved to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np

Model = Any

SEED = 16
SAMPLES = 2


def seed_weights(model: Model) -> None:
    """He's scale for kernels, small random biases: activations neither vanish nor overflow down a deep ReLU network."""
    rng = np.random.default_rng(SEED)
    for variable in model.weights:
        shape = tuple(variable.shape)
        value = rng.standard_normal(shape, dtype=np.float32)
        if variable.name == "kernel":
            value *= np.float32(np.sqrt(2.0 / np.prod(shape[:-1])))
        elif variable.name in ("gamma", "moving_variance"):
            value = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            value *= np.float32(0.1)
        variable.assign(value)


def measure_statistics(model: Model, image: tuple[int, ...]) -> None:
    """Let every BatchNormalization learn the range it really sees: random statistics explode over many layers."""
    import keras

    normal = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [layer.momentum for layer in normal]
    for layer in normal:
        layer.momentum = 0.0
    images = np.random.default_rng(SEED + 2).normal(size=(8, *image)).astype(np.float32)
    model(images, training=True)
    for layer, momentum in zip(normal, momenta, strict=True):
        layer.momentum = momentum


def write(name: str, build: Callable[[], Model]) -> int:
    """The body of a script: build, seed, save `<name>.h5`, and `<name>.npz` with `x` and Keras' `y`."""
    parser = argparse.ArgumentParser(description=f"Write {name}.h5 with seeded weights, and its golden output.")
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    model = build()
    shape = tuple(model.inputs[0].shape)[1:]
    x = np.random.default_rng(SEED + 1).normal(size=(SAMPLES, *shape)).astype(np.float32)
    y = np.asarray(model(x, training=False))
    np.savez(out / f"{name}.npz", x=x, y=y)
    model.save(out / f"{name}.h5", include_optimizer=False)
    size = (out / f"{name}.h5").stat().st_size
    print(f"{name}.h5: {model.count_params()} parameters, {size} bytes; y from {y.min():.3g} to {y.max():.3g}")
    return 0 if np.isfinite(y).all() else 1


def main(name: str, build: Callable[[], Model]) -> None:
    sys.exit(write(name, build))

"""Write a WideResNet-16-8 with two heads (98 MB): `python tests/zoo/wide_resnet.py --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.zoo.large import SAMPLES, SEED, measure_statistics, seed_weights

IMAGE = (64, 64, 3)
WIDTHS = (128, 256, 512)
BLOCKS = 2
POLICY = 102


def build() -> Any:
    import keras
    from keras import layers

    def conv(x: Any, width: int, size: int, stride: int = 1) -> Any:
        return layers.Conv2D(width, size, stride, padding="same", use_bias=False)(x)

    def block(x: Any, width: int, stride: int) -> Any:
        bent = layers.ReLU()(layers.BatchNormalization()(x))
        short = x if x.shape[-1] == width else conv(bent, width, 1, stride)
        y = layers.ReLU()(layers.BatchNormalization()(conv(bent, width, 3, stride)))
        return layers.Add()([conv(y, width, 3), short])

    image = layers.Input(IMAGE, name="image")
    x = conv(image, 16, 3)
    for group, width in enumerate(WIDTHS):
        for index in range(BLOCKS):
            x = block(x, width, 2 if group > 0 and index == 0 else 1)
    x = layers.Flatten()(layers.ReLU()(layers.BatchNormalization()(x)))
    policy = layers.Dense(POLICY, activation="softmax", name="policy")(x)
    value = layers.Dense(1, activation="tanh", name="value")(x)
    model = keras.Model(image, [policy, value], name="wide_resnet")
    seed_weights(model)
    measure_statistics(model, IMAGE)
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description="Write wide_resnet.h5 with seeded weights, and its golden outputs.")
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    model = build()
    x = np.random.default_rng(SEED + 1).normal(size=(SAMPLES, *IMAGE)).astype(np.float32)
    policy, value = (np.asarray(y) for y in model(x, training=False))
    np.savez(out / "wide_resnet.npz", x=x, y0=policy, y1=value)
    model.save(out / "wide_resnet.h5", include_optimizer=False)
    print(f"{model.count_params()} parameters; value from {value.min():.3g} to {value.max():.3g}")
    return 0 if np.isfinite(policy).all() and np.isfinite(value).all() else 1


if __name__ == "__main__":
    sys.exit(main())

"""Write a stateful LSTM and 200 calls of it: `python tests/zoo/long_lstm.py --writer keras3|tfkeras --out DIR`.

The numbers of consecutive calls show whether an error grows while the state is carried on.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.zoo.case import WRITERS
from tests.zoo.write import import_keras, randomize

CALLS = 200
FEATURES = 6


def main() -> int:
    parser = argparse.ArgumentParser(description="Write long_lstm.h5 with seeded weights, and its answers in order.")
    parser.add_argument("--writer", choices=WRITERS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    keras, rng = import_keras(arguments.writer), np.random.default_rng(200)
    first = keras.Input(batch_shape=(1, 1, FEATURES))
    x = keras.layers.LSTM(32, stateful=True, return_sequences=True)(first)
    x = keras.layers.LSTM(16, stateful=True)(x)
    model = keras.Model(first, keras.layers.Dense(4)(x))
    randomize(model, rng)
    inputs = rng.normal(size=(CALLS, 1, FEATURES)).astype(np.float32)
    answers = np.concatenate([np.asarray(model(inputs[i : i + 1], training=False)) for i in range(CALLS)])
    arguments.out.mkdir(parents=True, exist_ok=True)
    model.save(arguments.out / "long_lstm.h5")
    np.savez(arguments.out / "long_lstm.npz", x=inputs, y=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Train the vibration example: a small network that knows how a motor shakes, and says when it shakes otherwise.

Run from anywhere, with TensorFlow installed:

    python examples/vibration/train.py

An autoencoder learns the features of a sound motor at all speeds and loads; its output is how far a row is from what it
makes of it. The recordings are synthetic: an accelerometer of three axes at 3,200 Hz, a motor whose rotor is out of
balance a little, and for the faulty one a bearing that knocks. It writes motor.h5, recordings/*.wav (what calibrates)
and day.wav (what is listened to: the bearing begins to knock in its middle) next to itself.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from nnbuild.features.config import recipe_of
from nnbuild.features.wav import write_wav

HERE = Path(__file__).resolve().parent
RATE = 3200
Samples = np.ndarray


def motor(chance: np.random.Generator, seconds: float, knocks: float = 0.0) -> Samples:
    """int16, of three axes; 1 g is 2,048."""
    time = np.arange(int(seconds * RATE)) / RATE
    speed = chance.uniform(28, 34) + 0.3 * np.sin(2 * np.pi * 0.4 * time)
    phase = 2 * np.pi * np.cumsum(speed) / RATE
    out = np.zeros((len(time), 3))
    load = chance.uniform(0.7, 1.3)
    for axis in range(3):
        for order, size in ((1, 300), (2, 90), (6, 60), (12, 30)):
            out[:, axis] += load * size * chance.uniform(0.9, 1.1) * np.sin(order * phase + axis + order)
        out[:, axis] += chance.normal(size=len(time)) * 40
    out[:, 2] += 2048
    if knocks:
        since = np.modf(3.57 * phase / (2 * np.pi))[0] / (3.57 * speed)
        ring = np.exp(-since * 300) * np.sin(2 * np.pi * 1100 * since)
        out += knocks * ring[:, None] * np.array([700, 500, 900])
    return np.clip(np.round(out), -32768, 32767).astype(np.int16)


def main() -> None:
    keras.utils.set_random_seed(2)
    chance = np.random.default_rng(2)
    front_end = recipe_of(HERE / "motor.toml").front_end
    x = np.concatenate([front_end.rows(motor(chance, 6.0)) for _ in range(120)])
    mean, spread = x.mean(axis=0), x.std(axis=0) + 0.05
    layers = keras.layers
    given = keras.Input((x.shape[1],), name="row")
    usual = layers.Dense(x.shape[1], name="usual")
    whole = usual(given)
    hidden = layers.Dense(16, activation="relu", name="squeeze")(whole)
    code = layers.Dense(6, activation="relu", name="code")(hidden)
    hidden = layers.Dense(16, activation="relu", name="widen")(code)
    back = layers.Dense(x.shape[1], name="back")(hidden)
    apart = layers.Subtract(name="apart")([whole, back])
    learner = keras.Model(given, apart)
    usual.set_weights([np.diag(1 / spread).astype(np.float32), (-mean / spread).astype(np.float32)])
    usual.trainable = False
    learner.compile(keras.optimizers.Adam(2e-3), lambda _, error: keras.ops.mean(keras.ops.square(error)))
    learner.fit(x, np.zeros_like(x), batch_size=64, epochs=40, verbose=2)
    errors = (learner.predict(x, verbose=0) ** 2).mean(axis=1)
    limit = float(np.quantile(errors, 0.999)) * 2
    # The score is 0.5 where a row is as far off as hardly any of a sound motor, twice over.
    squared = layers.Multiply(name="squared")([apart, apart])
    score = layers.Dense(1, activation="sigmoid", name="score")
    model = keras.Model(given, score(squared))
    gain = 4 / limit
    score.set_weights([np.full((x.shape[1], 1), gain / x.shape[1], np.float32), np.array([-4], np.float32)])
    sick = np.concatenate([front_end.rows(motor(chance, 6.0, chance.uniform(0.6, 1.5))) for _ in range(20)])
    sound = np.concatenate([front_end.rows(motor(chance, 6.0)) for _ in range(20)])
    for name, rows in (("sound", sound), ("knocking", sick)):
        print(f"{name}: {(model.predict(rows, verbose=0) > 0.5).mean():.1%} of the rows above the cutoff")
    model.save(HERE / "motor.h5", include_optimizer=False)
    record(np.random.default_rng(3))


def record(chance: np.random.Generator) -> None:
    (HERE / "recordings").mkdir(exist_ok=True)
    for name, knocks in (("sound1", 0.0), ("sound2", 0.0), ("knocking", 1.0)):
        (HERE / "recordings" / f"{name}.wav").write_bytes(write_wav(motor(chance, 3.0, knocks), RATE))
    day = np.concatenate([motor(chance, 5.0), motor(chance, 5.0, 1.0)])
    (HERE / "day.wav").write_bytes(write_wav(day, RATE))


if __name__ == "__main__":
    main()

"""Trains the congestion policy: python train.py

A simulated bottleneck gives sequences of what a sender sees once per round trip; a rule that knows the true bandwidth
says how far the window should have been changed. The network sees only what the sender sees, and remembers.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
UNITS, STEPS, SEQUENCES, FEATURES = 16, 40, 1500, 4
SAMPLES = 200
Floats = NDArray[np.float32]


def observe(queue: Floats, lost: Floats, rate: Floats, window: Floats) -> Floats:
    """The four features, as tcp_nn.c computes them in fixed point."""
    return np.stack([queue, lost, rate, np.log2(window) / 16], axis=-1).astype(np.float32)


def simulate(chance: np.random.Generator, sequences: int, steps: int) -> tuple[Floats, Floats]:
    """(what is seen, by how many powers of two the window should change), both [sequence, step, ...]."""
    capacity = 2 ** chance.uniform(3, 10, sequences)
    buffer = capacity * chance.uniform(0.2, 2.0, sequences)
    window = 2 ** chance.uniform(1, 11, sequences)
    seen, wanted = [], []
    for _ in range(steps):
        capacity = capacity * np.where(chance.random(sequences) < 0.03, 2 ** chance.uniform(-1, 1, sequences), 1)
        waiting = np.clip(window - capacity, 0, buffer)
        lost = np.clip(window - capacity - buffer, 0, window) / window
        rate = np.minimum(window, capacity) / window
        noise = chance.normal(0, 0.02, sequences)
        seen.append(observe(waiting / capacity + np.abs(noise), lost, rate, window))
        goal = np.clip(np.log2(1.05 * capacity / window), -1, 1)
        wanted.append(goal)
        window = np.clip(window * 2 ** (goal + chance.normal(0, 0.3, sequences)), 2, 2**15)
    return np.stack(seen, 1).astype(np.float32), np.stack(wanted, 1)[..., None].astype(np.float32)


def network(batch: int | None, steps: int | None, stateful: bool) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input(batch_shape=(batch, steps, FEATURES)),
            keras.layers.LSTM(UNITS, return_sequences=not stateful, stateful=stateful, name="memory"),
            keras.layers.Dense(1, activation="tanh", name="change"),
        ],
        name="policy",
    )


def main() -> None:
    keras.utils.set_random_seed(1)
    chance = np.random.default_rng(1)
    seen, wanted = simulate(chance, SEQUENCES, STEPS)
    trained = network(None, STEPS, stateful=False)
    trained.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    trained.fit(seen, wanted, batch_size=64, epochs=12, verbose=2)
    policy = network(1, 1, stateful=True)
    policy.set_weights(trained.get_weights())
    policy.save(HERE / "policy.h5")
    sequence, _ = simulate(chance, 1, SAMPLES)
    y = np.concatenate([policy.predict_on_batch(step[None, None]) for step in sequence[0]])
    np.savez_compressed(HERE / "samples.npz", x=sequence[0][:, None], y=y)
    calibration, _ = simulate(chance, 1, 400)
    np.savez_compressed(HERE / "calibration.npz", x=calibration[0][:, None])


if __name__ == "__main__":
    main()

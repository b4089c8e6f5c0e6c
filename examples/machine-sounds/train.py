"""Train the example of machine sounds: an autoencoder gives back what a sound machine sounds like, and fails at others.

Run from anywhere, with TensorFlow installed:

    python examples/machine-sounds/train.py

It writes machine.h5, samples.npz and calibration.npz next to itself, and prints how well errors tell faults apart.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

HERE = Path(__file__).resolve().parent

SEED = 11
RATE = 16_000  # samples of sound a second
WINDOW, HOP = 1024, 512
BANDS, FRAMES = 128, 5  # an input is five frames of 128 bands: 640 numbers
SECONDS = 3
SIZES = (128, 128, 128, 128, 8, 128, 128, 128, 128)

TRAINED_CLIPS, HELD_CLIPS = 240, 60
EPOCHS = 40
CALIBRATION, SAMPLES = 768, 400

LEARNED_FAULTS = ("click", "whine")  # some of these are among the samples of the calibration
NEW_FAULTS = ("rattle", "detuned", "rub")  # these are heard in the samples of the check alone

Rows = np.ndarray


def machine(rng: np.random.Generator, fault: str | None) -> np.ndarray:
    """Some seconds of a small electric motor: harmonics of its speed, gear noise, hum of the mains; perhaps a fault."""
    t = np.arange(RATE * SECONDS) / RATE
    load = 1 + 0.03 * np.sin(2 * np.pi * rng.uniform(0.3, 1.2) * t + rng.uniform(0, 6))
    speed = rng.uniform(46, 54) * load * (1.06 if fault == "detuned" else 1)
    turn = 2 * np.pi * np.cumsum(speed) / RATE
    sound = sum(rng.uniform(0.6, 1.4) / k * np.sin(k * turn + rng.uniform(0, 6)) for k in range(1, 9))
    teeth = 17 if fault != "detuned" else 19
    sound = sound + 0.5 * np.sin(teeth * turn) * (1 + 0.3 * np.sin(turn)) + 0.2 * np.sin(2 * teeth * turn)
    noise = np.fft.irfft(np.fft.rfft(rng.normal(size=t.size)) / np.sqrt(1 + np.arange(t.size // 2 + 1) / 400.0))
    sound = sound + 0.3 * np.sin(2 * np.pi * 100 * t) + rng.uniform(0.8, 1.2) * noise / noise.std() * 0.35
    return sound + _fault(rng, fault, t, turn)


def _fault(rng: np.random.Generator, fault: str | None, t: np.ndarray, turn: np.ndarray) -> np.ndarray:
    noise = rng.normal(size=t.size)
    if fault == "click":  # a bearing: short bursts, three and a half to a turn
        return 1.2 * noise * (np.sin(3.5 * turn / 2) ** 40)
    if fault == "whine":
        return 0.25 * np.sin(2 * np.pi * rng.uniform(2500, 5000) * t)
    if fault == "rattle":
        return 0.7 * np.sin(2 * np.pi * rng.uniform(900, 1500) * t) * (np.sin(turn / 2) ** 16)
    if fault == "rub":
        return 0.35 * np.convolve(noise, np.sin(np.arange(16) * rng.uniform(1.0, 1.6)), "same") / 3
    return np.zeros(t.size)


def bands() -> np.ndarray:
    """Triangles on the mel scale: [frequencies, bands]."""
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1) / (RATE / 2) * (WINDOW // 2)
    at = np.arange(WINDOW // 2 + 1)[:, None]
    up = (at - edges[:-2]) / np.maximum(edges[1:-1] - edges[:-2], 1.0)
    down = (edges[2:] - at) / np.maximum(edges[2:] - edges[1:-1], 1.0)
    return np.maximum(0, np.minimum(up, down)) + 1e-6


def rows(sound: np.ndarray) -> Rows:
    """Every five frames of the logarithm of its bands, as one input."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * np.hanning(WINDOW)
    levels = np.log10(np.square(np.abs(np.fft.rfft(frames))) @ bands() + 1e-3)
    return (
        np.lib.stride_tricks.sliding_window_view(levels, FRAMES, axis=0).transpose(0, 2, 1).reshape(-1, FRAMES * BANDS)
    )


def heard(rng: np.random.Generator, clips: int, faults: tuple[str | None, ...] = (None,)) -> Rows:
    return np.concatenate([rows(machine(rng, faults[i % len(faults)])) for i in range(clips)])


def build() -> keras.Model:
    """640-128-128-128-128-8-128-128-128-128-640, each but the last with BatchNormalization and ReLU."""
    x = entry = keras.Input((FRAMES * BANDS,), name="bands")
    for number, size in enumerate(SIZES):
        x = layers.Dense(size, name=f"dense{number}")(x)
        x = layers.BatchNormalization(name=f"norm{number}")(x)
        x = layers.ReLU(name=f"relu{number}")(x)
    return keras.Model(entry, layers.Dense(FRAMES * BANDS, name="given_back")(x), name="machine")


def train(model: keras.Model, inputs: Rows) -> None:
    steps = EPOCHS * (len(inputs) // 256)
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(2e-3, steps)), "mse")
    model.fit(inputs, inputs, batch_size=256, epochs=EPOCHS, verbose=2)


def auc(sound: np.ndarray, faulty: np.ndarray) -> float:
    """The chance that a faulty sample errs more than a sound one."""
    ranks = np.argsort(np.argsort(np.concatenate([sound, faulty])))[len(sound) :] + 1
    return float((ranks.sum() - len(faulty) * (len(faulty) + 1) / 2) / (len(sound) * len(faulty)))


def errors(model: keras.Model, inputs: Rows) -> np.ndarray:
    return np.square(model.predict(inputs, batch_size=512, verbose=0) - inputs).mean(axis=1)


def stored(values: np.ndarray) -> np.ndarray:
    """In steps of 1/64, which compress well; all files and figures are made of these."""
    return (np.round(values * 64) / 64).astype(np.float32)


def main() -> None:
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    trained = heard(rng, TRAINED_CLIPS)
    mean, spread = trained.mean(axis=0), trained.std()
    trained, held, learned, new = (
        stored((each - mean) / spread)
        for each in (
            trained,
            heard(rng, HELD_CLIPS),
            heard(rng, HELD_CLIPS // 2, LEARNED_FAULTS),
            heard(rng, HELD_CLIPS, NEW_FAULTS),
        )
    )
    model = build()
    train(model, trained)
    print(f"AUC on faults never heard before: {auc(errors(model, held), errors(model, new)):.4f}")
    model.save(HERE / "machine.h5", include_optimizer=False)

    half = SAMPLES // 2
    x = np.concatenate([rng.permutation(held)[:half], rng.permutation(new)[:half]])
    order = rng.permutation(SAMPLES)
    labels = (np.arange(SAMPLES) >= half).astype(np.int32)
    y = model.predict(x, verbose=0)
    np.savez_compressed(HERE / "samples.npz", x=x[order].astype(np.float16), labels=labels[order])
    print(f"AUC on samples.npz: {auc(errors(model, x[:half]), errors(model, x[half:])):.4f}, {len(y)} samples")
    faulty = CALIBRATION // 4
    x = np.concatenate([rng.permutation(trained)[: CALIBRATION - faulty], rng.permutation(learned)[:faulty]])
    order, labels = rng.permutation(CALIBRATION), (np.arange(CALIBRATION) >= CALIBRATION - faulty).astype(np.int32)
    np.savez_compressed(HERE / "calibration.npz", x=x[order].astype(np.float16), labels=labels[order])


if __name__ == "__main__":
    main()

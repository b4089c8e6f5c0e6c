"""Train the keyword example: a small network that tells two spoken-like words from other sound and from silence.

Run from anywhere, with TensorFlow installed:

    python examples/keyword/train.py

The words are synthetic, each a glide of vowels between noisy consonants, spoken by voices of all pitches at all speeds
and levels over noise; so the example needs no data of anyone. It writes words.h5, labels.txt, recordings/*.wav (what
calibrates) and evening.wav (what is listened to) next to itself. The features are those of sound.toml, computed by
nnbuild as the board computes them.
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
RATE, ROWS, STEP = 16000, 48, 320
LABELS = ("nothing", "yes-like", "no-like")
VOWELS = {"a": (730, 1090), "e": (530, 1840), "i": (270, 2290), "o": (570, 840), "u": (300, 870)}
WORDS = {1: ("s", "ie"), 2: ("n", "ou")}
CLIPS, EPOCHS = 2000, 16
Samples = np.ndarray


def vowel(chance: np.random.Generator, path: str, count: int) -> Samples:
    """A buzz through two resonances that glide from the first vowel to the last."""
    time = np.arange(count) / RATE
    pitch = chance.uniform(90, 240) * (1 + 0.1 * np.sin(2 * np.pi * chance.uniform(0.5, 2) * time))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    share = np.linspace(0, 1, count)
    peaks = [np.interp(share, np.linspace(0, 1, len(path)), [VOWELS[v][i] for v in path]) for i in range(2)]
    size = chance.uniform(0.9, 1.15)
    out = np.zeros(count)
    for tone in range(1, 30):
        at = tone * pitch
        loud = sum(np.exp(-(((at - size * peak) / 160) ** 2)) for peak in peaks) + 0.02
        out += loud * np.sin(tone * phase) * (at < 7500)
    return out * np.hanning(count) ** 0.3


def consonant(chance: np.random.Generator, kind: str, count: int) -> Samples:
    noise = chance.normal(size=count) * np.hanning(count)
    if kind == "s":
        return np.diff(noise, prepend=0.0) * 1.5
    return 0.5 * np.sin(2 * np.pi * 220 * np.arange(count) / RATE) * np.hanning(count) + 0.02 * noise


def word(chance: np.random.Generator, label: int) -> Samples:
    kind, path = WORDS[label]
    pieces = [consonant(chance, kind, int(chance.uniform(0.08, 0.16) * RATE))]
    pieces.append(vowel(chance, path, int(chance.uniform(0.25, 0.4) * RATE)))
    return np.concatenate(pieces)


def other(chance: np.random.Generator) -> Samples:
    """Nothing, or sounds that are neither word."""
    if chance.random() < 0.3:
        return np.zeros(1)
    path = "".join(chance.permutation(list(VOWELS))[: chance.integers(1, 4)])
    while path in ("ie", "ou"):
        path = path[::-1]
    pieces = [vowel(chance, path, int(chance.uniform(0.1, 0.5) * RATE))]
    if chance.random() < 0.5:
        pieces.insert(0, consonant(chance, "sn"[chance.integers(2)], int(chance.uniform(0.05, 0.2) * RATE)))
    return np.concatenate(pieces[:: 1 if chance.random() < 0.7 else -1])


def room(chance: np.random.Generator, seconds: float, sounds: list[tuple[float, Samples]]) -> Samples:
    out = chance.normal(size=int(seconds * RATE)) * 10 ** chance.uniform(0.5, 2.2)
    for at, sound in sounds:
        first = int(at * RATE)
        end = min(len(out), first + len(sound))
        out[first:end] += sound[: end - first] * 10 ** chance.uniform(2.9, 3.7)
    return np.clip(np.round(out), -32768, 32767).astype(np.int16)


def clips(front_end: object, chance: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of features around words, all as a stream has them: what was before is heard as well."""
    xs, ys = [], []
    for index in range(count):
        label = index % 3
        sound = word(chance, label) if label else other(chance)
        before, start = other(chance), chance.uniform(1.0, 1.6)
        length = len(sound) / RATE
        cut = chance.random() < 0.3  # a word that is not over yet, or long past, is none
        late = chance.choice([chance.uniform(-0.8, -0.4) * length, chance.uniform(0.6, 0.9)]) if cut else 0.0
        end = start + length + (late if cut else chance.uniform(0.02, 0.3))
        pcm = room(chance, end, [(0.1, before[: int(0.8 * RATE)]), (start, sound)])
        rows = front_end.rows(pcm)[-ROWS:]  # type: ignore[attr-defined]
        xs.append(rows * np.float32(0.0390625))
        ys.append(0 if cut else label)
    return np.array(xs, np.float32)[..., None], np.array(ys)


def main() -> None:
    keras.utils.set_random_seed(1)
    chance = np.random.default_rng(1)
    front_end = recipe_of(HERE / "sound.toml").front_end
    x, y = clips(front_end, chance, CLIPS)
    test_x, test_y = clips(front_end, chance, 300)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((ROWS, 40, 1)),
            layers.Conv2D(16, (6, 40), strides=(2, 1), activation="relu", name="bands"),
            layers.DepthwiseConv2D((7, 1), activation="relu", name="time"),
            layers.Conv2D(24, 1, activation="relu", name="mix"),
            layers.DepthwiseConv2D((9, 1), activation="relu", name="longer"),
            layers.Conv2D(24, 1, activation="relu", name="parts"),
            layers.AveragePooling2D((8, 1), name="mean"),
            layers.Flatten(name="flat"),
            layers.Dense(len(LABELS), activation="softmax", name="word"),
        ]
    )
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=EPOCHS, verbose=2)
    print(f"accuracy on new clips: {model.evaluate(test_x, test_y, verbose=0)[1]:.3f}")
    model.save(HERE / "words.h5", include_optimizer=False)
    (HERE / "labels.txt").write_text("\n".join(LABELS) + "\n")
    record(np.random.default_rng(2))


def record(chance: np.random.Generator) -> None:
    (HERE / "recordings").mkdir(exist_ok=True)
    for label in range(3):
        sounds = [(0.5 + 0.9 * i, word(chance, label) if label else other(chance)) for i in range(2)]
        (HERE / "recordings" / f"{LABELS[label]}.wav").write_bytes(write_wav(room(chance, 2.2, sounds), RATE))
    told = [1, 0, 2, 0, 2, 1]
    sounds = [(1.0 + 1.2 * i, word(chance, label) if label else other(chance)) for i, label in enumerate(told)]
    (HERE / "evening.wav").write_bytes(write_wav(room(chance, 8.0, sounds), RATE))


if __name__ == "__main__":
    main()

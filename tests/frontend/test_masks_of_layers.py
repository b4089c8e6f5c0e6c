"""Masks from layer to layer: which layers take them, keep them or lose them, in both generations of Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

WORDS = np.array([[1, 2, 3, 0, 0], [4, 0, 2, 5, 0], [1, 1, 1, 1, 1], [3, 0, 0, 0, 0]], np.int32)
NOTHING = np.array([[1, 2, 3, 0, 0], [0, 0, 0, 0, 0]], np.int32)
Build = Callable[[Any, Any], Any]


def _heads(layers: Any, query: Any, value: Any, **options: Any) -> Any:
    return layers.MultiHeadAttention(2, 3, **options)(query, value)


def _check(generation: str, folder: Path, build: Build, words: np.ndarray) -> None:
    keras = pytest.importorskip(generation)
    x = keras.Input((5,), dtype="int32")
    hidden = keras.layers.Embedding(6, 4, mask_zero=True)(x)
    model = keras.Model(x, build(keras.layers, hidden))
    chance = np.random.default_rng(2)
    for layer in model.layers:
        layer.set_weights([chance.normal(size=w.shape) * 0.7 for w in layer.get_weights()])
    expect_same(model, folder, words)


TAKEN: dict[str, Build] = {
    "two": lambda layers, h: [_heads(layers, h, h), _heads(layers, h, h)],
    "value": lambda layers, h: [_heads(layers, h, h), _heads(layers, layers.Dense(4)(h), h)],
    "nearer": lambda layers, h: [layers.Dense(2)(_heads(layers, h, h)), _heads(layers, h, h)],
    "further": lambda layers, h: [_heads(layers, h, h), layers.Dense(2)(_heads(layers, h, h))],
    "passed_on": lambda layers, h: [_heads(layers, layers.Dropout(0.1)(h), h), _heads(layers, h, h)],
    "product": lambda layers, h: layers.Multiply()([_heads(layers, h, h), h]),
    "attention": lambda layers, h: [_heads(layers, h, h), layers.Attention()([h, h])],
}


@pytest.mark.parametrize("generation", ["keras", "tf_keras"])
@pytest.mark.parametrize("case", TAKEN)
def test_heads_take_the_masks_of_their_inputs(case: str, generation: str, tmp_path: Path) -> None:
    """In Keras 3 a layer that reads the tensor afterwards sees none; the one nearest to the outputs is last."""
    _check(generation, tmp_path, TAKEN[case], WORDS)


ALL_MASKED: dict[str, Build] = {
    "heads": lambda layers, h: _heads(layers, h, h),
    "heads_with_dropout": lambda layers, h: _heads(layers, h, h, dropout=0.2),
    "heads_of_one_side": lambda layers, h: _heads(layers, layers.LSTM(4, return_sequences=True)(h), h, dropout=0.2),
    "scores": lambda layers, h: list(layers.MultiHeadAttention(2, 3)(h, h, return_attention_scores=True)),
    "attention": lambda layers, h: layers.Attention()([h, h]),
}


@pytest.mark.parametrize("generation", ["keras", "tf_keras"])
@pytest.mark.parametrize("case", ALL_MASKED)
def test_where_all_is_masked(case: str, generation: str, tmp_path: Path) -> None:
    """Equal shares, or zeros: it depends on the way that Keras takes."""
    _check(generation, tmp_path, ALL_MASKED[case], NOTHING)


def test_a_softmax_of_nothing_but_masked_numbers(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    x, seen = keras.Input((3, 4)), keras.Input((3, 4), dtype="bool")
    model = keras.Model([x, seen], keras.layers.Softmax()(x, mask=seen))
    given = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    mask = given > 0
    mask[:, 1] = False
    expect_same(model, tmp_path, given, mask)


KEPT: dict[str, Build] = {
    "RandomFlip": lambda layers, h: layers.RandomFlip()(h),
    "RandomContrast": lambda layers, h: layers.RandomContrast(0.1)(h),
    "RandomTranslation": lambda layers, h: layers.RandomTranslation(0.1, 0.1)(h),
    "Identity": lambda layers, h: layers.Identity()(h),
    "Dropout": lambda layers, h: layers.Dropout(0.5)(h),
    "GaussianNoise": lambda layers, h: layers.GaussianNoise(0.5)(h),
    "TimeDistributed": lambda layers, h: layers.TimeDistributed(layers.Dense(4))(h),
    "Rescaling": lambda layers, h: layers.Rescaling(2.0)(h),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("generation", ["keras", "tf_keras"])
@pytest.mark.parametrize("case", KEPT)
def test_layers_that_keep_or_lose_a_mask(case: str, generation: str, tmp_path: Path) -> None:
    _check(generation, tmp_path, lambda layers, h: layers.LSTM(3)(KEPT[case](layers, h)), WORDS)


@pytest.mark.parametrize("inner", ["Dense", "Conv1D"])
def test_a_wrapped_layer_decides_over_the_mask(inner: str, tmp_path: Path) -> None:
    def build(layers: Any, h: Any) -> Any:
        wrapped = layers.Dense(4) if inner == "Dense" else layers.Conv1D(4, 1)
        return layers.LSTM(3)(layers.SpectralNormalization(wrapped)(h))

    _check("keras", tmp_path, build, WORDS)

"""Weights of 8 bits are known by their values, whatever they were multiplied by."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.numeric.whole_multiples import rounded_to_bytes, whole_multiples


def drawn(seed: int, shape: tuple[int, ...] = (3, 3, 8, 20)) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return (chance.normal(size=shape) * 10.0 ** chance.uniform(-9, 4, shape[-1])).astype(np.float32)


def restored(weights: np.ndarray) -> np.ndarray:
    found = whole_multiples(weights)
    assert found is not None
    numbers, factor = found
    assert (numbers.dtype, factor.dtype, numbers.shape) == (np.int8, np.float32, weights.shape)
    return numbers * factor


@pytest.mark.parametrize("seed", range(20))
def test_rounded_weights_are_known(seed: int) -> None:
    weights = rounded_to_bytes(drawn(seed))
    np.testing.assert_allclose(restored(weights), weights, rtol=5e-7, atol=0)


@pytest.mark.parametrize("seed", range(20))
def test_so_they_are_after_a_normalization(seed: int) -> None:
    factors = np.random.default_rng(seed).uniform(-3, 3, 20).astype(np.float32)
    weights = rounded_to_bytes(drawn(seed)) * factors
    np.testing.assert_allclose(restored(weights), weights, rtol=5e-7, atol=0)


@pytest.mark.parametrize("seed", range(20))
def test_one_scale_of_all_channels_serves_too(seed: int) -> None:
    """Most channels then use few of its steps."""
    weights = drawn(seed, (40, 20))
    scale = np.abs(weights).max() / 127
    steps = (np.rint(weights / scale) * scale).astype(np.float32)
    np.testing.assert_allclose(restored(steps), steps, rtol=5e-7, atol=0)


def test_all_of_a_byte_is_used() -> None:
    weights = np.arange(-128, 128, dtype=np.float32)[:, None] * np.float32(0.013)
    np.testing.assert_allclose(restored(weights), weights, rtol=5e-7)
    assert whole_multiples(np.append(weights, np.float32(128 * 0.013))[:, None]) is None


def test_dead_channels_change_nothing() -> None:
    weights = rounded_to_bytes(drawn(0))
    weights[..., 3] = 0
    np.testing.assert_allclose(restored(weights), weights, rtol=5e-7, atol=0)


@pytest.mark.parametrize("tiny", [1e-19, 1e-25, 1e-38, 1e-44])
def test_nearly_dead_channels_are_no_obstacle(tiny: float) -> None:
    weights = drawn(0)
    weights[..., 3] = np.random.default_rng(0).normal(size=weights.shape[:-1]) * tiny
    found = rounded_to_bytes(weights)
    np.testing.assert_allclose(restored(found), found, rtol=5e-7, atol=0)
    assert np.abs(found[..., 3] - weights[..., 3]).max() < 1e-17


def test_other_weights_are_not_taken_for_them() -> None:
    assert all(whole_multiples(drawn(seed)) is None for seed in range(50))
    one = rounded_to_bytes(drawn(0))
    one[0, 0, 0, 5] *= np.float32(1.00001)
    assert whole_multiples(one) is None


@pytest.mark.parametrize(
    "weights",
    [
        np.zeros((9, 4), np.float32),
        np.full((9, 4), np.inf, np.float32),
        np.full((9, 4), np.nan, np.float32),
        np.full((9, 4), 1e-38, np.float32),
        np.zeros((0, 4), np.float32),
    ],
)
def test_these_stay_floats(weights: np.ndarray) -> None:
    assert whole_multiples(weights) is None

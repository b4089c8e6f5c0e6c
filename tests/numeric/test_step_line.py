"""Lines of few inputs: every line found gives every result, with and without dropped bits."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.numeric.multiplier import quantize_multipliers
from nnbuild.numeric.rounding import INT8, ints, requantize, rounding_mean, saturate
from nnbuild.numeric.step_line import StepLines, step_lines

BYTES = ints(np.arange(INT8[0], INT8[1] + 1))


def drawn(seed: int, powers: tuple[float, float], drop: int, relu: bool = False) -> tuple[StepLines, np.ndarray]:
    """The lines of a quantized affine layer, and the expected results."""
    chance, channels = np.random.default_rng(seed), 12
    reals = 2.0 ** chance.uniform(*powers, size=channels) / 127
    reals[:2] *= 2.0**-14  # nearly dead
    weights = np.where(chance.integers(0, 2, channels) == 0, -127, chance.integers(-127, 128, channels))
    weights[2] = 0
    zeros = chance.integers(-128, 128, 2)
    sums = (BYTES[:, None] - zeros[0]) * weights + np.round(chance.normal(scale=10, size=channels) / reals).astype(int)
    bounds = (int(zeros[1]), INT8[1]) if relu else INT8
    wanted = saturate(requantize(sums, *quantize_multipliers(reals)) + zeros[1], *bounds)
    found = step_lines(BYTES, wanted, bounds, reals * weights, int(zeros[1]), drop)
    assert found is not None
    return found, wanted


@pytest.mark.parametrize("drop", [0, 16])
@pytest.mark.parametrize("powers", [(-8, 1), (-1, 0), (2, 5)])
def test_lines_of_affine_layers_give_every_result(drop: int, powers: tuple[float, float]) -> None:
    for seed in range(3):
        found, wanted = drawn(seed, powers, drop, relu=seed == 2)
        np.testing.assert_array_equal(found.outputs(BYTES[:, None]), wanted)
        farthest = np.abs(BYTES[:, None] * found.factors >> drop).max() + np.abs(found.starts).max()
        assert farthest + np.abs(found.kinks).max() < 2**31


def test_some_channels_have_a_kink_below_zero() -> None:
    assert any(drawn(seed, (-1, 0), 0)[0].kinks.any() for seed in range(12))


@pytest.mark.parametrize("size", [1, 2, 4, 6, 9, 16, 49, 100, 256])
def test_averages_of_windows_are_lines_of_their_sums(size: int) -> None:
    sums = ints(np.arange(INT8[0] * size, INT8[1] * size + 1))
    wanted = rounding_mean(sums, size)[:, None]
    found = step_lines(sums, wanted, INT8, np.array([1 / size]), 0, drop=16)
    assert found is not None and not found.kinks.any()
    np.testing.assert_array_equal(found.outputs(sums[:, None]), wanted)


def test_nonlinear_functions_have_no_line() -> None:
    wanted = np.where(BYTES < 0, 0, np.where(BYTES < 20, BYTES, 20 + 3 * (BYTES - 20)))[:, None]
    assert step_lines(BYTES, saturate(wanted, *INT8), INT8, np.array([1.0]), 0) is None

"""The scaling of Cortex-M4 kernels against the rule it replaces, on sums at the edges of every rounding."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.kernels.dsp_scaling import Scaling, scaled
from nnbuild.numeric.rounding import INT8, Ints, ints, requantize, saturate


def outputs(scaling: Scaling, sums: Ints) -> Ints:
    """What the printed instructions compute: sums are [count, channels], before any factor."""
    raised = sums * scaling.factors
    assert np.abs(raised).max() < 1 << 31
    columns = scaling.columns
    offset = columns["offset"] - np.where(raised < 0, columns.get("below", ints(0)), 0)
    high = ((raised * columns["multiplier"]) >> 32) + offset
    assert np.abs(high).max() < 1 << 31
    shift = ints(scaling.shift) if scaling.shift is not None else columns["shift"]
    return saturate(saturate(high >> shift, *INT8), *scaling.bounds)


def near_steps(multiplier: Ints, shift: Ints, reach: int) -> Ints:
    """Sums around those at which the output steps, and random ones."""
    chance = np.random.default_rng(1)
    steps = (np.arange(-140, 140)[:, None] + 0.5) * 2.0 ** (31 - shift) / np.maximum(multiplier, 1)
    around = np.floor(steps)[None] + np.arange(-3, 4)[:, None, None]
    sums = np.concatenate([around.reshape(-1, len(shift)), chance.integers(-reach, reach + 1, (2000, len(shift)))])
    few = np.arange(-64, 65)[:, None] + np.zeros(len(shift), np.int64)
    return saturate(ints(np.concatenate([np.clip(sums, -reach, reach), few])), -reach, reach)


def compare(multiplier: Ints, shift: Ints, reach: int, zero: int, limits: tuple[int, int]) -> Scaling:
    everywhere = np.full(len(shift), reach)
    found = scaled(multiplier, shift, everywhere, np.full(len(shift), 127), zero, limits)
    assert isinstance(found, Scaling), found
    sums = near_steps(multiplier, shift, reach)
    wanted = saturate(requantize(sums, multiplier, shift) + zero, *limits)
    np.testing.assert_array_equal(outputs(found, sums), wanted)
    return found


@pytest.mark.parametrize("zero", [-128, -5, 0, 127])
@pytest.mark.parametrize("relu", [True, False])
def test_equals_the_double_rounding(zero: int, relu: bool) -> None:
    chance = np.random.default_rng(zero + 200)
    limits = (zero, 127) if relu else INT8
    for lowest, highest in ((-9, -4), (-8, -2), (-3, 2), (0, 1), (-12, -8)):
        shift = ints(chance.integers(lowest, highest + 1, 12))
        multiplier = ints(chance.integers(1 << 30, 1 << 31, 12))
        multiplier[:3] = 1 << 30, (1 << 31) - 1, (1 << 30) + 1
        compare(multiplier, shift, 150_000, zero, limits)


def test_one_shift_serves_all_channels() -> None:
    shift = ints([-4, -7, -9, -10])
    found = compare(np.full(4, (1 << 30) + 12345), shift, 150_000, -128, INT8)
    assert found.shift == 11 and "shift" not in found.columns


def test_far_shifts_are_kept_apart() -> None:
    found = compare(np.full(3, (1 << 30) + 12345), ints([-1, -4, -12]), 150_000, 3, INT8)
    assert found.shift is None and list(found.columns["shift"]) == [2, 5, 13]


def test_dead_channels_have_no_say() -> None:
    found = compare(ints([1 << 30, 0, 1 << 30]), ints([-30, 0, -7]), 150_000, -100, INT8)
    assert found.shift == 8


def test_refusals() -> None:
    one, reach, largest = ints([1 << 30]), ints([1 << 23]), ints([127])
    assert scaled(one, ints([-22]), reach, largest, 0, INT8) == "an output is shifted by more than 22 bits"
    said = scaled(one, ints([7]), ints([1 << 24]), largest, 0, INT8)
    assert said == "its weights or sums, raised to a common scale, do not fit"

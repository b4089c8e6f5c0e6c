"""Scaling as one line: equal to its rule for every sum, or for all sums near its steps."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.numeric.elementwise import add_scales
from nnbuild.numeric.line_scale import (
    SPLIT_BITS,
    Line,
    Split,
    doubled_line,
    fitted_split,
    upward_line,
)
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import Ints, ints, requantize

SUMS = np.concatenate([np.arange(-3000, 3000), np.random.default_rng(0).integers(-(2**28), 2**28, 20000)])


def on(line: Line, sums: Ints) -> Ints:
    return (sums * line.multiplier + line.addend) >> line.shift


def scales() -> list[Multiplier]:
    chance = np.random.default_rng(1)
    found = [quantize_multiplier(float(2.0**power)) for power in chance.uniform(-30, -1.01, 60)]
    return [*found, *(quantize_multiplier(2.0**-power) for power in range(2, 30)), Multiplier(0, 0)]


@pytest.mark.parametrize("zero", [-128, -3, 0, 127])
def test_rounding_twice_is_a_line_where_negative_results_do_not_count(zero: int) -> None:
    for scale in scales():
        line = upward_line(scale, zero)
        if scale.shift < -22:  # the zero point does not fit then; such a scale is useless anyway
            continue
        assert line.fits((-(2**28), 2**28))
        wanted = requantize(SUMS, *scale) + zero
        np.testing.assert_array_equal(np.maximum(on(line, SUMS), zero), np.maximum(wanted, zero), str(scale))


@pytest.mark.parametrize("zero", [-128, 0, 127])
def test_rounding_twice_is_a_line_of_doubled_sums(zero: int) -> None:
    for scale in [*scales(), Multiplier(1500000000, 0), Multiplier(1 << 30, 1), Multiplier(2000000000, 3)]:
        line, sums = doubled_line(scale, zero), SUMS >> 4
        if scale.shift < -22:
            continue
        assert line.fits((-(2**29), 2**29))
        high = ((sums << (max(scale.shift, 0) + 1)) * line.multiplier + line.addend) >> 32
        away = -1 if line.shift > 32 else 0
        found = (high + (sums >> 63 & away)) >> (line.shift - 32)
        np.testing.assert_array_equal(found, requantize(sums, *scale) + zero, str(scale))


def test_lines_that_leave_64_bits_do_not_fit() -> None:
    assert not Line(2**31 - 1, 0, 40).fits((-(2**33), 2**33))
    assert not Line(2**30, 0, 31).fits((-1, 1))


def split_on(split: Split, x: Ints) -> Ints:
    centred = x - split.zero
    high = centred * split.whole + ((centred * split.fraction + split.addend) >> SPLIT_BITS)
    if split.shift:
        high = (high + (1 << (split.shift - 1)) + (centred >> 63)) >> split.shift
    return np.asarray(high + split.constant)


def test_a_split_equals_its_operand_for_all_bytes_and_stays_within_32_bits() -> None:
    chance, x = np.random.default_rng(3), np.arange(-128, 128)
    for index in range(400):
        first, second, out = (float(np.float32(2.0 ** chance.uniform(-12, -2))) for _ in range(3))
        if index % 4 == 0:
            second = first * 2.0 ** -int(chance.integers(0, 6))
        zero, sums = int(chance.integers(-128, 128)), add_scales(first, second, out, 8)
        for scale in (sums.first, sums.second):
            split = fitted_split(zero, sums.left_shift, scale)
            assert split is not None
            wanted = requantize((ints(x) - zero) << sums.left_shift, *scale)
            np.testing.assert_array_equal(split_on(split, x), wanted, str(scale))
            centred = x - split.zero
            assert np.abs(centred * split.fraction + split.addend).max() < 2**31
            assert np.abs(centred * split.whole).max() < 2**31

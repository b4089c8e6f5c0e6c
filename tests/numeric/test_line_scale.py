"""Scaling as one line: equal to its rule for every sum, or for all sums near its steps."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.numeric.line_scale import Line, doubled_line, upward_line
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import Ints, requantize

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

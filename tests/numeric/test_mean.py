"""The factor that replaces a division is exact for every sum, or there is none."""

from __future__ import annotations

from fractions import Fraction

from nnbuild.numeric.mean import MEAN_BITS, MEAN_HALF, factor_above, mean_factor


def test_small_windows_have_a_factor() -> None:
    assert all(mean_factor(count) == factor_above(count, MEAN_BITS) for count in range(1, 203))
    assert all(mean_factor(count) is not None for count in (*range(203, 264), 17 * 17, 18 * 18))
    assert mean_factor(264) is None


def test_it_rounds_to_nearest_and_halves_away_from_zero() -> None:
    for count in (1, 2, 3, 64, 125, 196, 203, 263):
        factor = mean_factor(count)
        assert factor is not None
        for total in range(-128 * count, 127 * count + 1, 7):
            nearest = int(Fraction(abs(total), count) + Fraction(1, 2))
            product = total * factor + MEAN_HALF - (total < 0)
            assert -(2**31) <= product < 2**31
            assert product >> MEAN_BITS == (nearest if total >= 0 else -nearest)

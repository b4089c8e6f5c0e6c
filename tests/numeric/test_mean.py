"""The factor that replaces a division is exact for every sum, or there is none."""

from __future__ import annotations

from fractions import Fraction

from nnbuild.numeric.mean import MEAN_BITS, mean_factor


def test_small_windows_have_a_factor() -> None:
    assert all(mean_factor(count) is not None for count in range(1, 372))
    assert mean_factor(372) is None


def test_it_rounds_to_nearest_and_halves_up() -> None:
    for count in (1, 2, 3, 64, 125, 371):
        factor = mean_factor(count)
        assert factor is not None
        for total in range(0, 128 * count + 1, 7):
            nearest = int(Fraction(total, count) + Fraction(1, 2))
            assert ((total + count // 2) * factor) >> MEAN_BITS == nearest

"""The edge conversion: float values into a quantised model and back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbuild.numeric.edge import dequantize, quantize
from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import limits


def quantize_edge(values: np.ndarray, scale: float, zero_point: int, dtype: type) -> np.ndarray:
    return np.asarray(quantize(values, scale, zero_point, *limits(dtype)), dtype)


def half_away(value: float) -> int:
    exact = Fraction(value)
    return int(math.copysign(1, value)) * math.floor(abs(exact) + Fraction(1, 2))


@given(st.floats(-1e6, 1e6, width=32))
def test_rounding_is_exact(value: float) -> None:
    assert round_half_away(np.array([value], np.float32))[0] == half_away(value)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.5, 1),
        (-0.5, -1),
        (1.5, 2),
        (2.5, 3),
        (-2.5, -3),
        (0.49999997, 0),
        (-0.49999997, 0),
        (8388609.0, 8388609),
        (0, 0),
    ],
)
def test_rounding_at_the_halves(value: float, rounded: float) -> None:
    assert round_half_away(np.float32([value]))[0] == rounded


@given(st.floats(-1e6, 1e6, width=32), st.floats(2**-10, 10, width=32), st.integers(-128, 127))
def test_quantising_follows_the_rule(value: float, scale: float, zero_point: int) -> None:
    quotient = float(np.float32(value) / np.float32(scale))
    expected = min(127, max(-128, half_away(quotient) + zero_point))
    assert quantize_edge(np.array([value]), scale, zero_point, np.int8)[0] == expected


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.int8, -128, 127), (np.int16, -32768, 32767)])
def test_saturation(dtype: type, low: int, high: int) -> None:
    values = np.array([1e30, -1e30, np.inf, -np.inf, 3.4e38])
    with np.errstate(all="raise"):
        found = quantize_edge(values, 1e-6, 0, dtype)
    assert found.tolist() == [high, low, high, low, high]
    assert found.dtype == dtype


def test_every_integer_comes_back() -> None:
    for scale in (0.5, 1 / 255, 0.0078125, 0.1234567):
        whole = np.arange(-128, 128).astype(np.int8)
        assert np.array_equal(quantize_edge(dequantize(whole, scale, -5), scale, -5, np.int8), whole)


def test_division_is_in_float32() -> None:
    """The quotient is a half in float32, and just below it in float64."""
    value, scale = np.float32(0.25), 0.1
    assert float(value) / float(np.float32(scale)) < 2.5
    assert quantize_edge(np.array([value]), scale, 0, np.int8)[0] == 3

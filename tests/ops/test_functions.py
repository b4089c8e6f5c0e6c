"""Functions of one number against the standard library's."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

from nnbuild.ops.functions import ERF_PIECE, apply

RANDOM = np.random.default_rng(8)
NUMBERS = np.concatenate(
    [RANDOM.normal(0, 3, ERF_PIECE + 7), np.linspace(-1e-3, 1e-3, 999), 10.0 ** -np.arange(300), [7.0, -40.0]]
)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_error_function_is_that_of_the_library(kind: type[np.floating]) -> None:
    x = NUMBERS.astype(kind)
    wanted = np.array([erf(each) for each in x])
    np.testing.assert_allclose(apply("erf", (), x), wanted.astype(kind), rtol=2 * np.finfo(kind).eps, atol=0)


def test_the_error_function_at_its_ends() -> None:
    x = np.array([[np.inf, -np.inf, np.nan]])
    np.testing.assert_array_equal(apply("erf", (), x), [[1.0, -1.0, np.nan]])
    assert apply("erf", (), np.zeros((0, 3), np.float32)).shape == (0, 3)

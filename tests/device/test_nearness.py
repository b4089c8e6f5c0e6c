"""When a number is near enough: absolute, sample by sample, and by kind where it is not finite."""

from __future__ import annotations

import math

import numpy as np

from nnbuild.numeric.nearness import near

NAN, INF = math.nan, math.inf


def test_what_is_not_finite_is_judged_by_its_kind() -> None:
    wanted = np.array([INF, -INF, NAN, INF, NAN, 1.0, 1.0, INF])
    found = np.array([INF, -INF, NAN, -INF, INF, NAN, INF, 3e38])
    assert near(wanted, found, 1e30).tolist() == [True, True, True, False, False, False, False, False]
    assert near(np.array([1.0]), np.array([2.0]), INF).all() and not near(wanted, found, INF)[3:].any()


def test_each_sample_has_its_own_tolerance() -> None:
    wanted, found = np.zeros((2, 3)), np.full((2, 3), 0.5)
    assert near(wanted, found, np.array([0.5, 0.4])).all(axis=1).tolist() == [True, False]
    assert near(wanted.astype(np.int8), np.ones((2, 3), np.int8), np.array([1, 0]))[:, 0].tolist() == [True, False]


def test_integers_differ_without_wrapping() -> None:
    assert not near(np.array([-128], np.int8), np.array([127], np.int8), 1).any()
    assert near(np.array([2**31 - 1], np.int32), np.array([2**31 - 1], np.int32)).all()

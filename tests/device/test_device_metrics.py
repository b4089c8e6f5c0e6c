"""The metrics against their definitions, written out again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nnbuild.device import metrics

FINITE = st.floats(-1e6, 1e6, width=32)


def test_known_figures() -> None:
    found = metrics.compare(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert found.rmse == pytest.approx(0.5)
    assert found.mae == pytest.approx(0.25)
    assert found.l2r == pytest.approx(1 / math.sqrt(30))
    assert (found.mean, found.max_error) == (0.25, 1.0)
    assert found.std == pytest.approx(math.sqrt(0.25 - 0.0625))
    assert found.nse == pytest.approx(1 - 1 / 5)
    assert found.cosine == pytest.approx(34 / math.sqrt(30 * 39))


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=3), elements=FINITE))
def test_the_same_values_are_perfect(values: np.ndarray) -> None:
    found = metrics.compare(values, values)
    assert (found.rmse, found.mae, found.l2r, found.max_error, found.nse) == (0, 0, 0, 0, 1)
    assert found.cosine == pytest.approx(1)


@given(hnp.arrays(np.float64, (2, 5), elements=FINITE), hnp.arrays(np.float64, (2, 5), elements=FINITE))
def test_metrics_keep_their_bounds(reference: np.ndarray, given_values: np.ndarray) -> None:
    found = metrics.compare(reference, given_values)
    assert found.mae <= found.rmse * (1 + 1e-9) + 1e-9
    assert found.rmse <= found.max_error * (1 + 1e-9) + 1e-9
    assert -1 <= found.cosine <= 1
    assert found.nse <= 1


def test_zeros_and_empty_sets() -> None:
    zero, one = np.zeros(3), np.ones(3)
    assert metrics.compare(zero, zero).cosine == 1
    assert metrics.compare(zero, one).l2r == math.inf
    assert metrics.compare(zero, one).cosine == 0
    assert metrics.compare(one, zero).nse == -math.inf
    assert metrics.compare(np.zeros(0), np.zeros(0)).rmse == 0
    with pytest.raises(ValueError, match="3 values cannot be compared with 4"):
        metrics.compare(zero, np.zeros(4))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_broken_value_on_one_side_is_an_infinite_error(bad: float) -> None:
    for reference, found in (([1.0, 2.0], [1.0, bad]), ([1.0, bad], [1.0, 2.0]), ([1.0, bad], [1.0, -bad])):
        if not (math.isnan(bad) and math.isnan(found[1]) and math.isnan(reference[1])):
            assert metrics.compare(np.array(reference), np.array(found)).max_error == math.inf


def test_broken_values_on_both_sides_agree() -> None:
    values = np.array([math.nan, math.inf, 3.0])
    assert metrics.compare(values, values).max_error == 0
    assert metrics.compare(values[:2], values[:2]).nse == 1


def test_classes() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    labels = np.array([1, 1, 1])
    assert metrics.accuracy(labels, scores) == pytest.approx(2 / 3)
    assert metrics.accuracy(np.array([[0, 1], [0, 1], [0, 1]]), scores) == pytest.approx(2 / 3)
    assert metrics.accuracy(labels[:, None], scores) == pytest.approx(2 / 3)
    assert metrics.confusion_matrix(labels, scores).tolist() == [[0, 0], [1, 2]]
    with pytest.raises(ValueError, match=r"there is a label 4, but the model's classes are 0 to 1: at \[0\]"):
        metrics.confusion_matrix(np.array([4, 0, 1]), scores)
    assert metrics.agreement(scores, scores[::-1]) == 1
    assert metrics.agreement(scores, 1 - scores) == 0
    assert metrics.agreement(scores, 1 - scores, [0.1, 0.1, 0.4]) == pytest.approx(1 / 3), "the last one ties"
    with pytest.raises(ValueError, match=r"labels of shape \(2,\) do not fit outputs of shape \(3,\)"):
        metrics.accuracy(labels[:2], scores)


def test_one_lone_probability() -> None:
    scores = np.array([[0.2], [0.9], [0.5]])
    assert metrics.predicted_classes(scores).tolist() == [0, 1, 0]
    assert metrics.confusion_matrix(np.array([0, 1, 1]), scores).tolist() == [[1, 0], [1, 1]]


def test_statistics() -> None:
    assert metrics.statistics(np.array([1, 3])) == metrics.Statistics(1, 3, 2, 1)
    assert metrics.statistics(np.zeros(0)) == metrics.Statistics(0, 0, 0, 0)


def test_equal_integers_tie_whichever_comes_first() -> None:
    exact = np.array([[0.2, 0.41, 0.39]])
    assert metrics.agreement(exact, np.array([[20, 40, 40]], np.int8)) == 1
    assert metrics.agreement(exact, np.array([[20, 39, 40]], np.int8)) == 0
    assert metrics.agreement(np.array([[0.6, 0.4]]), np.array([[64, 64]], np.int8)) == 1, "two coarse classes"
    assert metrics.agreement(np.array([[0.5 + 1e-9]]), np.array([[0.5 - 1e-9]]), 1e-8) == 1, "one probability"
    assert metrics.agreement(np.array([[0.51]]), np.array([[0.49]]), 1e-8) == 0


def test_outputs_that_are_all_the_same_agree_with_no_class() -> None:
    sure, flat = np.eye(4)[[0, 1, 2, 2]], np.full((4, 4), 0.25)
    for one, other in ((sure, flat), (flat, sure), (sure, 0 * flat), (flat, (100 * sure).astype(np.int8))):
        assert metrics.agreement(one, other) == 0
    assert metrics.agreement(flat, flat) == 1
    assert metrics.agreement(flat + sure / 20, np.full((4, 4), 64, np.int8)) == 1, "hardly sure"


def test_few_samples_are_allowed_what_chance_does() -> None:
    """So often a program that is right 98 times in 100 would be refused: seldom, and never without reason."""
    for count in (1, 2, 3, 20, 50, 200, 1000):
        wanted = metrics.fewest(count, 0.98)
        chances = [math.comb(count, k) * 0.98**k * 0.02 ** (count - k) for k in range(count + 1)]
        assert sum(chances[wanted:]) >= 0.95 > sum(chances[wanted + 1 :])
    assert [metrics.fewest(count, 0.98) for count in (1, 2, 20)] == [1, 2, 18]
    assert (metrics.fewest(20, 1.0), metrics.fewest(20, 0.0), metrics.fewest(0, 0.98)) == (20, 0, 0)
    assert 97_800 < metrics.fewest(100_000, 0.98) < 98_000

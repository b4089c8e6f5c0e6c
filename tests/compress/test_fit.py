"""Weights under constraints: what is promised of them holds, and they err less than weights merely cut and rounded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

from nnbuild.compress.layer import Spec, fit
from nnbuild.compress.patterns import PATTERNS, UNSTRUCTURED, Pattern
from nnbuild.compress.solve import Moments, damped, error, errors, prune_mask, refined
from nnbuild.compress.values import Levels, clusters
from nnbuild.model.graph import Array


def layer(groups: int, inputs: int, outputs: int) -> tuple[Array, Array]:
    """Weights as of training, with a dead channel and a wide one, and inputs that vary together."""
    chance = np.random.default_rng(inputs)
    weights = chance.laplace(size=(groups, inputs, outputs)) * np.exp(chance.normal(size=(groups, 1, outputs)))
    weights[0, :, 0], weights[0, :, -1] = 0.0, weights[0, :, -1] * 1000
    rows = chance.normal(size=(1000, groups, 8)) @ chance.normal(size=(8, inputs))
    rows += 0.3 * chance.normal(size=rows.shape)
    rows[:, 0, inputs // 2] = 0.0  # an input that is always zero
    return weights, np.einsum("rgi,rgj->gij", rows, rows) / len(rows)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(64, 24), (37, 11), (5, 3)])
def test_masks_keep_to_their_pattern(pattern: Pattern, density: float, shape: tuple[int, int]) -> None:
    mask = pattern.mask(np.random.default_rng(1).random(shape), density)
    assert mask.shape == shape
    for row in range(0, shape[0], pattern.inputs):
        for column in range(0, shape[1], pattern.outputs):
            block = mask[row : row + pattern.inputs, column : column + pattern.outputs]
            assert block.all() or not block.any()
    if pattern.every is None:
        assert mask.any()
        assert abs(mask.mean() - density) < 0.1 + 8 / mask.size
    else:
        counts = {int(mask[at : at + pattern.every].sum(axis=0)[0]) for at in range(0, shape[0], pattern.every)}
        assert max(counts) == min(shape[0], max(1, round(pattern.every * density)))


def test_what_stays_makes_up_for_what_goes() -> None:
    weights, moments = layer(1, 64, 24)
    moments = damped(moments)
    cut = UNSTRUCTURED.mask(np.square(weights[0]), 0.25)[None]
    kept = prune_mask(weights, Moments(moments), lambda each: UNSTRUCTURED.mask(each[0], 0.25)[None])
    best = refined(weights, moments, kept)
    assert not best[~kept].any()
    assert error(best, weights, moments) < 0.3 * error(weights * cut, weights, moments)
    for column in range(24):  # no other values of the weights that stay do better
        some = kept[0, :, column]
        exact = np.linalg.solve(moments[0][np.ix_(some, some)], moments[0][some] @ weights[0, :, column])
        np.testing.assert_allclose(best[0, some, column], exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max(initial=1))


@pytest.mark.parametrize("groups", [1, 6])
@pytest.mark.parametrize(
    "spec", [Spec(most=7), Spec(values=16), Spec(values=5), Spec(density=0.5), Spec(density=0.3, values=8)], ids=str
)
def test_weights_are_what_was_asked_for(groups: int, spec: Spec) -> None:
    weights, moments = layer(groups, 40, 12)
    made = fit(weights, [Moments(moments)], spec, np.full((groups, 1, 12), 1e-9))
    integers = made.integers
    assert np.array_equal(integers, np.round(integers))
    assert np.abs(integers).max() <= (7 if spec.most == 7 else 127)
    assert spec.values is None or len(np.unique(integers)) <= spec.values
    assert spec.density is None or (integers != 0).mean() <= spec.density + 0.01
    assert (made.scales > 0).all()
    step = np.abs(weights).max(axis=1, keepdims=True) / np.abs(integers).max()
    if spec == Spec(most=7):
        plain = np.clip(np.round(weights / np.where(step > 0, step, 1)), -7, 7) * step
        assert error(integers * made.scales, weights, moments) < 0.5 * error(plain, weights, moments)


def test_of_several_orders_every_output_takes_the_best() -> None:
    weights, moments = layer(3, 40, 12)
    each = [fit(weights, [Moments(moments)], Spec(most=3), np.full((3, 1, 12), 1e-9), tries) for tries in (1, 4)]
    assert each[1].lost < 0.95 * each[0].lost
    lost = [errors(made.integers * made.scales, weights, moments) for made in each]
    assert (lost[1] <= lost[0] * (1 + 1e-9)).all()


def test_clusters_are_the_best_there_are() -> None:
    """Beside zero, which is always there: no cluster is spent on what is nearest to it."""
    values = np.array([-100.0, -99.0, -101.0, 0.0, 50.0, 52.0, 0.4])
    assert clusters(values, np.ones(7), 2).tolist() == [-100.0, 0.0, 51.0]
    assert clusters(values, np.ones(7), 1).tolist() == [-100.0, 0.0]
    assert clusters(values, np.ones(7), 256).tolist() == sorted({*np.round(values)})
    assert clusters(np.zeros(3), np.ones(3), 4).tolist() == [0.0]
    assert clusters(np.zeros(0), np.zeros(0), 4).tolist() == [0.0]
    chance = np.random.default_rng(4)
    for count in range(4):
        drawn, amounts = np.round(3 * chance.normal(size=9)).clip(-7, 7), chance.uniform(0.1, 2, 9)
        best = min(off(drawn, amounts, others) for others in combinations(range(-7, 8), count))
        assert off(drawn, amounts, clusters(drawn, amounts, count)) <= 1.2 * best


def off(values: Array, amounts: Array, integers: Iterable[float]) -> float:
    """The distance of the values to zero or the nearest integer."""
    levels = np.asarray([0.0, *integers])
    return float(amounts @ np.square(values[:, None] - levels).min(axis=1))


@pytest.mark.parametrize(("count", "most"), [(2, 0.6), (4, 0.13), (8, 0.032)])
def test_an_even_number_of_values_keeps_more_than_zeros(count: int, most: float) -> None:
    """Of weights that are as often below zero as above."""
    chance = np.random.default_rng(6)
    weights = chance.normal(size=(1, 64, 16))
    found = fit(weights, [Moments(np.eye(64)[None])], Spec(values=count), np.zeros((1, 1, 16)))
    assert len(np.unique(found.integers)) == count
    assert found.lost < most


def test_levels_are_nearest() -> None:
    levels = Levels(np.array([-4.0, 0.0, 3.0]), np.full((1, 1, 1), 0.5))
    weights = np.array([[[-9.0], [-1.1], [-0.9], [0.7], [0.8]]])
    assert levels.steps(weights).ravel().tolist() == [-4, -4, 0, 0, 3]

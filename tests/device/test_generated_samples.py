"""Samples that are drawn: some of chance, and the extremes."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.jobs.generated_samples import PATTERNS, RANDOM, affordable, generated_samples
from nnbuild.model.graph import Quant, Tensor
from nnbuild.ops.lstm import LSTM
from tests.ops.test_tolerance import chain, dense, into
from tests.support.graphs import single


def test_a_quantized_input_sees_its_ends_and_its_zero() -> None:
    quant = Quant((0.5,), 3)
    graph = chain(into("y"), start=Tensor("x", (8,), "int8", quant))
    (values,) = generated_samples(graph).inputs.values()
    assert len(values) == RANDOM + len(PATTERNS)
    low, high, zero, up, down = values[RANDOM:]
    assert (low == (-128 - 3) * 0.5).all() and (high == (127 - 3) * 0.5).all() and not zero.any()
    assert up.tolist() == [low[0], high[0]] * 4 and down.tolist() == [high[0], low[0]] * 4


def test_a_float_input_reaches_what_it_is_quantized_to_at_once() -> None:
    (values,) = generated_samples(chain(into("y"))).inputs.values()
    assert (values.min(), values.max()) == (-16.0, 127 / 8)


def test_a_float_input_without_a_range_goes_far_out() -> None:
    (values,) = generated_samples(chain(dense("y"))).inputs.values()
    assert (values[RANDOM:].min(), values[RANDOM:].max()) == (-4, 4)
    assert np.array_equal(values, next(iter(generated_samples(chain(dense("y"))).inputs.values()))), "always the same"


@pytest.mark.parametrize(("stateful", "least", "most"), [(0, 8000, 8000), (2, 300, 700)])
def test_states_limit_the_samples(stateful: int, least: int, most: int) -> None:
    """The reference computes them one by one, every time step alone."""
    constants = {"kernel": np.zeros((3, 20)), "recurrent": np.zeros((5, 20))}
    states = [(5,)] * stateful
    graph = single(LSTM(units=5), [(6, 3), *states], constants, stateful=stateful)
    assert least <= affordable(graph, 8000) <= most

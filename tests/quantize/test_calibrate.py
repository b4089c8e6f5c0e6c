"""The range of every tensor, by each method, over batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.ops.gru import GRU
from nnbuild.quantize.calibrate import METHODS, Range, batch_size, calibrate
from nnbuild.quantize.formats import activation_format
from tests.quantize.small import classifier, samples
from tests.support.recurrent import classifier as recurrent


def ranges(values: Array, method: str = "minmax", bits: int = 8, size: int = 30) -> dict[str, Range]:
    parts = [{"x": values[at : at + size]} for at in range(0, len(values), size)]
    return dict(calibrate(classifier(), lambda: parts, method, bits))


def test_minmax_takes_the_extremes_of_all_batches() -> None:
    exact = interpret.run(classifier(), {"x": samples()})
    found = ranges(samples())
    assert set(found) == set(exact)
    for name, values in exact.items():
        assert (found[name].low, found[name].high) == (values.min(), values.max())
        np.testing.assert_allclose(found[name].means, values.mean(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_the_batches_make_no_difference(method: str) -> None:
    whole, parts = ranges(samples(), method, size=100), ranges(samples(), method, size=7)
    for name, found in whole.items():
        np.testing.assert_allclose((found.low, found.high), (parts[name].low, parts[name].high), rtol=2e-3, atol=1e-5)


def with_outlier() -> Array:
    values = samples(20_000)
    values[17, 2] = 1000.0
    return values


def test_percentile_leaves_out_the_rarest() -> None:
    assert ranges(with_outlier(), size=5000)["x"].high == 1000
    assert ranges(with_outlier(), "percentile", size=5000)["x"].high < 6


def test_mse_takes_the_range_that_errs_least() -> None:
    values = samples(20_000)
    chosen = ranges(values, "mse", size=5000)["x"]
    assert -chosen.low < 0.95 * np.abs(values).max()

    def error(found: Range) -> float:
        quant = activation_format(found, "int8")
        steps = np.clip(np.round(values / quant.scale) + quant.zero_point, -128, 127)
        return float(np.square((steps - quant.zero_point) * quant.scale - values).mean())

    assert error(chosen) < error(ranges(values, size=5000)["x"])


def test_mse_cuts_nothing_with_16_bits() -> None:
    whole, chosen = ranges(samples())["x"], ranges(samples(), "mse", 16)["x"]
    assert chosen.high > 0.97 * whole.high


@pytest.mark.parametrize("method", METHODS)
def test_tensors_that_never_change(method: str) -> None:
    """Constant ones, and ones so nearly constant that no histogram fits between their values."""
    graph = classifier(scale=0.0)
    found = calibrate(graph, lambda: [{"x": samples()}], method, 8)
    assert (found["h"].low, found["h"].high) == (0.0, 0.0)
    nearly = samples() * 0 + 1
    nearly[0, 0] = np.nextafter(np.float32(1), np.float32(2))
    found = calibrate(graph, lambda: [{"x": nearly}], method, 8)
    assert 0.99 < found["x"].high < 1.01


def test_values_that_overflow_are_said() -> None:
    values = np.sign(samples()) * np.float32(3e38)
    with pytest.raises(UsageError) as caught, np.errstate(over="ignore", invalid="ignore"):
        ranges(values)
    assert str(caught.value) == (
        "calibration, tensor 'sum': the float model gives values there that are not finite. "
        "Look for samples far outside of what the model was trained on."
    )


def test_no_sample() -> None:
    with pytest.raises(UsageError) as caught:
        calibrate(classifier(), lambda: [], "minmax", 8)
    assert str(caught.value) == "calibration: there is no sample. Give at least one; a hundred or more is usual."


def test_states_are_carried_from_batch_to_batch() -> None:
    graph = recurrent(GRU(units=4), 0)
    values = np.random.default_rng(2).normal(size=(40, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    whole = calibrate(graph, lambda: [{graph.inputs[0]: values}], "minmax", 8)
    parts = calibrate(graph, lambda: [{graph.inputs[0]: part} for part in np.split(values, 8)], "minmax", 8)
    for name, found in whole.items():
        np.testing.assert_allclose((found.low, found.high), (parts[name].low, parts[name].high), rtol=1e-6)


def test_batches_are_small_for_large_models() -> None:
    graph = classifier()
    assert batch_size(graph) == 64
    huge = replace(graph, tensors={n: replace(t, shape=(1 << 20,)) for n, t in graph.tensors.items()})
    assert batch_size(huge) * sum(4 * (1 << 20) for _ in huge.tensors) <= 64 << 20

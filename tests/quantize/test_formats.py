"""Scales and zero points: zero is exact, nothing divides by nothing, and a bias fits its integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from nnbuild.model.graph import Quant
from nnbuild.ops.activation import Activation
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.formats import activation_format, fixed_format, quantized_values, quantized_weights, weight_scales

ENDS = some.floats(-1e20, 1e20, allow_subnormal=False)


@given(ENDS, ENDS)
def test_the_range_fits_and_zero_is_exact(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    for dtype, bottom, top in (("int8", -128, 127), ("int16", -32767, 32767)):
        quant = activation_format(Range(low, high), dtype)
        assert quant.scale > 0
        assert bottom <= quant.zero_point <= top
        for end in (low, high):
            steps = end / quant.scale + quant.zero_point
            assert bottom - 0.51 <= steps <= top + 0.51


@pytest.mark.parametrize(
    ("low", "high", "dtype", "quant"),
    [
        (0.0, 0.0, "int8", Quant((float(np.float32(1 / 255)),), -128)),
        (0.0, 0.0, "int16", Quant((float(np.float32(1 / 32767)),))),
        (0.0, 255.0, "int8", Quant((1.0,), -128)),
        (3.0, 255.0, "int8", Quant((1.0,), -128)),
        (-255.0, -3.0, "int8", Quant((1.0,), 127)),
        (-127.5, 127.5, "int8", Quant((1.0,), 0)),
        (-32767.0, 5.0, "int16", Quant((1.0,))),
    ],
)
def test_known_formats(low: float, high: float, dtype: str, quant: Quant) -> None:
    assert activation_format(Range(low, high), dtype) == quant


def test_known_ranges_are_those_of_tflite() -> None:
    assert fixed_format(Softmax(), "int8") == Quant((1 / 256,), -128)
    assert fixed_format(Activation("sigmoid"), "int8") == Quant((1 / 256,), -128)
    assert fixed_format(Activation("tanh"), "int8") == Quant((1 / 128,), 0)
    assert {fixed_format(a, "int16") for a in (Softmax(), Activation("sigmoid"), Activation("tanh"))} == {
        Quant((2.0**-15,))
    }
    assert fixed_format(Activation("linear"), "int8") is None


def test_each_channel_uses_its_whole_range() -> None:
    weights = np.array([[1.0, -1e-6, 0.0], [-0.51, 5.1e-7, 0.0]], np.float32)
    scales = weight_scales(weights, None, 0.1)
    held = quantized_weights("w", weights, scales)
    np.testing.assert_array_equal(held.data, [[127, -127, 0], [-65, 65, 0]])
    assert held.data.dtype == np.int8
    assert scales[2] == scales[0], "what has no weights changes no scale that channels share"
    assert weight_scales(np.zeros((2, 3), np.float32), None, 0.1).tolist() == [1.0] * 3


def test_few_values_of_all_channels_stay_as_few() -> None:
    """As clustering leaves them; channels that lack the largest value would give the others other integers."""
    chance = np.random.default_rng(0)
    values = np.sort(chance.normal(size=16)).astype(np.float32)
    weights = values[chance.integers(0, 16, (40, 24))]
    weights[:, :12] = values[chance.integers(6, 10, (40, 12))]
    held = quantized_weights("w", weights, weight_scales(weights, None, 0.1))
    assert len(np.unique(held.data)) == 16
    assert held.quant is not None
    np.testing.assert_allclose(held.data * np.array(held.quant.scales), weights, atol=held.quant.scales[0] / 2)


@pytest.mark.parametrize("tiny", [1e-5, 1.0])
def test_values_that_one_scale_cannot_tell_apart_keep_theirs(tiny: float) -> None:
    weights = np.tile(np.array([[1.0, 0.5, -0.25, 0.0], [0.5, 1.0, 0.0, -1.0]], np.float32), (40, 4))
    weights[:, 0] *= tiny
    scales = weight_scales(weights, None, 0.1)
    np.testing.assert_allclose(scales[0], tiny / 127, rtol=1e-6)
    few = weights[:10]  # of fewer weights every channel keeps its own
    assert weight_scales(few, None, 0.1)[2] == pytest.approx(0.25 / 127)


@pytest.mark.parametrize("bits", [8, 16])
def test_the_bias_of_an_empty_channel_fits(bits: int) -> None:
    """All weights zero, or tiny beside the bias: without room the bias would leave its integers."""
    weights = np.array([[0.0, 1e-9, 1.0]], np.float32)
    bias = np.array([7.0, -1e6, 0.5])
    bias_bits = 30 if bits == 8 else 44
    steps = np.round(bias / (0.01 * weight_scales(weights, bias, 0.01, bits, bias_bits)))
    assert (np.abs(steps) <= 2**bias_bits).all()
    np.testing.assert_allclose(steps * 0.01 * weight_scales(weights, bias, 0.01, bits, bias_bits), bias, rtol=1e-2)


def test_weights_never_reach_the_most_negative_integer() -> None:
    weights = np.full((3, 2), -1.0, np.float32)
    assert quantized_weights("w", weights, weight_scales(weights, None, 1.0)).data.min() == -127


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_constant_operand_has_its_own_format(dtype: str) -> None:
    values = np.array([-3.0, 0.0, 1.5], np.float32)
    held = quantized_values("c", values, dtype)
    assert held.quant is not None
    back = (held.data.astype(float) - held.quant.zero_point) * held.quant.scale
    np.testing.assert_allclose(back, values, atol=held.quant.scale / 2)
    assert back[1] == 0.0

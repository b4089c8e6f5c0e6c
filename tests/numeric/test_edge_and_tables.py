"""Float edges, lookup tables and activations: exactness at the corners, closeness everywhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from nnbuild.numeric import edge, elementwise, fixed_point, softmax, tables
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT8, INT16


def test_quantize_divides_in_float32_and_rounds_half_away() -> None:
    x = np.array([0.25, -0.25, 0.75, -0.75, 1e9, -1e9, np.inf, -np.inf], np.float32)
    assert edge.quantize(x, 0.5, 3, *INT8).tolist() == [4, 2, 5, 1, 127, -128, 127, -128]


def test_quantize_is_a_division_not_a_product_with_the_inverse() -> None:
    rng = np.random.default_rng(8)
    for scale in rng.uniform(1e-3, 1, 60).astype(np.float32):
        x = ((np.arange(-128, 128) + 0.5) * float(scale)).astype(np.float32)
        exact = [np.float32(float(Fraction(float(v)) / Fraction(float(scale)))) for v in x]
        expected = [int(np.sign(q) * np.floor(np.abs(np.float64(q)) + 0.5)) for q in exact]
        assert edge.quantize(x, float(scale), 0, *INT16).tolist() == expected


def test_dequantize() -> None:
    values = edge.dequantize([-128, 0, 127], 0.1, -5)
    assert values.dtype == np.float32
    assert values.tolist() == [float(np.float32(v) * np.float32(0.1)) for v in (-123, 5, 132)]


def test_quantize_undoes_dequantize() -> None:
    for scale in (0.0123, 1 / 3, 7.1):
        q = np.arange(-128, 128)
        assert np.array_equal(edge.quantize(edge.dequantize(q, scale, 17), scale, 17, *INT8), q)


def test_sigmoid_table() -> None:
    entries = tables.sigmoid_table()
    assert entries.size == 256
    assert entries[[0, 1, 4, 9, 63, 64, 200, 253, 254, 255]].tolist() == [
        32768, 33451, 35493, 38841, 61110, 61279, 65520, 65534, 65534, 65535,
    ]  # fmt: skip


def test_sixteen_bit_input_scales() -> None:
    assert tables.logistic_input_scale(2.0**-12) == tables.logistic_input_scale(2.0**-12 * 1.0003) == (3, 0)
    assert tables.tanh_input_scale(2.0**-11) == tables.tanh_input_scale(2.0**-11 * 1.0003) == (6, 0)
    assert tables.logistic_input_scale(2.0**-11 * 1.0003) == (24583, 12)  # 24583.4 truncated
    assert tables.tanh_input_scale(2.0**-10 * 1.0003) == (24583, 11)


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 1e-4, 3e-4, 0.002])
def test_sixteen_bit_activations_are_close(scale: float) -> None:
    x = np.arange(-32768, 32768)
    real = x * float(np.float32(scale))
    logistic = tables.logistic16(x, tables.logistic_input_scale(scale)) / 32768
    assert np.abs(logistic - 1 / (1 + np.exp(-real))).max() < 6e-5
    tanh = tables.tanh16(x, tables.tanh_input_scale(scale)) / 32768
    assert np.abs(tanh - np.tanh(real)).max() < 1.2e-4


@pytest.mark.parametrize("integer_bits", [0, 3, 4, 5])
@pytest.mark.parametrize(("bits", "bound"), [(16, 6e-4), (32, 5e-7)])
def test_fixed_point_functions_are_close(integer_bits: int, bits: int, bound: float) -> None:
    x = np.linspace(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 4001).astype(np.int64)
    real = x / 2.0 ** (bits - 1 - integer_bits)
    one = 2.0 ** (bits - 1)
    assert np.abs(fixed_point.logistic(x, integer_bits, bits) / one - 1 / (1 + np.exp(-real))).max() < bound
    assert np.abs(fixed_point.tanh(x, integer_bits, bits) / one - np.tanh(real)).max() < bound
    negative = x[x <= 0]
    powers = np.exp(negative / 2.0 ** (bits - 1 - integer_bits))
    assert np.abs(fixed_point.exp_of_negative(negative, integer_bits, bits) / one - powers).max() < bound


def test_reciprocal_and_square_root() -> None:
    x = np.unique(np.geomspace(2, 2**31 - 1, 3000).astype(np.int64))
    mantissa, shift = fixed_point.reciprocal(x, 12)
    assert np.abs(mantissa / 2.0**31 / 2.0**shift * (x / 2.0**19) - 1).max() < 1e-8
    root, power = fixed_point.inverse_square_root(x)
    assert np.abs(root / 2.0**31 * 2.0**power * np.sqrt(x) - 1).max() < 2e-6
    assert [int(v) for v in fixed_point.inverse_square_root(1)] == [2**31 - 1, 0]


def test_leading_zeros() -> None:
    for value in (0, 1, 2, 3, 255, 256, 2**30, 2**31 - 1, 2**31):
        assert int(fixed_point.leading_zeros32(value)) == 32 - value.bit_length()


def test_table8_covers_every_input() -> None:
    table = tables.table8(tables.logistic32, 0.05, 3, 1 / 256, -128)
    x = np.arange(-128, 128)
    expected = np.floor(256 / (1 + np.exp(-0.05 * (x - 3))) + 0.5) - 128
    assert np.abs(tables.lookup8(x, table) - np.clip(expected, *INT8)).max() == 0


def test_table8_multiplies_with_the_inverse_scale() -> None:
    x = np.arange(-128, 128)
    for scale in np.random.default_rng(9).uniform(0.01, 0.1, 60).astype(np.float32):
        inverse = np.float32(1) / scale
        products = ((x + 0.5).astype(np.float32) * scale).astype(np.float32)
        exact = [np.float32(float(Fraction(float(v)) * Fraction(float(inverse)))) for v in products]
        expected = [int(np.sign(q) * np.floor(np.abs(np.float64(q)) + 0.5)) for q in exact]
        table = tables.table8(lambda _, values=products: values, 1.0, 0, float(scale), 0)
        assert table.tolist() == np.clip(expected, *INT8).tolist()


def test_lookup16_interpolates_between_entries() -> None:
    table = np.arange(513) * 100 - 25600
    x = np.array([-32768, -32767, -1, 0, 1, 64, 127, 32767])
    assert tables.lookup16(x, table).tolist() == [-25600, -25599, -1, 0, 1, 50, 99, 25599]


def test_softmax_sums_to_one() -> None:
    x = np.random.default_rng(4).integers(-128, 128, (50, 10))
    q = softmax.softmax8(x, softmax.softmax8_constants(0.05)) + 128
    assert np.abs(q.sum(axis=1) - 256).max() <= 6
    wide = softmax.softmax16(x * 200, softmax.softmax16_multiplier(0.001))
    assert np.abs(wide.sum(axis=1) - 32768).max() <= 20


def test_softmax_rounds_each_term_of_its_sum() -> None:
    """exp(-13.5) is 0.72 of the sum's last bit, so 50,000 of them count as 50,000 bits, not as none."""
    x = np.full((1, 50001), -8)
    x[0, 0] = 127
    result = softmax.softmax8(x, softmax.softmax8_constants(0.1))
    assert int(result[0, 0]) == round(256 * 2**19 / (2**19 + 50000)) - 128


def test_softmax_drops_values_far_below_the_largest() -> None:
    constants = softmax.softmax8_constants(1.0)
    assert softmax.softmax8([[127, 90, -128]], constants).tolist() == [[127, -128, -128]]


def test_sums_have_twenty_or_fifteen_spare_bits() -> None:
    assert elementwise.add_scales(0.5, 0.25, 0.125, 8) == (20, (2**30, 0), (2**30, -1), (2**30, -16))
    assert elementwise.add_scales(0.5, 0.25, 0.125, 16) == (15, (2**30, 0), (2**30, -1), (2**30, -11))
    assert elementwise.squared_difference_scales(0.5, 0.25, 0.125) == (7, (2**30, 0), (2**30, -1), (2**30, -10))


@pytest.mark.parametrize("bounds", [INT8, INT16])
def test_sum_and_difference_are_close(bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(bounds[0], bounds[1] + 1, (2, 2000))
    bits = 8 if bounds == INT8 else 16
    scales = elementwise.add_scales(0.011, 0.007, 0.02, bits)
    zeros = (3, -4, 5) if bits == 8 else (0, 0, 0)
    for rule, sign in ((elementwise.add, 1), (elementwise.subtract, -1)):
        real = ((a - zeros[0]) * 0.011 + sign * (b - zeros[1]) * 0.007) / 0.02 + zeros[2]
        assert np.abs(rule(a, b, zeros, scales) - real).max() <= 0.51


def test_leaky_relu_with_a_negative_slope() -> None:
    scales = elementwise.leaky_relu_scales(0.1, -0.5, 0.1)
    assert elementwise.leaky_relu([-100, -7, 0, 9], 0, 0, scales).tolist() == [50, 3, 0, 9]


def test_mean_multiplier_holds_the_division() -> None:
    assert elementwise.mean_multiplier(Multiplier(1518500251, -3), 5) == (1214800200, -5)  # 1214800200.8 truncated
    scale = elementwise.mean_multiplier(elementwise.rescale_multiplier(0.1, 0.1), 49)
    assert elementwise.mean(np.array([49 * 7, -49 * 9 + 24]), 49, 0, 2, scale).tolist() == [9, -7]

"""The rounding rules against their definitions in exact arithmetic, on corners, halves and random values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from nnbuild.numeric import multiplier, real_scale, rounding
from nnbuild.numeric.multiplier import Multiplier

RNG = np.random.default_rng(11)
CORNERS = [0, 1, -1, 2, -2, 3, -3, 127, -128, 255, 32767, -32768, 65535, 2**30, -(2**30), 2**31 - 1, -(2**31)]
VALUES = np.unique(np.concatenate([CORNERS, RNG.integers(-(2**31), 2**31, 400), RNG.integers(-3000, 3000, 400)]))
MULTIPLIERS = [0, 2**30, 2**30 + 1, 2**31 - 1, 0x7FFF0000, 0x7FFEFFFF, 0x60000000, 1518500250, 1234567891]


def half_away(x: Fraction) -> int:
    return math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def low_bits(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


@pytest.mark.parametrize("amount", [0, 1, 2, 7, 15, 31])
def test_rounding_shift_is_half_away(amount: int) -> None:
    expected = [half_away(Fraction(int(v), 2**amount)) for v in VALUES]
    assert rounding.rounding_shift(VALUES, amount).tolist() == expected


def test_rounding_shift_takes_a_shift_for_each_element() -> None:
    assert rounding.rounding_shift([5, -5, 6], [1, 1, 0]).tolist() == [3, -3, 6]


@pytest.mark.parametrize(("bits", "low"), [(32, -(2**31)), (16, -(2**15))])
def test_high_multiply_is_half_up_and_saturates(bits: int, low: int) -> None:
    values = [low, low + 1, -3, -1, 0, 1, 2, 5, 1 << (bits - 2), -(1 << (bits - 2)), -low - 1]
    for a in values:
        for b in values:
            exact = half_up(Fraction(a * b, 2 ** (bits - 1)))
            assert int(rounding.high_multiply(a, b, bits)) == min(exact, -low - 1)


def test_truncating_high_multiply() -> None:
    for a, b in [(-3, 20000), (3, 20000), (-32768, -32768), (-32768, 32767), (1, 1), (-1, 1)]:
        assert int(rounding.truncating_high_multiply16(a, b)) == min(math.trunc(Fraction(a * b, 32768)), 32767)


@pytest.mark.parametrize("shift", [-31, -20, -8, -1, 0, 1, 5])
@pytest.mark.parametrize("factor", MULTIPLIERS)
def test_requantize_rounds_twice(factor: int, shift: int) -> None:
    def exact(value: int) -> int:
        first = half_up(Fraction(low_bits(value << max(shift, 0), 32) * factor, 2**31))
        return half_away(Fraction(first, 2 ** max(-shift, 0)))

    assert rounding.requantize(VALUES, factor, shift).tolist() == [exact(int(v)) for v in VALUES]


@pytest.mark.parametrize("shift", [-31, -8, 0, 5])
@pytest.mark.parametrize("factor", MULTIPLIERS)
def test_requantize_once_rounds_once(factor: int, shift: int) -> None:
    expected = [half_up(Fraction(int(v) * factor, 2 ** (31 - shift))) for v in VALUES]
    assert rounding.requantize_once(VALUES, factor, shift).tolist() == expected


@pytest.mark.parametrize("shift", [-31, -12, -1, 0, 7])
@pytest.mark.parametrize("factor", MULTIPLIERS)
def test_requantize64_uses_sixteen_bits_of_the_multiplier(factor: int, shift: int) -> None:
    reduced = min(half_up(Fraction(factor, 2**16)), 32767)
    values = np.concatenate([VALUES, RNG.integers(-(2**47), 2**47, 300)])
    expected = [low_bits(half_up(Fraction(int(v) * reduced, 2 ** (15 - shift))), 32) for v in values]
    assert rounding.requantize64(values, factor, shift).tolist() == expected


def test_rounding_mean_is_half_away() -> None:
    for count in (1, 2, 3, 4, 9, 16):
        for total in range(-40, 41):
            assert int(rounding.rounding_mean(total, count)) == half_away(Fraction(total, count))


@pytest.mark.parametrize("amount", [0, 1, 6])
def test_saturating_shift_left(amount: int) -> None:
    values = VALUES[np.abs(VALUES) <= 2**31]
    expected = [max(-(2**31), min(2**31 - 1, int(v) << amount)) for v in values]
    assert rounding.saturating_shift_left(values, amount, 32).tolist() == expected


def test_half_sum_wrap_and_saturate() -> None:
    assert rounding.rounding_half_sum([1, -1, 3, -3], [2, -2, 1, 0]).tolist() == [2, -2, 2, -2]
    assert rounding.wrap([2**31, -(2**31) - 1, 5], 32).tolist() == [-(2**31), 2**31 - 1, 5]
    assert rounding.saturate([-200, 5, 200], *rounding.INT8).tolist() == [-128, 5, 127]


def test_quantize_multiplier() -> None:
    assert multiplier.quantize_multiplier(0.0) == (0, 0)
    assert multiplier.quantize_multiplier(0.5) == (2**30, 0)
    assert multiplier.quantize_multiplier(1.0) == (2**30, 1)
    assert multiplier.quantize_multiplier(1.0 - 2.0**-40) == (2**30, 1)  # rounds up to the next power of two
    assert multiplier.quantize_multiplier(2.0**-32) == (2**30, -31)
    assert multiplier.quantize_multiplier(2.0**-32 * 0.99) == (0, 0)  # would need a shift of 32
    assert multiplier.quantize_multiplier(-0.75) == (-3 * 2**29, 0)
    for real in RNG.uniform(1e-8, 100, 200):
        factor, shift = multiplier.quantize_multiplier(float(real))
        assert 2**30 <= factor < 2**31
        assert abs(Fraction(factor) * Fraction(2) ** (shift - 31) - Fraction(float(real))) <= Fraction(2) ** (
            shift - 32
        )


def test_scales_keep_the_width_of_their_product() -> None:
    a, b, c = (float(np.float32(v)) for v in (0.1, 0.3, 0.7))
    assert multiplier.product_scale(a, b, c) == float(np.float32(np.float32(a) * np.float32(b)) / np.float32(c))
    assert multiplier.convolution_scales(a, [b], c).tolist() == [a * b / c]
    assert multiplier.ratio_scale(a, c) == a / c
    assert multiplier.ratio_scale32(a, c) == float(np.float32(a / c))
    assert multiplier.product_scale(a, b, c) != a * b / c


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("none", (-128, 127)), ("relu", (-28, 127)), ("relu6", (-28, 92)), ("relu_n1_to_1", (-48, -8))],
)
def test_activation_range(activation: str, expected: tuple[int, int]) -> None:
    assert multiplier.activation_range(activation, 0.05, -28, -128, 127) == expected


def test_activation_range_stays_within_the_type() -> None:
    assert multiplier.activation_range("relu6", 0.001, -128, -128, 127) == (-128, 127)


def test_round_half_away_has_no_trouble_below_a_half() -> None:
    below = float(np.nextafter(0.5, 0))
    assert multiplier.round_half_away([0.5, -0.5, 1.5, below, -below, 2.0**52 + 1]).tolist() == [
        1.0, -1.0, 2.0, 0.0, -0.0, 2.0**52 + 1,
    ]  # fmt: skip


def test_powers_of_two_within_a_thousandth_of_an_octave() -> None:
    assert multiplier.is_power_of_two(2.0**-12) == (True, -12)
    assert multiplier.is_power_of_two(2.0**-12 * 1.0003) == (True, -12)
    assert multiplier.is_power_of_two(2.0**-12 * 1.01) == (False, -12)


def step_values(real: float, reach: int) -> np.ndarray:
    """Accumulators around every step of the rounded product."""
    middle = np.round(np.arange(-300.5, 300) / real)
    return np.clip(np.concatenate([middle + d for d in (-1, 0, 1)]), -reach, reach).astype(np.int64)


@pytest.mark.parametrize("real", [2.0**-9, 3 * 2.0**-10, 0.0037219, 0.5, 1.0, 1.7, 2.0**-20, 0.123456789])
@pytest.mark.parametrize("outputs", [rounding.INT8, rounding.INT16])
def test_integer_scale_equals_the_float_product(real: float, outputs: tuple[int, int]) -> None:
    reach = 2**24
    scale = real_scale.integer_scale(real, (-reach, reach), outputs)
    accs = np.concatenate([step_values(real, reach), RNG.integers(-reach, reach + 1, 20000)])
    by_float = rounding.saturate(real_scale.apply_real_scale(accs, real), *outputs)
    assert np.array_equal(rounding.saturate(real_scale.apply_integer_scale(accs, scale), *outputs), by_float)


@pytest.mark.parametrize("real", [2.0**-9, 3 * 2.0**-10, 0.0037219, 0.5, 11 / 16, 1.0, 1.7, 10.625, 2.0**-20])
@pytest.mark.parametrize("reach", [(-255, 3), (-(2**15), 2**15 - 1), (-255 * 128, 255**2), (-(2**24), 2**24)])
def test_high_scale_equals_the_float_product(real: float, reach: tuple[int, int]) -> None:
    outputs = (-130, 121)
    accs = np.arange(max(reach[0], -70_000), min(reach[1], 70_000) + 1)
    scale = real_scale.high_scale(real, reach, outputs)
    assert scale is not None
    assert np.abs(accs << scale.left).max() <= 2**31
    by_float = rounding.saturate(real_scale.apply_real_scale(accs, real), *outputs)
    assert np.array_equal(rounding.saturate(scale.apply(accs), *outputs), by_float)


def test_integer_scale_on_random_layers() -> None:
    widths = []
    for real in RNG.uniform(1e-4, 1e-2, 40):
        scale = real_scale.integer_scale(float(real), (-200_000, 200_000), rounding.INT8)
        accs = np.arange(-200_000, 200_001)
        by_float = rounding.saturate(real_scale.apply_real_scale(accs, real), *rounding.INT8)
        assert np.array_equal(rounding.saturate(real_scale.apply_integer_scale(accs, scale), *rounding.INT8), by_float)
        widths.append(scale.multiplier.bit_length())
    assert min(widths) <= 31  # the narrow form usually suffices


def test_the_scales_of_a_wide_layer_are_found_once() -> None:
    """Each kernel that is priced asks for those of all channels, in the same order."""
    real_scale.integer_scale.cache_clear()
    for _ in range(2):
        for channel in range(5000):
            real_scale.integer_scale(1.0 / (channel + 3), (-2, 2), rounding.INT8)
    assert real_scale.integer_scale.cache_info().misses == 5000


def test_sixteen_bit_outputs_may_need_a_wider_multiplier() -> None:
    widths = set()
    for real in RNG.uniform(1e-4, 1e-2, 12):
        reach = int(32768 / real)
        scale = real_scale.integer_scale(float(real), (-reach, reach), rounding.INT16)
        middle = np.round(np.arange(-32767.5, 32768) / real)
        accs = np.concatenate([middle + d for d in (-1, 0, 1)]).astype(np.int64)
        assert np.array_equal(real_scale.apply_integer_scale(accs, scale), real_scale.apply_real_scale(accs, real))
        widths.add(scale.multiplier.bit_length())
    assert max(widths) > 31


def test_halves_go_away_from_zero_in_the_real_scale() -> None:
    assert real_scale.apply_real_scale([1, 3, -1, -3], 0.5).tolist() == [1, 2, -1, -2]
    assert real_scale.integer_scale(0.5, (-10, 10), rounding.INT8).away
    assert real_scale.integer_scale(0.0, (-10, 10), rounding.INT8).multiplier == 0


def test_every_rule_takes_arrays() -> None:
    rules: list[Callable[..., object]] = [rounding.requantize, rounding.requantize_once, rounding.requantize64]
    for rule in rules:
        assert np.shape(rule(np.ones((2, 3, 4)), np.full(4, 2**30), np.full(4, -2))) == (2, 3, 4)
    assert Multiplier(3, -1).shift == -1


def test_dense_scales_of_every_size_are_reproduced() -> None:
    """Powers of two, whose products lie on ties, small multiples of them, and quotients: all sizes."""
    chance = np.random.default_rng(3)
    for index in range(200):
        real = (
            float(2.0 ** chance.integers(-70, 20)),
            float(chance.integers(1, 64) * 2.0 ** chance.integers(-50, 10)),
            float(np.float32(2.0 ** chance.uniform(-40, 4))) / float(np.float32(2.0 ** chance.uniform(-30, 0))) / 128,
            float(np.float32(chance.random())) * 2.0 ** int(chance.integers(-30, 8)),
        )[index % 4]
        reach, outputs = int(2 ** chance.uniform(4, 35.9)), (-129, 128) if index % 7 else (-2049, 2048)
        scale = real_scale.integer_scale(real, (-reach, reach), outputs)
        assert 26 < scale.shift <= 88, real
        steps, values = real_scale.steps_of(real, (-reach, reach), outputs)
        held = real_scale.apply_real_scale(np.stack([steps, steps - 1]), min(real, real_scale.LARGEST))
        assert (held[0] >= values).all() and (held[1] < values).all(), real
        accs = np.unique(np.clip([*steps, *(steps - 1), *(steps + 1), -reach, 0, reach], -reach, reach))
        by_float = rounding.saturate(real_scale.apply_real_scale(accs, real), *outputs)
        by_integers = rounding.saturate(real_scale.apply_integer_scale(accs, scale), *outputs)
        assert np.array_equal(by_integers, by_float), (real, reach, outputs)


def test_a_scale_between_two_limits_is_found_where_the_nearest_ones_fail() -> None:
    """A reference that rounds up just below a half: no number near the scale itself does so."""
    steps, values = np.array([-5, 6, 17]), np.array([0, 1, 2])
    assert real_scale._limits(steps, values) == (Fraction(3, 34), Fraction(3, 32))
    low, high = real_scale._limits(np.array([2, 3]), np.array([1, 9]))
    assert low > high, "no number does that"

"""Every form of requantization against the rules, on both sides of every step and at the ends of the range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnbuild.numeric.real_scale import integer_scale
from nnbuild.numeric.requant import Channel, Layer, RuleName, slack
from nnbuild.numeric.requant_line import lines
from nnbuild.numeric.requant_product import LONG, Form, Products, common_level, products
from nnbuild.numeric.requant_twice import highs
from nnbuild.numeric.rounding import INT8, INT16, INT32, Ints, ints, requantize, requantize64, saturate

TWICE_SIGNED, TWICE, ONCE = Form(rounded=True, below=1, left=1), Form(rounded=True, left=1), Form(left=0)
OWN = Form(below=None)


def layer(
    rule: RuleName, reals: list[float], ranges: list[tuple[int, int]], zero: int = 0, bounds: tuple[int, int] = INT8
) -> Layer:
    low, high = ints(ranges).T
    return Layer(rule, np.array(reals, np.float64), zero, bounds, low, high)


def accumulators(channel: Channel) -> Ints:
    """Both ends, both sides of each step, around zero, and some between."""
    steps = channel.steps[0]
    chance = np.random.default_rng(1)
    near = [steps + by for by in range(-3, 3)]
    some = [chance.integers(channel.low, channel.high + 1, 200), ints(range(-5, 6))]
    ends = ints([channel.low, channel.low + 1, channel.high - 1, channel.high])
    return np.clip(np.concatenate([*near, *some, ends]), channel.low, channel.high)


def check_products(found: Products, of: Layer, room: int = INT32[1]) -> None:
    """The results of the instructions, in 64 bits; every step must fit 32."""
    for column, channel in zip(found.columns, of.channels, strict=True):
        acc = accumulators(channel)
        value = (acc - column.centre) << column.left
        assert column.multiplier <= INT32[1] and INT32[0] <= column.lower <= INT32[1]
        high = (value * column.multiplier + (value * column.lower >> 32) + (found.form.rounded << 31)) >> 32
        added = high + column.offset - column.below * (value < 0)
        assert max(np.abs(part).max() for part in (value, high, added)) <= INT32[1]
        assert np.abs(acc - column.centre).max() <= room
        outputs = saturate(added >> column.shift, *channel.bounds)
        np.testing.assert_array_equal(outputs, channel.outputs(acc), f"{channel}\n{column}")


def check_lines(of: Layer, lefts: bool = True) -> bool:
    found = lines(of, lefts)
    if found is None:
        return False
    for number, channel in zip(found.numbers, of.channels, strict=True):
        acc = accumulators(channel)
        value = (acc - number.centre) << number.left
        assert np.abs(value).max() <= INT32[1] and 32 <= number.shift <= 63 and number.multiplier < 1 << 31
        product = value.astype(object) * number.multiplier + number.addend
        assert np.abs(product).max() < 1 << 63
        high = (product >> 32) + number.away * (value < 0)
        outputs = saturate((high >> (number.shift - 32)).astype(np.int64), *channel.bounds)
        np.testing.assert_array_equal(outputs, channel.outputs(acc), f"{channel}\n{number}")
    return True


def beyond_64_bits(of: Layer) -> bool:
    """Whether outputs whose halves go away from zero do not fit with the shift at which that is a unit of the upper
    half: scales of about 2**-26 and less, and sums of 2**26 and more."""
    kinked = [channel for channel in of.channels if not channel.constant and channel.line and channel.line.kink]
    return any((np.abs(one.ends).max() + 1) * 2.0 ** (one.line.shift + 1) >= 2.0**63 for one in kinked if one.line)


def test_sums_that_are_too_large_for_their_scale_have_no_line() -> None:
    of = layer("twice", [2.0**-26], [(-(1 << 27), 1 << 26)], 63, (-128, 127))
    assert lines(of) is None and beyond_64_bits(of)
    near = layer("twice", [2.0**-26], [(-(1 << 27), 1 << 26)], 0, (-128, 127))
    assert check_lines(near) and not beyond_64_bits(near)
    assert check_lines(layer("twice", [2.0**-26], [(-(1 << 27), 1 << 26)], 62, (-128, 127)))


def test_products_count_with_the_sign_they_have() -> None:
    """The largest product below zero and the addend would not fit 64 bits if they had one sign."""
    of = layer("twice", [4.2146848510894035e-08], [(-(1 << 27), 1 << 26)], 122, (-128, 127))
    assert check_lines(of) and check_lines(of, lefts=False)


@st.composite
def channels(draw: st.DrawFn, rule: RuleName, largest: float = 0.4) -> tuple[float, tuple[int, int]]:
    """A scale and an accumulator range that a model can have: with a result below 2**30."""
    real = draw(st.one_of(st.floats(2.0**-60, largest), st.floats(-40, np.log2(largest)).map(lambda power: 2.0**power)))
    width = draw(st.sampled_from([0, 1, 255, 1 << 12, 1 << 18, 1 << 22, 1 << 27]))
    middle = draw(st.sampled_from([0, 0, 0, 1, 1 << 10, 1 << 20, 1 << 29, (1 << 30) - 3])) * draw(
        st.sampled_from([1, -1])
    )
    most = min((1 << 31) - 1, int((1 << 29) / real))
    low, high = (int(np.clip(middle + by, -most, most)) for by in (-width, width // 2))
    return real, (low, high)


ZEROS = st.integers(-128, 127)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(data=st.data(), zero=ZEROS, rectified=st.booleans())
def test_convolutions_of_bytes(data: st.DataObject, zero: int, rectified: bool) -> None:
    drawn = data.draw(st.lists(channels("twice"), min_size=1, max_size=3))
    of = layer(
        "twice", [real for real, _ in drawn], [ends for _, ends in drawn], zero, (zero if rectified else -128, 127)
    )
    assert (check_lines(of) and check_lines(of, lefts=False)) or beyond_64_bits(of)
    room, count = np.full(len(drawn), INT32[1]), len(drawn)
    found = products(of, TWICE_SIGNED if of.signed else TWICE, np.full(count, 30), room)
    if found is not None:
        check_products(found, of)
    found = products(of, OWN, np.full(count, 30), room)
    if found is not None:
        check_products(found, of)
    for form in (OWN, *([Form()] * (not of.signed))):
        found = common_level(of, form, np.full(count, 7), room)
        if found is not None:
            check_products(found, of)
            assert len({column.shift for column in found.columns}) == 1


def meets_halves(channel: Channel) -> bool:
    """Whether some products of floats are rounded to halves and others just beside them, as those of 0.35 with 110 and
    70: no line steps at both."""
    scaled = np.arange(channel.low, channel.high + 1) * channel.real
    apart = np.abs(scaled - np.floor(scaled) - 0.5)
    return bool((apart == 0).any() and ((apart > 0) & (apart < 1e-9)).any())


@settings(max_examples=60, deadline=None)
@given(data=st.data(), zero=ZEROS)
def test_dense_layers(data: st.DataObject, zero: int) -> None:
    drawn = data.draw(st.lists(channels("once"), min_size=1, max_size=3))
    of = layer("once", [real for real, _ in drawn], [ends for _, ends in drawn], zero)
    served = check_lines(of)
    long = max(high - low for _, (low, high) in drawn) > 1 << 24
    assert served or long or any(map(meets_halves, of.channels)), "31 bits are enough for so short a range"
    found = products(of, ONCE, np.zeros(len(drawn), np.int64), np.full(len(drawn), INT32[1]))
    if found is not None:
        check_products(found, of)


def test_marks_are_integers() -> None:
    """As floats they lost the last bits of addends, and one of these outputs was wrong."""
    of = layer("once", [1.2959101864990029e-08], [(-417389356, 1356296342)], -77, (-77, 127))
    assert all(part.dtype == np.int64 for part in of.channels[0].marks)
    assert check_lines(of)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([(-32768, 32767), (0, 32767), (-32768, 9000)]))
def test_dense_layers_of_words(data: st.DataObject, bounds: tuple[int, int]) -> None:
    """31 bits step wrongly among 65,536 outputs of large sums; 63 bits do not, at halves neither."""
    bits = data.draw(st.integers(18, 31))
    real = data.draw(st.floats(0.6, 1.0) | st.sampled_from([0.5, 0.75, 1.0])) * 2.0 ** -(bits - 15)
    farthest = data.draw(st.integers(1 << (bits - 2), (1 << bits) - 1))
    of = layer("once", [real], [(-farthest, farthest)], 0, bounds)
    if integer_scale(real, (-farthest, farthest), (bounds[0] - 1, bounds[1] + 1)).floating:
        return
    found = products(of, LONG, ints([0]), ints([INT32[1]]))
    assert found is not None
    check_products(found, of)


def test_no_line_steps_at_halves_that_floats_round_apart() -> None:
    of = layer("once", [0.35], [(-255, 127)], 0)
    assert meets_halves(of.channels[0]) and not check_lines(of)
    for scale in (0.3571, 0.25, 0.375):  # halves are met by none, or exactly by all
        other = layer("once", [scale], [(-255, 127)], 0)
        assert not meets_halves(other.channels[0]) and check_lines(other)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_number_format(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(channels("wide"), min_size=1, max_size=2))
    of = layer("wide", [real for real, _ in drawn], [ends for _, ends in drawn], 0, INT16)
    assert check_lines(of)
    found = products(of, ONCE, np.zeros(len(drawn), np.int64), np.full(len(drawn), INT32[1]))
    if found is not None:
        check_products(found, of)


@pytest.mark.parametrize("bounds", [INT8, (3, 127), (3, 60)])
@pytest.mark.parametrize("bias", [0, -(1 << 29), (1 << 30) - 1])
@pytest.mark.parametrize("power", [-34, -30, -28, -26, -24, -22, -20, -18])
def test_a_nearly_dead_channel_fits_beside_ordinary_ones(power: int, bias: int, bounds: tuple[int, int]) -> None:
    """As BatchNormalization leaves it: a scale far below its neighbours', and a bias that compensates."""
    real = 1.37 * 2.0**power
    bias = int(np.clip(bias, -100 / real, 100 / real))
    width = 9 * 16 * 90 * 127
    ranges = [(-width, width), (-width, width), (bias - width, bias + width)]
    of = layer("twice", [0.0021, 0.0037, real], ranges, 3, bounds)
    for room in (1 << 23, 1 << 30):
        form = TWICE_SIGNED if of.signed else TWICE
        found = products(of, form, np.zeros(3, np.int64), ints([1 << 30, 1 << 30, room]))
        assert found is not None
        check_products(found, of, 1 << 30)
    assert check_lines(of)
    found = common_level(of, OWN, np.full(3, 7), np.full(3, 1 << 30))
    assert found is not None or power > -25
    if found is not None:
        check_products(found, of)


@pytest.mark.parametrize("rule", ["once", "twice", "wide"])
def test_corners_decide_like_all_marks(rule: RuleName) -> None:
    chance = np.random.default_rng(3)
    for width in (900, 70_000, 1 << 22):
        channel = Channel(rule, float(chance.uniform(0.5, 3.0) * (1 << 15) / width), 0, INT16, -width, width + 5)
        marks, corners = channel.marks, channel.marks.corners()
        assert len(corners.reached) < 100 < len(marks.reached)
        nearest = round(channel.real * (1 << 24))
        for multiplier in (*(nearest + by for by in range(-3, 4)), nearest // 2, 3 * nearest):
            assert slack(multiplier, 24, corners) == slack(multiplier, 24, marks)


def test_huge_scales_are_lines_of_shifted_sums() -> None:
    for real in (0.5, 0.77, 1.0, 1.9, 30.0, 5000.0):
        most = int((1 << 28) / real)
        for rule in ("twice", "once"):
            assert check_lines(layer(rule, [real, 0.01], [(-most, most), (-most, most)], -7))  # type: ignore[arg-type]
            found = products(
                layer(rule, [real], [(-most // 4, most // 4)], -7),
                OWN,
                ints([30]),
                ints([INT32[1]]),  # type: ignore[arg-type]
            )
            assert found is not None
            check_products(found, layer(rule, [real], [(-most // 4, most // 4)], -7))  # type: ignore[arg-type]


def test_the_general_functions_take_what_the_reference_takes() -> None:
    of = layer("twice", [0.013, 2.0**-40, 3.0], [(-9000, 9000)] * 3)
    general, acc = of.general(INT8), np.arange(-9000, 9001)
    assert general.function == "requantize"
    for index, channel in enumerate(of.channels):
        numbers = (int(general.constants[name][index]) for name in ("multiplier", "shift"))
        np.testing.assert_array_equal(saturate(requantize(acc, *numbers), *INT8), channel.outputs(acc))
    of = layer("wide", [0.013], [(-9000, 9000)], 0, INT16)
    assert of.general(INT16).constants["multiplier"].max() < 1 << 15
    np.testing.assert_array_equal(
        of.channels[0].outputs(acc), saturate(requantize64(acc, *of.channels[0].scale), *INT16)
    )
    assert list(layer("once", [0.013], [(-9000, 9000)]).general(INT8).constants) == ["multiplier", "shift", "away"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1 << 30, (1 << 31) - 1), st.integers(-20, 2), st.integers(-128, 127), st.integers(1, 1 << 17))
def test_two_rounded_high_products(multiplier: int, exponent: int, zero: int, farthest: int) -> None:
    channel = Channel("twice", multiplier / 2**31 * 2.0**exponent, zero, (-128, 127), -farthest, farthest)
    found = highs(channel)
    assert (found is not None) == (farthest < 1 << (32 + exponent) and exponent < -1)
    if found is not None:
        sums = np.arange(-farthest, farthest + 1)
        np.testing.assert_array_equal(found.outputs(sums), channel.outputs(sums))

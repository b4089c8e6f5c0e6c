"""The four instructions that scale a sum on Cortex-M4, against the rules they stand for, at the edges of both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nnbuild.kernels.dsp import scaling as rules
from nnbuild.kernels.dsp.scaling import Scaling, Sums
from nnbuild.numeric.real_scale import apply_integer_scale, apply_real_scale, fitting_scale
from nnbuild.numeric.rounding import Ints, half_up_shift, ints, requantize, saturate
from nnbuild.ops.base import Clamp
from nnbuild.ops.integer import Requantization

LARGEST = 1 << 22


def computed(scaling: Scaling, sums: Ints) -> Ints:
    """What the instructions give, in 64 bits; every step must fit 32."""
    doubled = sums * scaling.gain
    product = doubled * scaling.multiplier
    high = half_up_shift(product, 32) if scaling.doubled else product >> 32
    added = high + scaling.offset + ((doubled >> 63) if scaling.signed else 0)
    for step in (doubled, high, added):
        assert np.abs(step).max() < 1 << 31
    return saturate(added >> scaling.shift, scaling.low, scaling.high)


def scaling_for(
    monkeypatch: pytest.MonkeyPatch, multipliers: Ints, shifts: Ints, zero: int, bounds: tuple[int, int]
) -> Scaling | str:
    monkeypatch.setattr(rules, "requantization", lambda site, n: Requantization(multipliers, shifts, False))
    monkeypatch.setattr(rules, "bounds", lambda clamp, out: bounds)
    monkeypatch.setattr(rules, "quant_of", lambda tensor: SimpleNamespace(zero_point=zero))
    site = SimpleNamespace(outputs=[SimpleNamespace(dtype="int8")], op=SimpleNamespace(attributes=None))
    reach = np.full(len(shifts), LARGEST)
    sums = Sums(np.zeros((1, len(shifts)), np.int64), np.zeros(len(shifts), np.int64), -reach, reach)
    return rules.scaling_of(site, Clamp(), sums)  # type: ignore[arg-type]


@pytest.mark.parametrize("zero", [-128, -127, -1, 0, 1, 93, 127])
@pytest.mark.parametrize("rectified", [False, True])
def test_rounding_twice(monkeypatch: pytest.MonkeyPatch, zero: int, rectified: bool) -> None:
    """Every shift that is taken, the smallest and largest multiplier, and sums around every half."""
    chance = np.random.default_rng(zero + 200)
    multipliers, shifts = [], []
    for shift in range(0 if rectified else 1, 24):
        for multiplier in (1 << 30, (1 << 30) + 1, (1 << 31) - 1, int(chance.integers(1 << 30, 1 << 31))):
            multipliers.append(multiplier)
            shifts.append(-shift)
    m, s = ints(multipliers), ints(shifts)
    bounds = (zero if rectified else -128, 127)
    scaling = scaling_for(monkeypatch, m, s, zero, bounds)
    assert isinstance(scaling, Scaling)
    assert scaling.signed is (not rectified and zero > -128)
    for sums in _sums(chance, m, s):
        wanted = saturate(requantize(sums, m, s) + zero, *bounds)
        np.testing.assert_array_equal(computed(scaling, sums), wanted)


def _sums(chance: np.random.Generator, m: Ints, s: Ints) -> list[Ints]:
    halves = [np.round((k + 0.5) * 2.0 ** (31 - s) / np.maximum(m, 1)).astype(np.int64) for k in range(-130, 130)]
    near = [np.clip(half + by, -LARGEST, LARGEST) for half in halves for by in range(-2, 3)]
    small = [np.full(len(m), by) for by in range(-5, 6)]
    return near + small + [chance.integers(-LARGEST, LARGEST, len(m)) for _ in range(200)]


@pytest.mark.parametrize("zero", [-128, -1, 0, 93, 127])
@pytest.mark.parametrize("deepest", [0, 1, 5, 11, 22])
def test_one_shift_for_all_channels(monkeypatch: pytest.MonkeyPatch, zero: int, deepest: int) -> None:
    """Channels up to 6 shifts apart, and a dead one among them."""
    chance = np.random.default_rng(deepest)
    own = [deepest - by for by in range(7) if deepest >= by]
    m = ints([*(int(chance.integers(1 << 30, 1 << 31)) for _ in own), 1 << 30, (1 << 31) - 1, 0])
    s = -ints([*own, deepest, deepest, 0])
    plain = scaling_for(monkeypatch, m, s, zero, (zero, 127))
    assert isinstance(plain, Scaling)
    reach = np.full(len(s), LARGEST // 4)
    sums = Sums(np.full((1, len(s)), 127), np.zeros(len(s), np.int64), -reach, reach)
    scaling = rules.levelled(plain, sums, zero)
    assert scaling.level == max(deepest, 1) + 1
    for values in _sums(chance, m, s):
        values = np.clip(values, -LARGEST // 4, LARGEST // 4)
        wanted = saturate(requantize(values, m, s) + zero, zero, 127)
        np.testing.assert_array_equal(computed(scaling, values), wanted)


def test_shifts_too_far_apart_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scaling_for(monkeypatch, ints([1 << 30] * 2), ints([-1, -9]), 0, (0, 127))
    assert isinstance(plain, Scaling)
    sums = Sums(np.full((1, 2), 127), ints([0, 0]), ints([-1, -1]), ints([1, 1]))
    assert rules.levelled(plain, sums, 0) is plain


def test_dead_channels_give_the_zero_point(monkeypatch: pytest.MonkeyPatch) -> None:
    m, s = ints([0, 1 << 30, (1 << 31) - 1]), ints([0, -24, -31])
    for bounds in ((-128, 127), (5, 127)):
        scaling = scaling_for(monkeypatch, m, s, 5, bounds)
        assert isinstance(scaling, Scaling)
        for sums in (ints([0, 0, 0]), ints([-1, -1, -1]), ints([LARGEST] * 3), ints([-LARGEST] * 3)):
            np.testing.assert_array_equal(computed(scaling, sums), saturate(requantize(sums, m, s) + 5, *bounds))


@pytest.mark.parametrize(("shift", "reason"), [(1, "too large"), (0, "too large")])
def test_scales_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch, shift: int, reason: str) -> None:
    refused = scaling_for(monkeypatch, ints([1 << 30]), ints([shift]), 0, (-128, 127))
    assert isinstance(refused, str) and reason in refused


def test_a_fitting_scale_equals_the_real_one_everywhere() -> None:
    """Where the nearest multiplier of 31 bits is off by one somewhere, a neighbour may not be."""
    chance = np.random.default_rng(1)
    found = 0
    for _ in range(300):
        real = float(chance.uniform(1e-4, 0.3)) if chance.random() < 0.7 else 2.0 ** -int(chance.integers(2, 12))
        scale = fitting_scale(real, (-40000, 40000), (-129, 129))
        if scale is None:
            continue
        found += 1
        assert 1 << 30 <= scale.multiplier < 1 << 31 and scale.shift > 26
        sums = np.arange(-40000, 40001)
        wanted = np.clip(apply_real_scale(sums, real), -129, 129)
        np.testing.assert_array_equal(np.clip(apply_integer_scale(sums, scale), -129, 129), wanted)
    assert found > 200

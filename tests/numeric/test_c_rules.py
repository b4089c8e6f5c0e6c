"""The C of every rule against `nnbuild.numeric`: the files themselves, compiled and called."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_int16, c_int32, c_int64, c_uint16, c_uint32
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.paths import FIRMWARE
from nnbuild.kernels.loops.layer_norm_vectors import LARGEST_EPSILON
from nnbuild.numeric import elementwise, fixed_point, multiplier, real_scale, rounding, softmax, tables
from nnbuild.numeric.edge import EXPONENTS, scale_parts
from nnbuild.numeric.layer_norm import POINT
from tests.support.compiled import STRICT

SOURCES = sorted((FIRMWARE / "numeric").glob("nn_*.c"))
TYPES = {"int32_t": c_int32, "int64_t": c_int64, "uint32_t": c_uint32, "float": ctypes.c_float}
POINTERS = {
    "const int16_t *": POINTER(c_int16),
    "const uint16_t *": POINTER(c_uint16),
    "const int32_t *": POINTER(c_int32),
    "int32_t *": POINTER(c_int32),
}
PROTOTYPE = re.compile(r"^(u?int32_t|int64_t|float) (nn_\w+)\(([^)]*)\);$", re.MULTILINE)
RANDOM = np.random.default_rng(7)
COUNT = 3000
LARGEST_ROOT = 379_624_593


def argument(text: str) -> Any:
    for spelling, kind in POINTERS.items():
        if text.startswith(spelling):
            return kind
    return TYPES[text.split()[0]]


@pytest.fixture(scope="module", params=["64 bits", "32 bits", "armv6m"])
def rules(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    """The rules as processors of either size compute them, and those without long products."""
    path = tmp_path_factory.mktemp("rules") / "rules.so"
    own = {source.name: source for source in (FIRMWARE / "numeric" / request.param).glob("nn_*.c")}
    sources = [str(own.get(source.name, source)) for source in SOURCES]
    size = ["-U__LP64__"] if request.param == "32 bits" else []
    checks = ["-fsanitize=undefined", "-fno-sanitize-recover"] if own else []
    subprocess.run(["gcc", *STRICT, *size, *checks, "-O1", "-shared", "-fPIC", *sources, "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    for result, name, parameters in PROTOTYPE.findall((FIRMWARE / "numeric" / "nn_numeric.h").read_text()):
        function = getattr(library, name)
        function.restype = TYPES[result]
        function.argtypes = [argument(parameter) for parameter in re.split(r",\s+", parameters)]
    yield library


def spread(bits: int, count: int = COUNT) -> Any:
    """Signed numbers of all sizes up to `bits` bits, and the ends of the range."""
    sizes = RANDOM.integers(0, bits - 1, count)
    values = RANDOM.integers(0, 1 << 62, count) >> (62 - sizes)
    values = np.where(RANDOM.random(count) < 0.5, -values, values)
    return np.append(values, [0, 1, -1, (1 << (bits - 1)) - 1, -(1 << (bits - 1))])


def called(function: Callable[..., int], *columns: Any) -> list[int]:
    return [function(*row) for row in zip(*(np.asarray(c).tolist() for c in columns), strict=True)]


def test_the_header_declares_every_file(rules: ctypes.CDLL) -> None:
    declared = {name for _, name, _ in PROTOTYPE.findall((FIRMWARE / "numeric" / "nn_numeric.h").read_text())}
    assert declared == {path.stem for path in SOURCES}
    assert declared > {path.stem for path in (FIRMWARE / "numeric" / "armv6m").glob("*.c")} > {"nn_requantize"}


def test_requantize(rules: ctypes.CDLL) -> None:
    acc = spread(32)
    m, shift = RANDOM.integers(1 << 30, 1 << 31, acc.size), RANDOM.integers(-31, 8, acc.size)
    assert called(rules.nn_requantize, acc, m, shift) == rounding.requantize(acc, m, shift).tolist()


def test_requantize64(rules: ctypes.CDLL) -> None:
    acc = spread(40)
    m, shift = RANDOM.integers(1 << 30, 1 << 31, acc.size), RANDOM.integers(-31, 1, acc.size)
    wanted = rounding.requantize64(acc, m, shift)
    assert called(rules.nn_requantize64, acc, rounding.reduced_multiplier(m), shift) == wanted.tolist()


def test_scale_once(rules: ctypes.CDLL) -> None:
    acc = spread(32)
    for real, away in ((0.0123, False), (2.0**-9, True), (3e-6, True)):
        form = next(real_scale._forms(Fraction(real), real, 44))
        scale = real_scale.IntegerScale(form.multiplier, form.shift, away)
        wanted = real_scale.apply_integer_scale(acc, scale).tolist()
        assert [rules.nn_scale_once(a, scale.multiplier, scale.shift, away) for a in acc.tolist()] == wanted


APART = {0.35: 10, 5.2810952183790505e-05 * 0.00012207403779029846 / 2.1369343812693842e-05: 10_376_660}
"""Scales so near a fraction that floats round products to a half or just beside it, and sums whose odd multiples
have such products."""


def test_scale_float(rules: ctypes.CDLL) -> None:
    """The same as a float64 product, for any sums whose outputs have at most 16 bits; at the ends of scales too."""
    for real in (*APART, 0.0123, 2.0**-36, 1.9 * 2.0**-36, 1.9 * 2.0**-37, 2.0**-9, 3e-6, 7.1, 1e5, 2.0**24, 1e30):
        scale = real_scale.floating_scale(real)
        most = max(min(int(2**17 / real), 2**35), 2)
        near = (np.array([[1, -1]]).T * (np.arange(-3, 4) + most)).reshape(-1)
        acc = np.unique(np.concatenate([RANDOM.integers(-most, most, 3000), np.arange(-500, 501), near]))
        halves = np.rint((np.arange(-3000, 3000) + 0.5) / real).astype(np.int64)
        acc = np.append(acc, halves[np.abs(halves) <= most])
        wanted = np.clip(real_scale.apply_real_scale(acc, real), -(1 << 30), 1 << 30) if real < 2**24 else None
        made = called(rules.nn_scale_float, acc, [scale.multiplier] * acc.size, [scale.shift] * acc.size)
        if wanted is None:  # saturated alike
            assert (np.sign(made) == np.sign(acc)).all() and (np.abs(made)[acc != 0] >= 1 << 24).all()
        else:
            assert made == wanted.tolist()


@pytest.mark.parametrize("real", APART)
def test_scales_near_a_fraction_are_floating(real: float) -> None:
    acc = APART[real] * np.arange(-15, 16)
    scale = real_scale.integer_scale(real, (int(acc[0]), int(acc[-1])), rounding.INT16)
    assert scale.floating
    assert np.array_equal(real_scale.apply_integer_scale(acc, scale), real_scale.apply_real_scale(acc, real))


def test_scale_wide(rules: ctypes.CDLL) -> None:
    acc = spread(48)
    m, right = RANDOM.integers(0, 1 << 15, acc.size), RANDOM.integers(1, 63, acc.size)
    wanted = rounding.scale_wide(acc, m, right)
    assert called(rules.nn_scale_wide, acc, m, right) == wanted.tolist()
    assert {int(wanted.min()), int(wanted.max())} == {-(1 << 30), 1 << 30}
    small = np.abs(wanted) < 1 << 30
    assert called(rules.nn_scale_long, acc[small], m[small], right[small]) == wanted[small].tolist()


def test_divide(rules: ctypes.CDLL) -> None:
    a, b = np.append(spread(17), [1 << 16] * 2), np.append(RANDOM.permutation(spread(17)), [1 << 16, -1])
    outputs = [0.3 / 2.0**30, *2.0 ** np.arange(-32, 18)]
    scales = [elementwise.division_scale(0.1, 0.3, float(output)) for output in outputs]
    assert {0, 1, 24, 47} < {scale.right for scale in scales}
    for scale in scales:
        wanted = elementwise.divide(a, b, (0, 0, 0), scale)
        assert called(rules.nn_divide, a, b, [scale.multiplier] * a.size, [scale.right] * a.size) == wanted.tolist()


def test_divide_long(rules: ctypes.CDLL) -> None:
    x = np.append(np.abs(spread(63)), [(1 << 63) - 1, (1 << 32) - 1, 1 << 32])
    by = np.append(RANDOM.integers(1, (1 << 18) + 1, x.size - 6), [1, 1 << 18, (1 << 18) - 1, 1, 3, 1 << 18])
    inverses = [min((1 << 32) // int(number), (1 << 32) - 1) for number in by]
    assert called(rules.nn_divide_long, x, by, inverses) == (x // by).tolist()


def test_short_divisions(rules: ctypes.CDLL) -> None:
    x = np.abs(spread(33))
    by = np.append(RANDOM.integers(1, 1 << 20, x.size - 5), [1, 2, 3, (1 << 32) - 1, 1 << 31])
    inverses = [min((1 << 32) // int(number), (1 << 32) - 1) for number in by]
    x = np.minimum(x, (1 << 32) - 1)
    assert called(rules.nn_divide_short, x, by, inverses) == (x // by).tolist()
    by = np.minimum(by, 1 << 16)
    x = np.minimum(x, (by << 16) - 1)
    assert called(rules.nn_quotient16, x, by) == (x // by).tolist()
    edges = np.array([(by << digits) + off for by in (1, 3, 255, 1 << 16) for digits in (7, 8, 15) for off in (-1, 0)])
    by = np.repeat([1, 3, 255, 1 << 16], 6)
    assert called(rules.nn_quotient16, edges, by) == (edges // by).tolist()


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_floats_are_quantized_by_their_bits(rules: ctypes.CDLL, kind: type[np.signedinteger[Any]]) -> None:
    """Next to the halves of scales of any size, with mantissas from the least to the largest, and anywhere."""
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    least, largest = (np.array([(e - 17) << 23], np.uint32).view(np.float32)[0] for e in (EXPONENTS[0], EXPONENTS[-1]))
    usual = [np.float32(2.0) ** RANDOM.uniform(-20, 4) for _ in range(8)]
    for scale in (least, largest, np.float32(1), np.nextafter(np.float32(1), np.float32(0)), *map(np.float32, usual)):
        zero = int(RANDOM.integers(low, high + 1))
        with np.errstate(over="ignore"):
            halves = ((RANDOM.integers(low - 2, high + 3, 300) - zero + 0.5).astype(np.float32) * scale).view(np.int32)
        x = np.concatenate([halves + off for off in range(-2, 3)] + [RANDOM.integers(-(1 << 31), 1 << 31, 500)])
        x = np.append(x.astype(np.int32), np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32).view(np.int32))
        floats, limits = x.view(np.float32).tolist(), (zero, low, high)
        parts = scale_parts(float(scale))
        wanted = [rules.nn_quantizef(value, float(scale), *limits) for value in floats]
        assert [rules.nn_quantize_bits(value, *parts, *limits) for value in floats] == wanted, scale


def test_bits_of_reals(rules: ctypes.CDLL) -> None:
    """Products with scales of any size equal those of floats."""
    exponents = [EXPONENTS[0], EXPONENTS[-1], *RANDOM.integers(100, 180, 20)]
    for bits in ((int(exponent) - 17) << 23 | int(RANDOM.integers(0, 1 << 23)) for exponent in exponents):
        scale = np.uint32(bits).view(np.float32)
        x = np.concatenate(
            [np.arange(-300, 300), RANDOM.integers(-(1 << 17), (1 << 17) + 1, 300), [1 << 17, -(1 << 17)]]
        )
        mantissa, _, exponent = scale_parts(float(scale))
        found = np.array(called(rules.nn_real_bits, x, [mantissa] * x.size, [exponent] * x.size), np.float32)
        assert np.array_equal(found.view(np.uint32), (x.astype(np.float32) * scale).view(np.uint32)), scale


def test_small_rules(rules: ctypes.CDLL) -> None:
    a, b = spread(32), RANDOM.permutation(spread(32))
    assert called(rules.nn_high_multiply, a, b) == rounding.high_multiply(a, b).tolist()
    up = RANDOM.integers(0, 32, a.size)
    assert called(rules.nn_shift_left, a, up) == rounding.saturating_shift_left(a, up, 32).tolist()
    assert called(rules.nn_rounding_shift, a, up) == rounding.rounding_shift(a, up).tolist()
    assert called(rules.nn_leading_zeros, np.abs(a)) == fixed_point.leading_zeros32(np.abs(a)).tolist()


def test_reciprocal_and_root(rules: ctypes.CDLL) -> None:
    x = np.unique(np.abs(spread(32, 20000)))
    x = x[(x > 0) & (x < 1 << 31)]
    mantissa, shift = fixed_point.reciprocal(x, 12)
    assert called(rules.nn_reciprocal, x, 12 - shift) == mantissa.tolist()
    root, power = fixed_point.inverse_square_root(x)
    for value, wanted, right in zip(x.tolist(), root.tolist(), power.tolist(), strict=True):
        found = c_int32()
        assert (rules.nn_inverse_square_root(value, byref(found)), -found.value) == (wanted, right)


def test_logarithm_of_a_sum(rules: ctypes.CDLL) -> None:
    x = np.unique(np.concatenate([np.geomspace(2**19, 2**31 - 1, 20000), 2**19 + np.arange(100)])).astype(np.int64)
    found = fixed_point.log_of_sum(x, 12)
    assert called(rules.nn_log_of_sum, x) == found.tolist()
    assert np.abs(found / 2.0**26 - np.log(x / 2.0**19)).max() < 2.0**-24


EVERY_ROOT = """\
#include "nn_numeric.h"
#include <stdio.h>

int main(void)
{
    int32_t largest = 0, right;

    for (int32_t x = 1 << 27; x < 1 << 29; x += %d) {
        const int32_t root = nn_inverse_square_root(x, &right);

        if (root > largest) largest = root;
    }
    printf("%%d\\n", largest);
}
"""


@pytest.mark.parametrize("step", [1_004, pytest.param(4, marks=pytest.mark.full)])
def test_no_root_overflows(step: int, tmp_path: Path) -> None:
    """Numbers that differ in their last two bits have the same root."""
    (tmp_path / "main.c").write_text(EVERY_ROOT % step)
    used = [FIRMWARE / "numeric" / f"nn_{name}.c" for name in ("inverse_square_root", "high_multiply", "leading_zeros")]
    command = ["gcc", "-O2", "-fsanitize=signed-integer-overflow", "-fno-sanitize-recover", f"-I{FIRMWARE / 'numeric'}"]
    subprocess.run([*command, "main.c", *map(str, used), "-o", "main"], check=True, cwd=tmp_path)
    largest = int(subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout)
    assert largest <= LARGEST_ROOT and (step > 4 or largest == LARGEST_ROOT)


def test_roots_leave_room_for_a_layer_normalization() -> None:
    """A shift of more than 31 bits would not fit its vector kernels."""
    most = LARGEST_EPSILON + ((255 << 10) + 1) ** 2
    variance = np.unique(np.concatenate([np.geomspace(1, most, 20_000).astype(np.int64), [most]]))
    pairs = np.zeros_like(variance)
    for _ in range(31):
        large = (variance >> (2 * pairs)) >> 31 > 0
        pairs = pairs + large
    root, shift = fixed_point.inverse_square_root(variance >> (2 * pairs))
    assert ((root <= LARGEST_ROOT) | (variance < 32)).all()
    assert (31 - POINT + pairs - shift).max() <= 31


def test_tables(rules: ctypes.CDLL) -> None:
    x = np.arange(-32768, 32768, 3)
    for table in (softmax.exp_table16(), tables.function_table16(lambda v: 1e5 * np.sin(v), 0.001, 3.0)):
        entries = (c_int16 * 513)(*table.tolist())
        assert [rules.nn_interpolate16(entries, v) for v in x.tolist()] == tables.interpolate16(x, table).tolist()
    entries = (c_uint16 * 256)(*tables.sigmoid_table().tolist())
    for scale in (2.0**-12, 2.0**-11, 0.0007, 4.0):
        own = tables.logistic_input_scale(scale)
        found = [rules.nn_logistic16(entries, v, *own) for v in x.tolist()]
        assert found == tables.logistic16(x, own).tolist()
        own = tables.tanh_input_scale(scale)
        assert [rules.nn_tanh16(entries, v, *own) for v in x.tolist()] == tables.tanh16(x, own).tolist()


def test_gates(rules: ctypes.CDLL) -> None:
    """Equal in C; and within 2.5 steps of the functions, exact at their ends, even and odd as required."""
    x = np.append(spread(26, 20000), np.arange(-(1 << 21), 1 << 21, 431))
    entries = (c_int32 * 257)(*tables.fine_table().tolist())
    for own, exact, name in ((tables.fine_sigmoid, _logistic, "sigmoid"), (tables.fine_tanh, np.tanh, "tanh")):
        found = own(x)
        function = getattr(rules, f"nn_fine_{name}")
        assert [function(entries, v) for v in x.tolist()] == found.tolist()
        assert np.abs(found - exact(x / 2.0**20) * 2.0**20).max() < 2.5
    assert tables.fine_sigmoid([-(1 << 25), 0, 1 << 25]).tolist() == [0, 1 << 19, 1 << 20]
    assert tables.fine_tanh([-(1 << 25), 0, 1 << 25]).tolist() == [-(1 << 20), 0, 1 << 20]
    assert (tables.fine_tanh(x) == -tables.fine_tanh(-x)).all()


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_hold(rules: ctypes.CDLL) -> None:
    x, limit = spread(60), RANDOM.integers(0, 1 << 31, COUNT + 5)
    assert called(rules.nn_hold, x, limit) == np.clip(x, -limit, limit).tolist()


def test_scale_wide_takes_long_multipliers(rules: ctypes.CDLL) -> None:
    acc = spread(32)
    m, right = RANDOM.integers(1 << 29, 1 << 30, acc.size), RANDOM.integers(1, 63, acc.size)
    assert called(rules.nn_scale_wide, acc, m, right) == rounding.scale_wide(acc, m, right).tolist()


@pytest.mark.parametrize("bits", [15, 22, 30])
def test_wide_scales_of_more_bits_are_nearer(bits: int) -> None:
    for real in (1e-12, 3.3e-5, 0.5, 1 - 2.0**-40, 7.7, 16383.0, 2.0 ** (bits - 1) - 1):
        scale = multiplier.wide_scale(real, bits)
        kept = min(bits, 62 + int(np.frexp(real)[1]))
        assert abs(scale.multiplier / 2.0**scale.right / real - 1) <= 2.0**-kept
        assert 1 <= scale.right <= 62


def test_wide_scales_are_near() -> None:
    for real in (1e-9, 3.3e-5, 0.5, 0.99999, 1.0, 7.7, 16383.0):
        scale = multiplier.wide_scale(real)
        assert abs(scale.multiplier / 2.0**scale.right / real - 1) < 2.0**-15
        assert 1 <= scale.right <= 62
    assert multiplier.wide_scale(0.0).multiplier == multiplier.wide_scale(1e-16).multiplier == 0
    assert multiplier.wide_scale(1e9) == (32767, 1)

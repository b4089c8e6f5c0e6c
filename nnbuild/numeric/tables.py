"""Look-up tables and their interpolation. Tables are made at build time; look-up uses integers only."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbuild.numeric.multiplier import is_power_of_two, round_half_away
from nnbuild.numeric.rounding import INT8, INT16, Ints, ints, saturate, wrap

FAR = 1e6  # steps of the output

Float32s = NDArray[np.float32]
Function32 = Callable[[Float32s], Float32s]
Function64 = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Function = Callable[[NDArray[Any]], NDArray[Any]]


def _exp32(x: Float32s) -> Float32s:
    """exp rounded to float32 from float64, so that it does not depend on the machine's float32 exp."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


def logistic32(x: Float32s) -> Float32s:
    """The logistic function as TFLite's float code computes it, every step in float32."""
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + _exp32(-x))


def tanh32(x: Float32s) -> Float32s:
    return np.tanh(x.astype(np.float64)).astype(np.float32)


FUNCTIONS8: dict[str, Function32] = {"logistic": logistic32, "tanh": tanh32, "exp": _exp32}


def table8(function: Function32, in_scale: float, in_zero: int, out_scale: float, out_zero: int) -> Ints:
    """256 entries for -128 … 127 in this order: each input's exact float32 result, quantised.

    C: table[x + 128]
    """
    values = np.float32(in_scale) * (np.arange(*_range(INT8)) - in_zero).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = round_half_away(function(values) * (np.float32(1) / np.float32(out_scale))).astype(np.float32)
    return saturate(np.clip(scaled + np.float32(out_zero), -1e6, 1e6).astype(np.int64), *INT8)


def _range(bounds: tuple[int, int]) -> tuple[int, int]:
    return bounds[0], bounds[1] + 1


def lookup8(x: ArrayLike, table: ArrayLike) -> Ints:
    return ints(table)[ints(x) + 128]


def table16(function: Function, in_low: float, in_high: float, out_low: float, out_high: float) -> Ints:
    """513 entries over [in_low, in_high] for `lookup16`, in float64."""
    return saturate(_table16(np.float64, function, in_low, in_high, out_low, out_high).astype(np.int64), *INT16)


def _table16(kind: Any, function: Function, in_low: Any, in_high: Any, out_low: Any, out_high: Any) -> NDArray[Any]:
    """Moves each entry by half the error of linear interpolation in the middle of its step.

    Every step computes in `kind`, and so do the entries, which are not clamped yet.
    """
    low, high = kind(in_low), kind(in_high)
    step, inverse = (high - low) / kind(512), kind(65536) / (kind(out_high) - kind(out_low))
    places = np.arange(513, dtype=kind)
    starts = low + places[:-1] * step

    def whole(x: NDArray[Any]) -> NDArray[Any]:
        return round_half_away(x).astype(kind)

    sample = whole(function(starts) * inverse)
    following = function(low + places[1:] * step) * inverse
    middle = whole(function(starts + step / kind(2)) * inverse)
    error = whole((following + sample) / kind(2)) - middle
    last = whole(function(np.array([high])) * inverse)
    return np.append(sample - whole(error / kind(2)), last)


def _gelu32(x: Float32s) -> Float32s:
    rest = np.array([erfc(v) for v in (x * np.float32(-sqrt(0.5))).tolist()], np.float32)
    return np.float32(0.5) * x * rest


def _gelu_tanh32(x: Float32s) -> Float32s:
    inner = np.float32(sqrt(2 / pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + tanh32(inner))


FUNCTIONS16: dict[str, Function32] = {
    "exponential": _exp32,
    "gelu": _gelu32,
    "gelu_tanh": _gelu_tanh32,
    "log": lambda x: np.log(x.astype(np.float64)).astype(np.float32),
    "rsqrt": lambda x: (np.float32(1) / np.sqrt(x)).astype(np.float32),
}
BELOW16 = {"log": -32768, "rsqrt": 32767}
"""The result, in steps of the output, of inputs that are not positive."""


def given_table16(name: str, in_scale: float, out_scale: float) -> Ints:
    """513 entries as TFLite's 16-bit kernels compute them, in float32; the largest where these overflow, which is
    undefined there. ValueError where they rise too fast."""
    known, unit = FUNCTIONS16[name], np.float32(out_scale)

    def function(x: Float32s) -> Float32s:
        values = known(x)
        return np.where(x > 0, values, unit * np.float32(BELOW16[name])) if name in BELOW16 else values

    ends = [scale * np.float32(end) for scale in (np.float32(in_scale), unit) for end in INT16]
    with np.errstate(all="ignore"):
        entries = _table16(np.float32, function, *ends)
    entries = np.where(np.isfinite(entries), entries, np.float32(INT16[1]))
    found: Ints = saturate(np.clip(entries, -FAR, FAR).astype(np.int64), *INT16)
    if np.abs(np.diff(found)).max() > INT16[1]:
        raise ValueError("its function rises by more than 16 bits in one step of its table")
    return found


def cut_roots(in_scale: float, in_zero: int, out_scale: float, out_zero: int) -> Ints:
    """TFLite's SQRT for -128 … 127, in float32 and truncated to steps; negative inputs give 0."""
    value = np.maximum(np.arange(*_range(INT8)) - in_zero, 0).astype(np.float32)
    steps = np.sqrt(value * np.float32(in_scale)) / np.float32(out_scale)
    return np.asarray(np.minimum(steps, np.float32(FAR)).astype(np.int64) + out_zero)


def lookup16(x: ArrayLike, table: ArrayLike) -> Ints:
    """The upper 9 bits select a pair of entries, the lower 7 interpolate between them.

    C: base = t[256 + (x >> 7)]; base + (((int16_t)(next - base) * (x & 127) + 64) >> 7)
    """
    value, entries = ints(x), ints(table)
    index = 256 + (value >> 7)
    slope = wrap(entries[index + 1] - entries[index], 16)
    return wrap(entries[index] + ((slope * (value & 127) + 64) >> 7), 16)


def function_table8(
    function: Function64, in_scale: float, in_zero: int, out_scale: float, out_zero: int, bounds: tuple[int, int]
) -> Ints:
    """256 entries like `table8`, in float64: for functions without an integer form in TFLite."""
    at = np.asarray((np.arange(*_range(INT8)) - in_zero) * float(in_scale), np.float64)
    return saturate(round_half_away(_steps(function, at, out_scale)).astype(np.int64) + out_zero, *bounds)


def _steps(function: Function64, at: NDArray[np.float64], out_scale: float) -> NDArray[np.float64]:
    """A function in steps of the output, clamped beyond the saturation of every type; 0 where it is undefined."""
    with np.errstate(all="ignore"):
        steps = np.nan_to_num(function(at) / out_scale, nan=0.0, posinf=FAR, neginf=-FAR)
    return np.asarray(np.clip(steps, -FAR, FAR), np.float64)


def function_table16(function: Function64, in_scale: float, out_scale: float) -> Ints:
    """513 entries for `interpolate16`, over all 16-bit inputs and one more; an entry lies on every 128th input.

    As in `table16` each entry is moved by half the interpolation error in the middle of its step, but not beyond its
    neighbours, so that jumps do not overshoot.
    """
    at = np.asarray(np.arange(-256, 257) * (128.0 * in_scale), np.float64)
    sample, middle = _steps(function, at, out_scale), _steps(function, at[:-1] + 64.0 * in_scale, out_scale)
    error = (sample[1:] + sample[:-1]) / 2 - middle
    bound = np.abs(np.diff(sample)) / 4
    moved = np.append(sample[:-1] - np.clip(error / 2, -bound, bound), sample[-1])
    return saturate(round_half_away(moved).astype(np.int64), *INT16)


def interpolate16(x: ArrayLike, table: ArrayLike) -> Ints:
    """`lookup16` for tables that may rise by more than 16 bits per step.

    C: base = t[256 + (x >> 7)]; base + (((next - base) * (x & 127) + 64) >> 7)
    """
    value, entries = ints(x), ints(table)
    index = 256 + (value >> 7)
    return np.asarray(entries[index] + (((entries[index + 1] - entries[index]) * (value & 127) + 64) >> 7))


def sigmoid_table() -> Ints:
    """logistic(i / 24) * 65536 for i = 0 … 255, in the middle of sample and interpolation error.

    The 16-bit logistic and tanh share it, since tanh(x) = 2 logistic(2x) - 1. The last entry is clamped to the largest
    16-bit number.
    """
    index = np.arange(256.0)
    sample, following = _sigmoid(index), _sigmoid(index + 1)
    error = (sample + following) / 2 - _sigmoid(index + 0.5)
    entries = np.floor((sample - error / 2) * 65536 + 0.5).astype(np.int64)
    entries[-1] = 65535
    return entries


def _sigmoid(index: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-index / 24)))


class InputScale(NamedTuple):
    """Scales a 16-bit input to the table's step: (x * multiplier + half) >> shift."""

    multiplier: int
    shift: int


def table_input_scale(scale: float, shifts_allowed: tuple[int, ...]) -> InputScale:
    """From a 16-bit tensor's scale to the sigmoid table's 1 / (3 * 4096).

    Scales that are 2**-12 times an allowed power of two take an exact multiplier. The logistic allows
    a shift of 0, tanh of 0 and 1. Other multipliers are truncated, not rounded.
    """
    power, logarithm = is_power_of_two(scale)
    if power and 12 + logarithm in shifts_allowed:
        return InputScale(3 << (12 + logarithm), 0)
    real, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while real <= 32767.0 / 2.0 and shift <= 30:
        real, shift = real * 2, shift + 1
    return InputScale(int(real), shift)


def logistic_input_scale(scale: float) -> InputScale:
    return table_input_scale(scale, (0,))


def tanh_input_scale(scale: float) -> InputScale:
    return table_input_scale(scale, (0, 1))


def _scaled_input(x: ArrayLike, scale: InputScale) -> Ints:
    half = 1 << (scale.shift - 1) if scale.shift > 0 else 0
    return (ints(x) * scale.multiplier + half) >> scale.shift


def _interpolated(size: Ints, fraction_bits: int) -> tuple[Ints, Ints]:
    """The table at a magnitude with this many fraction bits (not shifted back yet), and where it has ended."""
    entries = np.append(sigmoid_table(), 0)
    index = np.minimum(size >> fraction_bits, 255)
    fraction = size & ((1 << fraction_bits) - 1)
    value = (entries[index] << fraction_bits) + fraction * (entries[index + 1] - entries[index])
    return value, index >= 255


def logistic16(x: ArrayLike, scale: InputScale) -> Ints:
    """The 16-bit logistic: interpolates the sigmoid table, output scale 2**-15."""
    value = _scaled_input(x, scale)
    result, ended = _interpolated(np.abs(value), 9)
    result = np.where(ended, 0x7FFF << 10, result)
    return np.where(value >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh16(x: ArrayLike, scale: InputScale) -> Ints:
    """The 16-bit tanh: the same table at twice the argument, output scale 2**-15."""
    value = _scaled_input(x, scale)
    result, ended = _interpolated(np.abs(value), 8)
    result = np.where(ended, 0xFFFF << 8, result)
    one = 1 << 23
    return np.where(value >= 0, result - one + (1 << 7), -result + one + (1 << 7) - 1) >> 8


FINE_POINT = 20
"""Fraction bits of a gate's argument and result."""


def fine_table() -> Ints:
    """logistic(i / 16) * 2**30 for i = 0 … 256."""
    return np.floor(2.0**30 / (1 + np.exp(-np.arange(257.0) / 16)) + 0.5).astype(np.int64)


def fine_sigmoid(x: ArrayLike) -> Ints:
    """The logistic function of x / 2**20 with 20 fraction bits, from 0 to 2**20; for |x| < 2**27.

    The nearest entry s and a second-order Taylor series, with the derivatives s (1 - s) and s (1 - s) (1 - 2 s). A gate
    keeps a state over many steps, for which 15 bits that end short of 1 would not suffice.
    """
    value = ints(x)
    size = np.minimum(np.abs(value), 16 << FINE_POINT)
    index = (size + (1 << 15)) >> 16
    near, rest = fine_table()[index], size - (index << 16)
    slope = (near * ((1 << 30) - near)) >> 30
    bend = (slope * ((1 << 29) - near)) >> 30
    result = (near + ((rest * (slope + ((rest * bend) >> 20))) >> 20) + (1 << 9)) >> 10
    return ints(np.where(value < 0, (1 << FINE_POINT) - result, result))


def fine_tanh(x: ArrayLike) -> Ints:
    """tanh of x / 2**20 with 20 fraction bits: 2 logistic(2 x) - 1; odd; for |x| < 2**26."""
    value = ints(x)
    size = 2 * fine_sigmoid(2 * np.abs(value)) - (1 << FINE_POINT)
    return ints(np.where(value < 0, -size, size))

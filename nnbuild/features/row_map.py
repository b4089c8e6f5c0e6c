"""Maps a row's integers to a network input's: one product and one shift, verified for every value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.features.config import Recipe
from nnbuild.features.frontend import Array

DEVICE_RANGE = 666
"""The largest feature of programs in the field: 26 times 25.6, rounded up."""


@dataclass(frozen=True)
class FixedMap:
    """(value * factor + start) / 2^shift, rounded down or, with `truncates`, towards zero; clamped."""

    factor: int
    start: int
    shift: int
    low: int
    high: int
    dtype: str
    truncates: bool

    def __call__(self, rows: Array) -> Array:
        sums = rows.astype(np.int64) * self.factor + self.start
        if self.truncates:
            sums += (sums >> 63) & ((1 << self.shift) - 1)
        return np.asarray(np.clip(sums >> self.shift, self.low, self.high), self.dtype)


def wanted(values: Array, recipe: Recipe, scale: float, zero_point: int, low: int, high: int) -> Array:
    """The required result for each value, with the requested rounding."""
    if recipe.rounding == "device":
        whole = (values * 256 + DEVICE_RANGE // 2) // DEVICE_RANGE - 128
    else:
        moved = np.float32(values * recipe.scale) / np.float32(scale)
        if recipe.rounding == "truncate":
            whole = np.trunc((moved + np.float32(zero_point)).astype(np.float64)).astype(np.int64)
        else:
            away = np.floor(np.abs(moved.astype(np.float64)) + 0.5) * np.sign(moved)
            whole = away.astype(np.int64) + zero_point
    return np.asarray(np.clip(whole, low, high))


def fixed_map(source: str, target: str, recipe: Recipe, scale: float, zero_point: int) -> FixedMap:
    limits, bounds = np.iinfo(source), np.iinfo(target)
    low, high = int(bounds.min), int(bounds.max)
    values = np.arange(limits.min, limits.max + 1, dtype=np.int64)
    right = wanted(values, recipe, scale, zero_point, low, high)
    ratio = 256 / DEVICE_RANGE if recipe.rounding == "device" else recipe.scale / scale
    truncates = recipe.rounding == "truncate"
    for shift in range(8, 40):
        factor = round(ratio * 2**shift)
        found = _start(values * factor, right, shift, (low, high), truncates)
        if found is not None:
            return FixedMap(factor, found, shift, low, high, target, truncates)
    cause = f"no product and shift gives the input's integers for scale {scale:g} and rounding {recipe.rounding!r}."
    raise UsageError(str(recipe.path), cause, 'Take rounding = "nearest".')


def _start(products: Array, right: Array, shift: int, bounds: tuple[int, int], truncates: bool) -> int | None:
    """A `start` that gives the right result for every value, if there is one: each value bounds it from both sides,
    clamped results from one."""
    first, last = right << shift, ((right + 1) << shift) - 1
    if truncates:
        first = np.where(right <= 0, ((right - 1) << shift) + 1, first)
        last = np.where(right < 0, right << shift, last)
    least = int(np.where(right > bounds[0], first - products, -(2**62)).max())
    most = int(np.where(right < bounds[1], last - products, 2**62).min())
    return max(least, min(most, (least + most) // 2)) if least <= most else None

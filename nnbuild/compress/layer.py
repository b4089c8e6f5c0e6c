"""Compresses one layer's weights: mask, values and scales that change its results least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nnbuild.compress.patterns import UNSTRUCTURED, Pattern
from nnbuild.compress.solve import Moments, error, errors, prune_mask, refined, round_in_turn, rounded
from nnbuild.compress.values import LARGEST, Levels, shared, uniform
from nnbuild.model.graph import Array

MOST_INPUTS = 1024
"""Inputs whose weights compensate for each other; larger layers are divided into blocks."""
FEWEST_ROUNDS = 100
TURNS = 2
THOROUGH = 4
"""Orders in which weights are rounded; each output takes the best."""
WORK = 4e11
"""Multiplications that the mask or the values of one layer may take."""


@dataclass(frozen=True)
class Spec:
    """What is required of a layer's weights. `values` limits the number of different ones, `most` their absolute
    value."""

    density: float | None = None
    pattern: Pattern = UNSTRUCTURED
    values: int | None = None
    most: int = LARGEST

    @property
    def changes(self) -> bool:
        return self.density is not None or self.values is not None or self.most < LARGEST

    @property
    def fine(self) -> bool:
        """Whether the remaining weights are rounded so finely that rounding hardly matters."""
        return self.values is None and self.most == LARGEST

    def __str__(self) -> str:
        words = []
        if self.density is not None:
            words.append(f"{1 - self.density:.0%} pruned ({self.pattern.name})")
        if self.values is not None:
            words.append(f"{self.values} values")
        if self.most < LARGEST:
            bits = self.most.bit_length() + 1
            words.append(f"{bits} bits" if 2 ** (bits - 1) - 1 == self.most else f"-{self.most} to {self.most}")
        return ", ".join(words) or "as it is"


@dataclass(frozen=True, eq=False)
class Fit:
    """Integers and scales, and the share of the layer's signal that they lose."""

    integers: Array
    scales: Array
    lost: float


def fit(wanted: Array, moments: Sequence[Moments], spec: Spec, least: Array, tries: int = THOROUGH) -> Fit:
    """`wanted` is [groups, inputs, outputs]; `moments` are one per block of `input_blocks`, each [groups, inputs,
    inputs]; `least` are the smallest scales."""
    parts = list(zip(input_blocks(wanted.shape[1]), moments, strict=True))
    placed = [_prune(wanted[:, p], m, spec) for p, m in parts]
    weights = np.concatenate([each for each, _ in placed], axis=1)
    kept = None if spec.density is None else np.concatenate([each for _, each in placed], axis=1)
    importance = np.concatenate([np.einsum("gii->gi", m.plain) for m in moments], axis=1)[:, :, None]
    importance = importance + 1e-3 * importance.mean(axis=1, keepdims=True) + 1e-12
    levels = _levels(weights, importance, kept, spec, least)
    made, scales = _round_to_levels(wanted, weights, kept, levels, parts, least, spec, tries)
    steps = np.round(made / scales)
    power = sum(_power(wanted[:, p], m.plain) for p, m in parts)
    lost = sum(error(steps[:, p] * scales, wanted[:, p], m.plain) for p, m in parts)
    return Fit(steps, scales, max(lost / power, 0.0) if power > 0 else 0.0)


def input_blocks(inputs: int) -> list[slice]:
    """Blocks of inputs whose covariance is considered."""
    count = -(-inputs // MOST_INPUTS)
    ends = np.linspace(0, inputs, count + 1).astype(int)
    return [slice(start, end) for start, end in pairwise(ends.tolist())]


def _power(weights: Array, moments: Array) -> float:
    return error(weights, np.zeros_like(weights), moments)


def _rounds(weights: Array) -> float:
    """Multiplications with the moments that one layer may take."""
    groups, inputs, outputs = weights.shape
    return WORK / float(2 * groups * inputs * min(inputs, MOST_INPUTS) * outputs)


def _prune(wanted: Array, moments: Moments, spec: Spec) -> tuple[Array, Array]:
    """The best values of the remaining weights, and their mask."""
    density = spec.density
    if density is None:
        return wanted, np.ones(wanted.shape, bool)

    def mask(importance: Array) -> Array:
        return np.stack([spec.pattern.mask(each, density) for each in importance])

    if _rounds(wanted) < FEWEST_ROUNDS:
        kept = mask(np.square(wanted) * np.square(moments.sizes))
        return wanted * kept, kept
    kept = prune_mask(wanted, moments, mask)
    return refined(wanted, moments.damped, kept), kept


def _levels(weights: Array, importance: Array, kept: Array | None, spec: Spec, least: Array) -> Levels:
    if spec.values is not None:
        return shared(weights, importance, kept, spec.values, least)
    return uniform(weights, importance, spec.most, least)


def _round_to_levels(
    wanted: Array,
    weights: Array,
    kept: Array | None,
    levels: Levels,
    parts: list[tuple[slice, Moments]],
    least: Array,
    spec: Spec,
    tries: int,
) -> tuple[Array, Array]:
    """Weights rounded to the levels, and their scales: rounded, rescaled, and rounded again; each output takes the best
    of several starts."""
    best, scales = levels.nearest(weights) * (1 if kept is None else kept), levels.scales
    if spec.fine or _rounds(wanted) < FEWEST_ROUNDS:
        return best, scales
    lowest = np.full(scales.shape, np.inf)
    for begin in range(tries if kept is None and _rounds(wanted) > tries * FEWEST_ROUNDS else 1):
        now = levels
        for _ in range(TURNS):
            made = np.concatenate([_rounded(weights, wanted, kept, now, begin, p, m) for p, m in parts], axis=1)
            off = sum((errors(made[:, p], wanted[:, p], m.plain) for p, m in parts), np.zeros(lowest.shape))
            better = off < lowest
            best, scales = np.where(better, made, best), np.where(better, now.scales, scales)
            lowest = np.minimum(off, lowest)
            now = Levels(levels.integers, np.maximum(_rescale(made, wanted, now.scales, parts), least))
    return best, scales


def _rounded(
    weights: Array, wanted: Array, kept: Array | None, levels: Levels, begin: int, part: slice, moments: Moments
) -> Array:
    first, aim = weights[:, part], wanted[:, part]
    if kept is not None:
        return rounded(first, aim, moments.damped, kept[:, part], levels.of_input)
    first = round_in_turn(aim, moments.damped, moments.orders[begin], levels.of_input)
    return rounded(first, aim, moments.damped, None, levels.of_input)


def _rescale(made: Array, wanted: Array, scales: Array, parts: list[tuple[slice, Moments]]) -> Array:
    """The scale of each channel with the least error for these integers."""
    steps = made / scales
    ahead = np.concatenate([m.plain @ steps[:, p] for p, m in parts], axis=1)
    along, size = (ahead * wanted).sum(axis=1, keepdims=True), (ahead * steps).sum(axis=1, keepdims=True)
    found: Array = np.divide(along, size, out=scales.copy(), where=(size > 0) & (along > 0))
    return found

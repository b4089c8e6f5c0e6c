"""One layer's weights, compressed: places, values and scales that change its results least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nnbuild.compress.patterns import UNSTRUCTURED, Pattern
from nnbuild.compress.solve import Moments, error, errors, in_turn, places, refined, rounded
from nnbuild.compress.values import LARGEST, Levels, shared, uniform
from nnbuild.model.graph import Array

MOST_INPUTS = 1024
"""Inputs whose weights make up for each other; more are parted into so many, each on its own."""
FEWEST_ROUNDS = 100
TURNS = 2
THOROUGH = 4
"""Orders in which weights are rounded; for every output the best is taken."""
WORK = 4e11
"""Multiplications that the places or the values of one layer's weights may take."""


@dataclass(frozen=True)
class Spec:
    """What is asked of a layer's weights. `values` is how many different ones there may be, `most` the largest."""

    density: float | None = None
    pattern: Pattern = UNSTRUCTURED
    values: int | None = None
    most: int = LARGEST

    @property
    def changes(self) -> bool:
        return self.density is not None or self.values is not None or self.most < LARGEST

    @property
    def fine(self) -> bool:
        """Whether what is left is rounded to steps so small that rounding hardly matters."""
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
    """Integers and scales, and the part of the layer's signal that they lose."""

    integers: Array
    scales: Array
    lost: float


def fit(wanted: Array, moments: Sequence[Moments], spec: Spec, least: Array, tries: int = THOROUGH) -> Fit:
    """`wanted` is [groups, inputs, outputs], each of the `moments` [groups, inputs, inputs] of as many inputs as
    `parted` puts together; `least` are the smallest scales."""
    parts = list(zip(parted(wanted.shape[1]), moments, strict=True))
    placed = [_placed(wanted[:, p], m, spec) for p, m in parts]
    weights = np.concatenate([each for each, _ in placed], axis=1)
    kept = None if spec.density is None else np.concatenate([each for _, each in placed], axis=1)
    importance = np.concatenate([np.einsum("gii->gi", m.plain) for m in moments], axis=1)[:, :, None]
    importance = importance + 1e-3 * importance.mean(axis=1, keepdims=True) + 1e-12
    levels = _levels(weights, importance, kept, spec, least)
    made, scales = _valued(wanted, weights, kept, levels, parts, least, spec, tries)
    steps = np.round(made / scales)
    power = sum(_power(wanted[:, p], m.plain) for p, m in parts)
    lost = sum(error(steps[:, p] * scales, wanted[:, p], m.plain) for p, m in parts)
    return Fit(steps, scales, max(lost / power, 0.0) if power > 0 else 0.0)


def parted(inputs: int) -> list[slice]:
    """Inputs that vary together as far as is looked at."""
    count = -(-inputs // MOST_INPUTS)
    ends = np.linspace(0, inputs, count + 1).astype(int)
    return [slice(start, end) for start, end in pairwise(ends.tolist())]


def _power(weights: Array, moments: Array) -> float:
    return error(weights, np.zeros_like(weights), moments)


def _rounds(weights: Array) -> float:
    """So many multiplications with the moments one layer may take."""
    groups, inputs, outputs = weights.shape
    return WORK / float(2 * groups * inputs * min(inputs, MOST_INPUTS) * outputs)


def _placed(wanted: Array, moments: Moments, spec: Spec) -> tuple[Array, Array]:
    """The weights that stay at their best, and which they are."""
    density = spec.density
    if density is None:
        return wanted, np.ones(wanted.shape, bool)

    def mask(importance: Array) -> Array:
        return np.stack([spec.pattern.mask(each, density) for each in importance])

    if _rounds(wanted) < FEWEST_ROUNDS:
        kept = mask(np.square(wanted) * np.square(moments.sizes))
        return wanted * kept, kept
    kept = places(wanted, moments, mask)
    return refined(wanted, moments.damped, kept), kept


def _levels(weights: Array, importance: Array, kept: Array | None, spec: Spec, least: Array) -> Levels:
    if spec.values is not None:
        return shared(weights, importance, kept, spec.values, least)
    return uniform(weights, importance, spec.most, least)


def _valued(
    wanted: Array,
    weights: Array,
    kept: Array | None,
    levels: Levels,
    parts: list[tuple[slice, Moments]],
    least: Array,
    spec: Spec,
    tries: int,
) -> tuple[Array, Array]:
    """Weights of these levels, and their scales: rounded, scaled anew to what was rounded, and rounded again; of some
    beginnings what is best for each output."""
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
            now = Levels(levels.integers, np.maximum(_scaled_anew(made, wanted, now.scales, parts), least))
    return best, scales


def _rounded(
    weights: Array, wanted: Array, kept: Array | None, levels: Levels, begin: int, part: slice, moments: Moments
) -> Array:
    first, aim = weights[:, part], wanted[:, part]
    if kept is not None:
        return rounded(first, aim, moments.damped, kept[:, part], levels.of_input)
    first = in_turn(aim, moments.damped, moments.orders[begin], levels.of_input)
    return rounded(first, aim, moments.damped, None, levels.of_input)


def _scaled_anew(made: Array, wanted: Array, scales: Array, parts: list[tuple[slice, Moments]]) -> Array:
    """The scale for each channel at which these integers err least."""
    steps = made / scales
    ahead = np.concatenate([m.plain @ steps[:, p] for p, m in parts], axis=1)
    along, size = (ahead * wanted).sum(axis=1, keepdims=True), (ahead * steps).sum(axis=1, keepdims=True)
    found: Array = np.divide(along, size, out=scales.copy(), where=(size > 0) & (along > 0))
    return found

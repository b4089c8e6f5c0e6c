"""Groups of weights whose sums of magnitudes keep within a bound, for every output channel."""

from __future__ import annotations

import numpy as np

from nnbuild.numeric.rounding import Ints

LARGEST = 8
"""Weights of a group, at most."""
LONG = 1 << 16
"""Weights of a layer beyond which no better order is searched."""
EXCHANGES = 300


def grouped(weights: Ints, bound: int) -> tuple[Ints, int]:
    """An order of the taps of weights [taps, channels], and the number of taps in a group; the last one may be smaller.

    In every group each channel's magnitudes sum to the bound at most. Groups are as large as a quick search finds; a
    single tap must keep within the bound.
    """
    magnitudes = np.abs(weights)
    most = int(bound // max(magnitudes.mean(axis=0).max(), 1.0))
    for size in range(min(most, LARGEST, len(weights)), 1, -1):
        order = _order(magnitudes, bound, size)
        if order is not None:
            return order, size
    return np.arange(len(weights)), 1


def _order(magnitudes: Ints, bound: int, size: int) -> Ints | None:
    """Deals large weights to all groups in turn, back and forth; then swaps taps of groups that exceed the bound, as
    long as that helps. The smallest weights are left over."""
    count = len(magnitudes) // size
    order = np.argsort(-magnitudes.max(axis=1), kind="stable")
    groups, rest = order[: count * size].reshape(size, count), order[count * size :]
    groups[1::2] = groups[1::2, ::-1].copy()
    groups = groups.T.copy()
    if (magnitudes[rest].sum(axis=0) > bound).any():
        return None
    for _ in range(EXCHANGES if magnitudes.size <= LONG else 1):
        over = np.maximum(magnitudes[groups].sum(axis=1) - bound, 0).sum(axis=1)
        worst = int(over.argmax())
        if over[worst] == 0:
            return np.concatenate([groups.reshape(-1), rest])
        if not _exchanged(magnitudes, groups, over, worst, bound):
            return None
    return None


def _exchanged(magnitudes: Ints, groups: Ints, over: Ints, worst: int, bound: int) -> bool:
    """Swaps the tap of the worst group with the tap of another group for which that helps most."""
    sums, gains = magnitudes[groups].sum(axis=1), []
    for place in range(groups.shape[1]):
        change = magnitudes[groups] - magnitudes[groups[worst, place]]
        here = np.maximum(sums[worst] + change - bound, 0).sum(axis=2)
        there = np.maximum(sums[:, None] - change - bound, 0).sum(axis=2)
        gain = over[worst] + over[:, None] - here - there
        gain[worst] = 0
        gains.append((int(gain.max()), place, int(gain.argmax())))
    gain, place, other = max(gains, key=lambda each: each[0])
    group, at = divmod(other, groups.shape[1])
    if gain > 0:
        groups[worst, place], groups[group, at] = groups[group, at], groups[worst, place]
    return gain > 0

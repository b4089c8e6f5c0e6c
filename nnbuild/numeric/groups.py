"""Weights put into groups whose sums of magnitudes keep within a bound, for every output channel."""

from __future__ import annotations

import numpy as np

from nnbuild.numeric.rounding import Ints

LARGEST = 8
"""Weights of a group."""
LONG = 1 << 16
"""Weights of a layer beyond which no better order is looked for."""
EXCHANGES = 300


def grouped(weights: Ints, bound: int) -> tuple[Ints, int]:
    """An order of the taps of weights [taps, channels], and how many of them make a group; the last one may be smaller.

    Each channel's magnitudes sum to the bound at most in every group. Groups are as large as is found quickly; a tap
    alone must keep within the bound.
    """
    magnitudes = np.abs(weights)
    most = int(bound // max(magnitudes.mean(axis=0).max(), 1.0))
    for size in range(min(most, LARGEST, len(weights)), 1, -1):
        order = _order(magnitudes, bound, size)
        if order is not None:
            return order, size
    return np.arange(len(weights)), 1


def _order(magnitudes: Ints, bound: int, size: int) -> Ints | None:
    """Large weights are dealt out to all groups in turn, there and back; then taps of groups that exceed the bound are
    exchanged for others, as long as that helps. What is left over are the smallest ones."""
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
    """The exchange of a tap of the worst group for one of another that helps most."""
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

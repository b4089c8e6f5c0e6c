"""Finds weights under a constraint that change a layer's results as little as possible.

`wanted` [groups, inputs, outputs] are the unconstrained weights, `moments` [groups, inputs, inputs] the second moments
of the inputs: the error of weights w is the sum of (w - wanted)' moments (w - wanted) over all outputs. A layer is one
group, except for depthwise and grouped convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.model.graph import Array

DAMPING = 0.01
"""The share of the mean variance added to each input's, since samples are few."""
ROUNDS = 40
"""Iterations of the search for the mask."""
REFINED = 40
SWEEPS = 4
STRIDE = 64
"""Inputs whose weights are rounded before the others are updated."""

Mask = Callable[[Array], Array]
Nearest = Callable[[Array], Array]
"""Returns the nearest allowed weights, for [groups, inputs, outputs] or a single input's."""


def damped(moments: Array) -> Array:
    """The moments made positive definite: every input has some variance."""
    size = moments.shape[-1]
    mean = np.trace(moments, axis1=1, axis2=2)[:, None, None] / size
    made: Array = moments + (DAMPING * mean + np.where(mean > 0, 0.0, 1.0)) * np.eye(size)
    return made


def error(weights: Array, wanted: Array, moments: Array) -> float:
    return float(errors(weights, wanted, moments).sum())


def errors(weights: Array, wanted: Array, moments: Array) -> Array:
    """The error of every output [groups, 1, outputs]."""
    off = weights - wanted
    found: Array = (off * (moments @ off)).sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of a layer's inputs, as measured and as damped."""

    plain: Array

    @cached_property
    def damped(self) -> Array:
        return damped(self.plain)

    @cached_property
    def sizes(self) -> Array:
        """[groups, inputs, 1]: the standard deviation of every input."""
        found: Array = np.sqrt(np.einsum("gii->gi", self.damped))[:, :, None]
        return found

    @cached_property
    def orders(self) -> list[Array]:
        """Orders of rounding: largest inputs first, largest last, and as they come."""
        by_size = np.argsort(np.einsum("gii->i", self.damped), kind="stable")
        return [by_size[::-1], np.arange(len(by_size))[::-1], np.arange(len(by_size)), by_size]

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors for inputs of variance 1."""
        values, vectors = np.linalg.eigh(self.damped / (self.sizes * self.sizes.transpose(0, 2, 1)))
        return values, vectors


def prune_mask(wanted: Array, moments: Moments, mask: Mask) -> Array:
    """The mask of remaining weights, by the alternating direction method of multipliers (ADMM) on inputs of variance 1.
    Free and masked weights are drawn together ever more strongly, so that the remaining weights compensate for the
    removed ones.
    """
    values, vectors = moments.parts
    target = wanted * moments.sizes
    product = moments.damped @ wanted / moments.sizes
    kept = mask(np.square(target))
    masked, dual, weight = target * kept, np.zeros_like(target), 0.1
    for _ in range(ROUNDS):
        right = vectors.transpose(0, 2, 1) @ (product + weight * masked - dual)
        free = vectors @ (right / (values[:, :, None] + weight))
        before, kept = kept, mask(np.square(free + dual / weight))
        masked = (free + dual / weight) * kept
        dual = dual + weight * (free - masked)
        changed = float((kept != before).mean()) / max(float(kept.mean()), 1e-9)
        weight *= 1.3 if changed > 0.02 else 1.1
        if changed == 0.0 and weight > 3:
            break
    return kept


def refined(wanted: Array, moments: Array, kept: Array) -> Array:
    """The best values of the remaining weights, by conjugate gradients for all outputs at once."""
    diagonal = np.einsum("gii->gi", moments)[:, :, None]
    weights = wanted * kept
    residual = kept * (moments @ (wanted - weights))
    step = residual / diagonal
    length = (residual * step).sum(axis=1, keepdims=True)
    for _ in range(REFINED):
        forward = kept * (moments @ step)
        along = (step * forward).sum(axis=1, keepdims=True)
        share = np.divide(length, along, out=np.zeros_like(length), where=along > 0)
        weights = weights + share * step
        residual = residual - share * forward
        conditioned = residual / diagonal
        after = (residual * conditioned).sum(axis=1, keepdims=True)
        if float(after.max(initial=0.0)) <= 1e-18 * float(diagonal.max()):
            break
        step = conditioned + np.divide(after, length, out=np.zeros_like(after), where=length > 0) * step
        length = after
    return weights


def round_in_turn(wanted: Array, moments: Array, order: Array, nearest: Nearest) -> Array:
    """Rounds each input's weights in turn, and updates the remaining free weights to compensate."""
    ahead = moments[:, order][:, :, order]
    onward = np.linalg.cholesky(np.linalg.inv(ahead)).transpose(0, 2, 1)
    free, made = wanted[:, order], np.empty_like(wanted)
    for start in range(0, len(order), STRIDE):
        end = min(start + STRIDE, len(order))
        off = np.empty((free.shape[0], end - start, free.shape[2]))
        for j in range(start, end):
            best = nearest(free[:, j])
            made[:, order[j]] = best
            off[:, j - start] = (free[:, j] - best) / onward[:, j, j, None]
            free[:, j:end] -= onward[:, j, j:end, None] * off[:, j - start, None]
        free[:, end:] -= onward[:, start:end, end:].transpose(0, 2, 1) @ off
    return made


def rounded(
    weights: Array, wanted: Array, moments: Array, kept: Array | None, nearest: Callable[[Array], Array]
) -> Array:
    """Rounds starting weights to allowed values, then re-optimizes each input's in turn given all others; `nearest`
    rounds one input's weights [groups, outputs].
    """
    diagonal = np.einsum("gii->gi", moments)
    slope = moments @ (weights - wanted)
    for _ in range(SWEEPS):
        before = weights
        weights = weights.copy()
        for start in range(0, weights.shape[1], STRIDE):
            end = min(start + STRIDE, weights.shape[1])
            changes = np.zeros((weights.shape[0], end - start, weights.shape[2]))
            for j in range(start, end):
                now = slope[:, j] + np.einsum("gb,gbo->go", moments[:, j, start:end], changes)
                best = nearest(weights[:, j] - now / diagonal[:, j, None])
                best = best if kept is None else best * kept[:, j]
                changes[:, j - start] = best - weights[:, j]
                weights[:, j] = best
            slope = slope + moments[:, :, start:end] @ changes
        if np.array_equal(before, weights):
            break
    return weights

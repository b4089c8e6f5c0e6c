"""Matrices of weights under a constraint, that change what a layer computes as little as possible.

`wanted` [groups, inputs, outputs] are weights without the constraint, `moments` [groups, inputs, inputs] how inputs
vary together: the error of other weights w is the sum of (w - wanted)' moments (w - wanted) over all outputs. A layer
is a group, but for depthwise and grouped convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.model.graph import Array

DAMPING = 0.01
"""The share of the mean variance that is added to each input's: samples are few."""
ROUNDS = 40
"""In which the places of the weights that stay are looked for."""
REFINED = 40
SWEEPS = 4
STRIDE = 64
"""Inputs whose weights are rounded before the others hear of it."""

Mask = Callable[[Array], Array]
Nearest = Callable[[Array], Array]
"""The nearest weights of those that are allowed, for [groups, inputs, outputs] or one input's."""


def damped(moments: Array) -> Array:
    """What can be solved for: no input is without variance."""
    size = moments.shape[-1]
    mean = np.trace(moments, axis1=1, axis2=2)[:, None, None] / size
    made: Array = moments + (DAMPING * mean + np.where(mean > 0, 0.0, 1.0)) * np.eye(size)
    return made


def error(weights: Array, wanted: Array, moments: Array) -> float:
    return float(errors(weights, wanted, moments).sum())


def errors(weights: Array, wanted: Array, moments: Array) -> Array:
    """Of every output [groups, 1, outputs]."""
    off = weights - wanted
    found: Array = (off * (moments @ off)).sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True, eq=False)
class Moments:
    """How the inputs of a layer vary together, as they were measured and so that they can be solved for."""

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
        """In which inputs' weights are rounded one after the other: of the largest inputs first or last, and as they
        come."""
        by_size = np.argsort(np.einsum("gii->i", self.damped), kind="stable")
        return [by_size[::-1], np.arange(len(by_size))[::-1], np.arange(len(by_size)), by_size]

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors for inputs of variance 1."""
        values, vectors = np.linalg.eigh(self.damped / (self.sizes * self.sizes.transpose(0, 2, 1)))
        return values, vectors


def places(wanted: Array, moments: Moments, mask: Mask) -> Array:
    """Which weights stay: the alternating direction method of multipliers, on inputs of variance 1.

    Free weights and masked ones are drawn together ever more strongly, so that what goes is made up for by what stays.
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
    """The best values of the weights that stay: conjugate gradients for all outputs at once."""
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


def in_turn(wanted: Array, moments: Array, order: Array, nearest: Nearest) -> Array:
    """Each input's weights rounded in turn, and the free weights of those still to come moved so that they make up for
    it best."""
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
    """From weights to start with, weights that are all allowed values.

    Each input's in turn take those that make up best for all others' errors; `nearest` rounds one input's weights
    [groups, outputs].
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

"""Compares two sets of outputs with pure functions over arrays.

`reference` is the right value and `found` the device's; the first axis counts the samples. Sums are computed in
float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nnbuild.numeric.nearness import along_samples

Array = npt.NDArray[Any]
CONFIDENCE = 0.95
"""The confidence with which a gate on a share refuses."""


@dataclass(frozen=True)
class Metrics:
    """`error` is found minus reference. Perfect agreement gives 0, and 1 for nse and cosine."""

    rmse: float
    mae: float
    l2r: float  # norm of the error over the norm of the reference
    mean: float  # of the error
    std: float  # of the error
    nse: float  # Nash-Sutcliffe efficiency: 1 minus the error's energy over the reference's variance
    cosine: float
    max_error: float


def compare(reference: Array, found: Array) -> Metrics:
    """All metrics at once. A value that is not finite on only one side makes the errors infinite."""
    expected, given = _flat(reference), _flat(found)
    if expected.shape != given.shape:
        raise ValueError(f"{expected.size} values cannot be compared with {given.size}")
    if expected.size == 0:
        return Metrics(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0)
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    if not np.all(same | (np.isfinite(expected) & np.isfinite(given))):
        infinite = float("inf")
        return Metrics(infinite, infinite, infinite, infinite, infinite, -infinite, 0.0, infinite)
    usable = np.isfinite(expected)  # the others are equal on both sides, and would make every sum infinite
    expected, given = expected[usable], given[usable]
    error = given - expected
    if error.size == 0:
        return Metrics(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0)
    return Metrics(
        rmse=float(np.sqrt(np.mean(error**2))),
        mae=float(np.mean(np.abs(error))),
        l2r=_ratio(float(np.linalg.norm(error)), float(np.linalg.norm(expected))),
        mean=float(np.mean(error)),
        std=float(np.std(error)),
        nse=1.0 - _ratio(float(np.sum(error**2)), float(np.sum((expected - np.mean(expected)) ** 2))),
        cosine=_cosine(expected, given),
        max_error=float(np.max(np.abs(error))),
    )


def _flat(values: Array) -> npt.NDArray[np.float64]:
    return np.asarray(values, np.float64).reshape(-1)


def _ratio(part: float, whole: float) -> float:
    if part == 0.0:
        return 0.0
    return part / whole if whole != 0.0 else float("inf")


def _cosine(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
    if lengths == 0.0:
        return 1.0 if not first.any() and not second.any() else 0.0
    return min(1.0, max(-1.0, float(first @ second) / lengths))


def predicted_classes(values: Array) -> npt.NDArray[np.int64]:
    """The predicted class of each sample (and time step); a single value is a probability, compared with 0.5."""
    if values.shape[-1] == 1:
        return np.asarray(values[..., 0] > 0.5, np.int64)
    return np.asarray(np.argmax(values, axis=-1), np.int64)


def agreement(reference: Array, found: Array, slack: Array | float = 0.0) -> float:
    """The share of samples with the same class. Classes within `slack` of the best are tied, and a tie agrees with
    each of them, unless its classes are far apart on the other side; `slack` may differ per sample."""
    same = predicted_classes(reference) == predicted_classes(found)
    room = along_samples(np.asarray(slack, np.float64), same.ndim)
    if reference.shape[-1] == 1:
        same |= np.abs(reference[..., 0].astype(np.float64) - 0.5) <= room
    else:
        same |= (_best(reference, room) & _best(found, room)).any(axis=-1)
        same &= _may_tie(reference, found, room) & _may_tie(found, reference, room)
    return float(np.mean(same)) if same.size else 1.0


def _may_tie(tied: Array, other: Array, slack: Array) -> npt.NDArray[np.bool_]:
    """Whether classes that are equal and best on one side have at least half of the best on the other: integers are
    coarse, but outputs that are all the same choose no class."""
    equal = _best(tied, np.zeros_like(slack))
    values = other.astype(np.float64)
    best = values.max(axis=-1)
    least = np.where(equal, values, np.inf).min(axis=-1)
    return np.asarray((equal.sum(axis=-1) < 2) | (least >= best - np.maximum(np.abs(best) / 2, slack)))


def _best(values: Array, slack: Array) -> npt.NDArray[np.bool_]:
    """Marks the best class of each sample, and those tied with it."""
    exact = values.astype(np.float64)
    return np.asarray(exact >= exact.max(axis=-1, keepdims=True) - slack[..., None])


def fewest(count: int, share: float) -> int:
    """The required successes among `count` trials with success probability `share`: one correct program in twenty
    would have fewer."""
    if not 0.0 < share < 1.0:
        return count if share >= 1.0 else 0
    term, below = count * math.log(share), 0.0
    for failed in range(count):
        below += math.exp(term)
        if below >= CONFIDENCE:
            return count - failed
        term += math.log((count - failed) / (failed + 1) * (1.0 - share) / share)
    return 0


def label_classes(labels: Array, predicted: Array) -> npt.NDArray[np.int64]:
    """Labels as class numbers, from numbers or one-hot rows."""
    if labels.shape == predicted.shape:
        return np.asarray(labels, np.int64)
    if labels.shape == (*predicted.shape, 1):
        return np.asarray(labels[..., 0], np.int64)
    if labels.ndim == predicted.ndim + 1 and labels.shape[:-1] == predicted.shape:
        return np.asarray(np.argmax(labels, axis=-1), np.int64)
    raise ValueError(f"labels of shape {labels.shape} do not fit outputs of shape {predicted.shape}")


def accuracy(labels: Array, values: Array) -> float:
    """The share of samples whose predicted class is their label."""
    predicted = predicted_classes(values)
    right = predicted == label_classes(labels, predicted)
    return float(np.mean(right)) if right.size else 0.0


def confusion_matrix(labels: Array, values: Array) -> npt.NDArray[np.int64]:
    """Counts: one row per label, one column per predicted class."""
    predicted = predicted_classes(values)
    actual = label_classes(labels, predicted)
    classes = max(2, values.shape[-1])
    if actual.max(initial=0) >= classes:
        place = [int(index) for index in np.argwhere(actual >= classes)[0]]
        raise ValueError(
            f"there is a label {actual[tuple(place)]}, but the model's classes are 0 to {classes - 1}: at {place}"
        )
    matrix = np.zeros((classes, classes), np.int64)
    np.add.at(matrix, (actual.reshape(-1), predicted.reshape(-1)), 1)
    return matrix


@dataclass(frozen=True)
class Statistics:
    """Statistics of a tensor's values or of run times."""

    min: float
    max: float
    mean: float
    std: float


def statistics(values: Array) -> Statistics:
    numbers = _flat(values)
    if numbers.size == 0:
        return Statistics(0.0, 0.0, 0.0, 0.0)
    return Statistics(float(numbers.min()), float(numbers.max()), float(numbers.mean()), float(numbers.std()))

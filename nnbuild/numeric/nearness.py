"""Whether computed numbers are within a tolerance of the expected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ENOUGH = 20
"""Samples from which on a loss is told."""


def near(wanted: Array, found: Array, tolerance: Array | float = 0.0) -> npt.NDArray[np.bool_]:
    """Whether each number errs by at most `tolerance`, absolute; a tolerance per sample follows the first axis.

    Values that are not finite must be of the same kind: an infinity of the same sign, or NaN on both sides. Differences
    of integers are computed in integers.
    """
    same = np.asarray((wanted == found) | ((wanted != wanted) & (found != found)))
    allowed = along_samples(np.asarray(tolerance, np.float64), same.ndim)
    if not np.any(allowed):
        return same
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(np.asarray(found, np.float64) - np.asarray(wanted, np.float64))
    return same | (np.isfinite(wanted) & np.isfinite(found) & (error <= allowed))


def along_samples(values: Array, rank: int) -> Array:
    """One number per sample, in a shape that broadcasts over the samples' own axes."""
    return values.reshape(*values.shape, *(1,) * (rank - values.ndim)) if values.ndim else values


def lost_values(reference: Array, found: Array) -> tuple[int, ...]:
    """The places along the last axis whose variation is lost: the error has more than half its energy."""
    wanted, given = (
        np.asarray(v, np.float64).reshape(-1, v.shape[-1] if v.ndim > 1 else 1) for v in (reference, found)
    )
    if len(wanted) < ENOUGH or not np.isfinite([wanted, given]).all():
        return ()
    varied = np.square(wanted - wanted.mean(axis=0)).sum(axis=0)
    lost = (np.square(given - wanted).sum(axis=0) > varied / 2) & (varied > 0)
    return tuple(np.flatnonzero(lost).tolist())


def values_of(samples: Array) -> int:
    """The size of the last axis of each sample."""
    return samples.shape[-1] if samples.ndim > 1 else 1

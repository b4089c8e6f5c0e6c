"""Whether a number is near enough to the one that is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def near(wanted: Array, found: Array, tolerance: Array | float = 0.0) -> npt.NDArray[np.bool_]:
    """For every number whether it errs by at most `tolerance`, absolute; given one for each sample, the first axis.

    What is not finite is judged by its kind: an infinity of the same sign, or no number on both sides. A difference
    of integers is one of integers.
    """
    same = np.asarray((wanted == found) | ((wanted != wanted) & (found != found)))
    allowed = along_samples(np.asarray(tolerance, np.float64), same.ndim)
    if not np.any(allowed):
        return same
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(np.asarray(found, np.float64) - np.asarray(wanted, np.float64))
    return same | (np.isfinite(wanted) & np.isfinite(found) & (error <= allowed))


def along_samples(values: Array, rank: int) -> Array:
    """One number for each sample, in a shape that spreads over the samples' own axes."""
    return values.reshape(*values.shape, *(1,) * (rank - values.ndim)) if values.ndim else values

"""Frames of an axis: pieces of one length, a step apart, which exporters gather by constant indices."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array

MOST_PARTS = 64
"""Frames are as many slices as the common divisor of their length and step has in a length."""


def frames_of(indices: Array) -> tuple[int, int, int] | None:
    """The first index, the length and the step of indices [count, length] that are those of frames."""
    if indices.ndim != 2 or min(indices.shape) < 2:
        return None
    first, step = int(indices[0, 0]), int(indices[1, 0] - indices[0, 0])
    regular = first + np.arange(indices.shape[0])[:, None] * step + np.arange(indices.shape[1])
    return (first, indices.shape[1], step) if step > 0 and (indices == regular).all() else None

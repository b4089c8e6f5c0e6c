"""Converts between samples of windows and streams of rows."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array, Tensor


def rows_of(windows: Array, axis: int) -> Array:
    """The rows of all windows in order; time is the first axis."""
    inside = np.moveaxis(windows, axis + 1, 1)
    return inside.reshape(-1, *inside.shape[2:])


def steps(rows: Array, hop: int, axis: int) -> Array:
    """The same rows grouped by step; an incomplete last step is dropped."""
    count = len(rows) // hop
    return np.moveaxis(rows[: count * hop].reshape(count, hop, *rows.shape[1:]), 1, axis + 1)


def windows(tensor: Tensor, rows: Array, hop: int, axis: int, *, reset_each: bool = False) -> Array:
    """The window at the end of every step, filled with zeros before the first row, or with `reset_each` before each
    step."""
    floats = rows.dtype.kind == "f"
    zero = tensor.quant.zero_point if tensor.quant is not None and not floats else 0
    size, count = tensor.shape[axis], len(rows) // hop
    before = np.full((size, *rows.shape[1:]), zero, rows.dtype)
    if reset_each:
        parts = rows[: count * hop].reshape(count, hop, *rows.shape[1:])
        taken = [np.concatenate([before[hop:], part]) for part in parts]
    else:
        whole = np.concatenate([before, rows])
        taken = [whole[at : at + size] for at in range(hop, count * hop + 1, hop)]
    return np.moveaxis(np.stack(taken), 1, axis + 1)

"""Sparse weights: when kernels that skip zeros are considered, and the encodings they read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.encodings.blocks import Blocks, blocks
from nnbuild.encodings.sparse import Sparse, sparse
from nnbuild.encodings.windows import Windows, windows
from nnbuild.kernels.loops.window import Weighted, window_of
from nnbuild.model.graph import Array
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

DENSE = 0.5
"""Share of nonzero blocks from which skipping the others gains nothing."""

WIDTH = 4
"""Bits of a count of zeros that shares a byte with an index into a codebook."""


def filled_share(matrix: Array, rows: int, depth: int) -> float:
    """The share of nonzero blocks in a matrix [inputs, outputs]."""
    whole = np.pad(matrix, ((0, -matrix.shape[0] % depth), (0, -matrix.shape[1] % rows)))
    there = (whole.reshape(whole.shape[0] // depth, depth, -1, rows) != 0).any(axis=(1, 3))
    return float(there.mean()) if there.size else 1.0


@lru_cache(maxsize=64)
def nonzero(site: Site) -> float:
    """The share of nonzero weights; that of nonzero blocks is no smaller."""
    weights = site.constant("kernel")
    return float(np.count_nonzero(weights) / max(1, weights.size))


@lru_cache(maxsize=64)
def distinct(site: Site) -> int:
    """The number of distinct weights, including the zero used for padding."""
    weights = site.constant("kernel").reshape(-1).astype(np.int64)
    if np.abs(weights).max(initial=0) >= 1 << 15:
        return len(np.union1d(weights, 0))
    often = np.bincount(weights + (1 << 15), minlength=(1 << 15) + 1)
    return int(np.count_nonzero(often)) + int(often[1 << 15] == 0)


@lru_cache(maxsize=64)
def blocks_of(site: Site[Weighted], rows: int, depth: int, unit: int = 1, turn: int = 1) -> Blocks:
    """A dense layer's weights as blocks."""
    return blocks(site.constant("kernel"), rows, depth, unit, turn)


@lru_cache(maxsize=64)
def columns_of(site: Site[Weighted]) -> Blocks:
    """A dense layer's weights input by input: each number, and the distance to the next output."""
    return blocks(np.ascontiguousarray(site.constant("kernel").T), 1, 1)


@lru_cache(maxsize=64)
def runs_of(site: Site[Weighted]) -> Sparse:
    """A dense layer's weights by outputs: each number, and the zeros before it."""
    return sparse(site.constant("kernel"), WIDTH)


@lru_cache(maxsize=64)
def windows_of(site: Site[Weighted]) -> Windows | None:
    """A dense layer's weights as windows, two outputs at a time."""
    return windows(site.constant("kernel"))


def refused(site: Site[Weighted], rows: int, depth: int) -> str | None:
    """Why skipping zeros in a dense layer's single row gains nothing or is impossible."""
    kernel = site.constants["kernel"]
    if site.op.kind != "dense" or window_of(site).rows.places != 1:
        return "it computes one row only"
    if kernel.data.dtype.kind != "i" or quant_of(kernel).zero_point != 0:
        return "its weights have a zero point, or are not integers"
    if nonzero(site) > DENSE or filled_share(kernel.data, rows, depth) > DENSE:
        return "too few of its weights are zero"
    return None

"""Weights of which most are zero: when kernels that skip zeros are asked at all, and what they are given."""

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
"""From this share of blocks with anything in them on, nothing is gained by skipping the others."""

WIDTH = 4
"""Bits of a count of zeros where it shares a byte with the place of a number in a codebook."""


def filled_share(matrix: Array, rows: int, depth: int) -> float:
    """The share of blocks of a matrix [inputs, outputs] that hold more than zeros."""
    whole = np.pad(matrix, ((0, -matrix.shape[0] % depth), (0, -matrix.shape[1] % rows)))
    there = (whole.reshape(whole.shape[0] // depth, depth, -1, rows) != 0).any(axis=(1, 3))
    return float(there.mean()) if there.size else 1.0


@lru_cache(maxsize=64)
def nonzero(site: Site) -> float:
    """The share of weights that are not zero; that of blocks with such is no smaller."""
    weights = site.constant("kernel")
    return float(np.count_nonzero(weights) / max(1, weights.size))


@lru_cache(maxsize=64)
def distinct(site: Site) -> int:
    """How many weights there are, with the zero that fills up."""
    weights = site.constant("kernel").reshape(-1).astype(np.int64)
    if np.abs(weights).max(initial=0) >= 1 << 15:
        return len(np.union1d(weights, 0))
    often = np.bincount(weights + (1 << 15), minlength=(1 << 15) + 1)
    return int(np.count_nonzero(often)) + int(often[1 << 15] == 0)


@lru_cache(maxsize=64)
def blocks_of(site: Site[Weighted], rows: int, depth: int, unit: int = 1, turn: int = 1) -> Blocks:
    """Of a dense layer's weights."""
    return blocks(site.constant("kernel"), rows, depth, unit, turn)


@lru_cache(maxsize=64)
def columns_of(site: Site[Weighted]) -> Blocks:
    """Of a dense layer's weights, input by input: each number, and how far it is to that of the next output."""
    return blocks(np.ascontiguousarray(site.constant("kernel").T), 1, 1)


@lru_cache(maxsize=64)
def runs_of(site: Site[Weighted]) -> Sparse:
    """Of a dense layer's weights, by outputs: each number and the zeros before it."""
    return sparse(site.constant("kernel"), WIDTH)


@lru_cache(maxsize=64)
def windows_of(site: Site[Weighted]) -> Windows | None:
    """Of a dense layer's weights, two outputs at a time."""
    return windows(site.constant("kernel"))


def refused(site: Site[Weighted], rows: int, depth: int) -> str | None:
    """Why skipping the zeros of a dense layer's single row would gain nothing, or cannot be done."""
    kernel = site.constants["kernel"]
    if site.op.kind != "dense" or window_of(site).rows.places != 1:
        return "it computes one row of a dense layer"
    if kernel.data.dtype.kind != "i" or quant_of(kernel).zero_point != 0:
        return "its weights have a zero point, or are no integers"
    if nonzero(site) > DENSE or filled_share(kernel.data, rows, depth) > DENSE:
        return "too few of its weights are zero"
    return None

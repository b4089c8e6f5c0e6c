"""Constants of which a file stores only what is not zero: a tree of coordinates, expanded when the file is read.

Each level of the tree is an axis, or the place in a block along one. A dense level has all its indices, a sparse one
lists those of each node above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nnbuild.model.graph import Array, Shape

DENSE, SPARSE = 0, 1
MOST = 2**24
"""Numbers of a tensor, and nodes of a level: a small file must not claim much memory."""
VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}


@dataclass(frozen=True, eq=False)
class Level:
    """Where `segments` are given, node n has the indices from segments[n] to segments[n + 1]; otherwise all."""

    axis: int
    size: int
    segments: Array | None = None
    indices: Array | None = None


def levels_of(schema: Any, raw: Any) -> tuple[list[Level], tuple[int, ...]]:
    """The tree of a tensor's sparsity, and the axes of its blocks; ValueError where it is damaged."""
    order = [int(i) for i in raw.TraversalOrderAsNumpy()] if raw.TraversalOrderLength() else []
    blocks = tuple(int(i) for i in raw.BlockMapAsNumpy()) if raw.BlockMapLength() else ()
    if raw.DimMetadataLength() != len(order):
        raise ValueError
    return [_level(schema, axis, raw.DimMetadata(i)) for i, axis in enumerate(order)], blocks


def _level(schema: Any, axis: int, raw: Any) -> Level:
    if raw.Format() == DENSE:
        return Level(axis, int(raw.DenseSize()))
    if raw.Format() != SPARSE:
        raise ValueError
    segments = _numbers(schema, raw.ArraySegmentsType(), raw.ArraySegments())
    return Level(axis, 0, segments, _numbers(schema, raw.ArrayIndicesType(), raw.ArrayIndices()))


def _numbers(schema: Any, kind: int, table: Any) -> Array:
    if kind not in VECTORS or table is None:
        raise ValueError
    found = vars(schema)[VECTORS[kind]]()
    found.Init(table.Bytes, table.Pos)
    return np.asarray(found.ValuesAsNumpy() if found.ValuesLength() else [], np.int64)


def expanded(levels: list[Level], blocks: tuple[int, ...], shape: Shape, stored: Array) -> Array:
    """The whole tensor; ValueError where the tree does not match it, or is too large."""
    rank = len(shape)
    if prod(shape) > MOST:
        raise ValueError
    if sorted(level.axis for level in levels) != list(range(rank + len(blocks))) or not all(b < rank for b in blocks):
        raise ValueError
    places: dict[int, Array] = {}
    nodes = 1
    for level in levels:
        counts, indices = _children(level, nodes)
        places = {axis: np.repeat(place, counts) for axis, place in places.items()} | {level.axis: indices}
        nodes = len(indices)
    sizes = {level.axis: level.size for level in levels}
    for inner, axis in enumerate(blocks, rank):
        places[axis] = places[axis] * sizes[inner] + places[inner]
    flat = np.ravel_multi_index([places[axis] for axis in range(rank)], shape)
    if len(stored) != nodes:
        raise ValueError
    whole = np.zeros(shape, stored.dtype)
    whole.reshape(-1)[flat] = stored
    return whole


def _children(level: Level, nodes: int) -> tuple[Array, Array]:
    """How many nodes there are below each, and their indices."""
    if level.segments is None or level.indices is None:
        if not 0 < level.size <= MOST // max(1, nodes):
            raise ValueError
        return np.full(nodes, level.size), np.tile(np.arange(level.size), nodes)
    counts = np.diff(level.segments)
    fits = len(counts) == nodes and level.segments[0] == 0 and level.segments[-1] == len(level.indices)
    if not fits or (counts < 0).any() or (level.indices < 0).any():
        raise ValueError
    return counts, level.indices

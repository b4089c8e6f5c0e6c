"""Tiles a step for core-local memories: each tile computes on copies of all that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from nnbuild.kernels.contract import Demand
from nnbuild.ops.site import Site
from nnbuild.plan.byte_ranges import ByteRanges, Span, all_bytes, byte_ranges
from nnbuild.plan.chain import Work
from nnbuild.plan.cores import OwnMemory
from nnbuild.plan.split import Borders, divisible

LINE = 64
"""Alignment of constants, here as in their storage."""
COPY_ALIGNMENT = 16
"""A copy keeps its address modulo this, so that alignment is preserved."""


@dataclass(frozen=True)
class Tile:
    """A range of work items computed at once, and the bytes copied for it."""

    begin: int
    end: int
    ranges: ByteRanges
    slice: int = 0
    """The slice of the constants that it needs."""


@dataclass(frozen=True)
class Tiling:
    """The tiles of each part, and the offsets in a core's local memory: constants (or a slice of them) first, then
    scratch and each tensor. `writes` is empty where outputs are written straight to shared memory, since it is not
    known which bytes each part writes."""

    parts: tuple[tuple[Tile, ...], ...]
    constants: int
    scratch: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    size: int
    sliced: bool = False

    @property
    def copied(self) -> tuple[int, ...]:
        """Bytes that each part copies."""
        return tuple(
            self.constants * len({tile.slice for tile in tiles}) + sum(map(self._of_tile, tiles))
            for tiles in self.parts
        )

    @property
    def tiled(self) -> bool:
        """Whether a part is computed in several tiles."""
        return any(len(tiles) > 1 for tiles in self.parts)

    def _of_tile(self, tile: Tile) -> int:
        spans = (*tile.ranges.reads, *(tile.ranges.writes if self.writes else ()))
        return sum(span.size for span in spans)


def tile_step(work: Work, borders: Borders, memory: OwnMemory) -> Tiling | str:
    """The fewest tiles that fit, or why the step is computed in shared memory."""
    if work.others:
        return "it has kernels of several instruction sets"
    return _tile(work.site, work.choice.demand, borders, memory)


@lru_cache(maxsize=1024)
def _tile(site: Site, kernel: Demand, borders: Borders, memory: OwnMemory) -> Tiling | str:
    demand, count = divisible(site, kernel), 1
    parts = tuple(pairwise(borders or (0, demand.extent)))
    first = byte_ranges(site, demand, 0, min(demand.grain, demand.extent))
    constants = sum(_aligned(data.nbytes, LINE) for data in kernel.packed.values()) // kernel.slices
    while True:
        tiles = [_tiles(site, demand, part, count) for part in parts]
        alone = first is None and len(parts) == 1 and len(tiles[0]) == 1
        found = _layout(site, tiles, constants, kernel, alone or (first is not None and bool(first.writes)))
        if found.size <= memory.size:
            return found
        if first is None or all(tile.end - tile.begin <= demand.grain for part in tiles for tile in part):
            least = constants + kernel.scratch
            what = "its constants and scratch alone are" if 2 * least > memory.size else "it needs"
            size = least if 2 * least > memory.size else found.size
            return f"{what} {size:,} bytes, and a core's own memory has {memory.size:,}"
        count *= 2


def _tiles(site: Site, demand: Demand, part: tuple[int, int], count: int) -> tuple[Tile, ...]:
    """The part in `count` tiles of about equal size, as far as its work items allow; no tile needs two slices of the
    constants."""
    each = demand.extent // demand.slices
    found: list[Tile] = []
    for number in range(part[0] // each, -(-part[1] // each)):
        begin, end = max(part[0], number * each), min(part[1], (number + 1) * each)
        units = -(-(end - begin) // demand.grain)
        many = min(count, units)
        borders = [min(end, begin + units * n // many * demand.grain) for n in range(many + 1)]
        found += [Tile(a, b, byte_ranges(site, demand, a, b) or all_bytes(site), number) for a, b in pairwise(borders)]
    return tuple(found)


def _layout(site: Site, parts: list[tuple[Tile, ...]], constants: int, kernel: Demand, writes_there: bool) -> Tiling:
    """Offsets one after the other: all of it is needed at the same time."""
    tiles = [tile for part in parts for tile in part]
    at = constants + _aligned(kernel.scratch, LINE)
    reads: list[int] = []
    writes: list[int] = []
    for index in range(len(site.reads)):
        reads.append(at)
        at += max(_copy_size(tile.ranges.reads[index]) for tile in tiles)
    for index in range(len(site.writes) if writes_there else 0):
        writes.append(at)
        at += max(_copy_size(tile.ranges.writes[index]) for tile in tiles)
    return Tiling(tuple(parts), constants, constants, tuple(reads), tuple(writes), at, kernel.slices > 1)


def _copy_size(span: Span) -> int:
    return _aligned(span.begin % COPY_ALIGNMENT + span.size, COPY_ALIGNMENT)


def _aligned(size: int, to: int) -> int:
    return -(-size // to) * to

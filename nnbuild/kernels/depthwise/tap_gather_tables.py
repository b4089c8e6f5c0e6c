"""The tables of `tap_gather`: the addresses of taps and outputs of a depthwise convolution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product as pairs

import numpy as np

from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.cross_lane.scaling import TotalScaling
from nnbuild.kernels.loops.window import Windowed
from nnbuild.model.graph import Array

TOTALS = 8
FARTHEST = 1 << 16
"""Bytes from the first input or output of a tile to the last."""
KEPT = 4
"""Weights that stay in registers."""
MOST_TILES = 40
"""Tiles of one table."""
GROUPS = (16, 8, 4, 2, 1)
"""Channels that may be copied together."""
ROOM = 24 * 1024
"""Bytes of a copy up to which the number of channels is not reduced."""


@dataclass(frozen=True)
class Patch:
    """A tile of `down` by `across` outputs; `times` consecutive ones are computed together, from a table of `rows` rows
    of tiles."""

    down: int
    across: int
    times: int
    rows: int

    @property
    def outputs(self) -> list[tuple[int, int]]:
        """(row, column) of one tile."""
        return list(pairs(range(self.down), range(self.across)))


@dataclass(frozen=True, eq=False)
class TapGatherTables(Windowed):
    v: Vectors
    ending: TotalScaling
    patch: Patch

    @property
    def lanes(self) -> int:
        return self.v.lanes * 4

    @property
    def multiplier(self) -> int:
        """Output channels of an input channel."""
        return self.window.filters // self.window.channels

    @property
    def area(self) -> int:
        """Positions of the padded plane."""
        return self.window.rows.padded * self.window.columns.padded

    @cached_property
    def group(self) -> int:
        """Channels copied together."""
        channels = self.window.channels
        return next(size for size in GROUPS if (self.area * size <= ROOM and size < 2 * channels) or size == 1)

    @cached_property
    def positions(self) -> list[tuple[int, int]]:
        """Every input under a patch."""
        rows, columns = self.window.rows, self.window.columns
        taps = pairs(range(rows.kernel), range(columns.kernel))
        found = {
            (y * rows.stride + ky * rows.dilation, x * columns.stride + kx * columns.dilation)
            for (ky, kx), (y, x) in pairs(taps, self.patch.outputs)
        }
        return sorted(found)

    @property
    def vectors(self) -> int:
        return -(-len(self.positions) // self.lanes)

    def _lane(self, index: int) -> int:
        """The lane of an input in its vector, each half of which is gathered separately."""
        half = self.lanes // 2
        return index % half * 2 + index // half

    @cached_property
    def tiles(self) -> list[tuple[int, int]]:
        """The first output of each tile of the table, repeated to fill the last unit."""
        rows, columns, patch = self.window.rows, self.window.columns, self.patch
        found = [
            (min(y * patch.down, rows.places - patch.down), min(x, columns.places - patch.across))
            for y in range(patch.rows)
            for x in range(0, columns.places, patch.across)
        ]
        return found + found[-1:] * (-len(found) % patch.times)

    @property
    def blocks(self) -> int:
        """How often the table is used; the last time it may be moved back."""
        return -(-self.window.rows.places // (self.patch.rows * self.patch.down))

    @cached_property
    def table(self) -> list[int]:
        """For every unit the addresses of its inputs, vector by vector, and of its outputs; unused lanes repeat the
        first input."""
        rows, columns = self.window.rows, self.window.columns
        found: list[int] = []
        for first in range(0, len(self.tiles), self.patch.times):
            unit = self.tiles[first : first + self.patch.times]
            for y, x in unit:
                top, left = y * rows.stride, x * columns.stride
                places = [((top + y) * columns.padded + left + x) * self.group for y, x in self.positions]
                found += places + places[:1] * (self.vectors * self.lanes - len(places))
            targets = [
                ((y + down) * columns.places + x + across) * self.window.filters
                for y, x in unit
                for down, across in self.patch.outputs
            ]
            whole = targets + targets[-1:] * (-len(targets) % 4)
            found += [place for two in zip(whole[:4], whole[4:] or whole[:4], strict=True) for place in two]
        return found

    @property
    def record(self) -> int:
        """Table entries of a unit."""
        return self.patch.times * self.vectors * self.lanes + TOTALS

    def _weights(self) -> Array:
        """[channel][output of a patch][vector][lane]."""
        rows, columns, channels = self.window.rows, self.window.columns, self.window.filters
        kernel = self.site.constant("kernel").reshape(rows.kernel, columns.kernel, channels)
        found = np.zeros((channels, len(self.patch.outputs), self.vectors, self.lanes), np.int8)
        numbers = {position: number for number, position in enumerate(self.positions)}
        for output, (y, x) in enumerate(self.patch.outputs):
            for ky, kx in pairs(range(rows.kernel), range(columns.kernel)):
                at = (y * rows.stride + ky * rows.dilation, x * columns.stride + kx * columns.dilation)
                vector, index = divmod(numbers[at], self.lanes)
                found[:, output, vector, self._lane(index)] = kernel[ky, kx]
        return found

    @cached_property
    def used(self) -> list[list[int]]:
        """The vectors that contain taps of each output of a patch."""
        rows, columns = self.window.rows, self.window.columns
        numbers = {position: number for number, position in enumerate(self.positions)}
        return [
            sorted(
                {
                    numbers[y * rows.stride + ky * rows.dilation, x * columns.stride + kx * columns.dilation]
                    // self.lanes
                    for ky, kx in pairs(range(rows.kernel), range(columns.kernel))
                }
            )
            for y, x in self.patch.outputs
        ]

    @cached_property
    def products(self) -> list[tuple[int, int]]:
        """(vector, output) of a tile."""
        return [(vector, o) for vector in range(self.vectors) for o, used in enumerate(self.used) if vector in used]

    def cost(self) -> float:
        """Instructions for all outputs of a channel."""
        patch = self.patch
        loads = 0 if len(self.products) <= KEPT else len(self.products)
        joined = -(-len(patch.outputs) * patch.times // 4)
        unit = patch.times * (5 * self.vectors + len(self.products) + loads) + joined * 7 + 12
        return self.blocks * (len(self.tiles) // patch.times * unit + 6)

"""The common part of all input layouts for `tile`: the best tile, and the calls for all channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Names
from nnbuild.kernels.cross_lane.scaling import TotalScaling
from nnbuild.kernels.cross_lane.tile import SINGLE_POSITION, Tile, Walk, call, depth_of
from nnbuild.kernels.loops.window import Windowed
from nnbuild.model.graph import Array
from nnbuild.ops.integer import quant_of

FARTHEST = 1 << 16
"""Bytes that the outputs of a tile must lie within."""
POSITIONS = 4


@dataclass(frozen=True)
class Run:
    """`count` blocks of a tile's channels from `first` on, and the offset of their constants."""

    tile: Tile
    count: int
    first: int
    weights: int
    scaling: int


@dataclass(frozen=True, eq=False)
class CrossLane(Windowed):
    """A line of `places` outputs, `apart` elements apart."""

    v: Vectors
    ending: TotalScaling

    @property
    def dtype(self) -> str:
        return self.site.inputs[0].dtype

    @property
    def weight_type(self) -> str:
        return self.site.constant("kernel").dtype.name

    @property
    def size(self) -> int:
        return int(np.dtype(self.dtype).itemsize)

    @property
    def kind(self) -> str:
        return C_TYPES[self.dtype]

    @property
    def zero(self) -> int:
        return quant_of(self.site.inputs[0]).zero_point

    @property
    def slack(self) -> int:
        """Elements behind a copy that the last vector may read."""
        return self.v.lanes * depth_of(self.dtype, self.weight_type)

    @property
    def walk(self) -> Walk:
        raise NotImplementedError

    @property
    def places(self) -> int:
        raise NotImplementedError

    @property
    def apart(self) -> int:
        raise NotImplementedError

    @cached_property
    def tile(self) -> Tile:
        alone = min(SINGLE_POSITION, -(-self.window.share // 4) * 4)
        draft = Tile(self.v, self.dtype, self.weight_type, self.walk, 1, alone, self.apart, self.ending, alone)
        most = min(POSITIONS, self.places) if (POSITIONS - 1) * self.apart * self.size + 2 < FARTHEST else 1
        several = [replace(draft, positions=p, channels=c, real=c) for p in range(2, most + 1) for c in (1, 2)]
        fitting = [tile for tile in several if tile.channels <= self.window.share]
        return min([draft, *fitting], key=self._cost)

    def _cost(self, tile: Tile) -> float:
        blocks = -(-self.window.share // tile.channels)
        return -(-self.places // tile.positions) * blocks * tile.cycles()

    def runs(self) -> list[Run]:
        """The runs of one group."""
        tile, share = self.tile, self.window.share
        count, rest = divmod(share, tile.channels)
        found = [Run(tile, count, 0, 0, 0)] if count else []
        if rest:
            last = replace(tile, real=rest, channels=-(-rest // 4) * 4 if tile.channels > 2 else rest)
            columns = len(self.ending.columns) * tile.channels
            found.append(Run(last, 1, share - rest, count * tile.weights, count * columns))
        return found

    def packed(self) -> dict[str, Array]:
        window = self.window
        kernel = self.site.constant("kernel").reshape(-1, self.walk.run, window.filters)
        weights, scaling = [], []
        for group in range(window.groups):
            for run in self.runs():
                first = group * window.share + run.first
                own = slice(first, first + (run.count - 1) * run.tile.channels + run.tile.real)
                weights.append(run.tile.pack(kernel[:, :, own]))
                scaling.append(self.ending.part(own).pack(run.tile.channels))
        return {"kernel": np.concatenate(weights), "scaling": np.concatenate(scaling)}

    def _weights(self, names: Names) -> str:
        """The weights in their own type: bytes that are multiplied by bytes are packed as words."""
        packed = names.packed["kernel"]
        return f"(const int8_t *){packed}" if depth_of(self.dtype, self.weight_type) == 4 else packed

    def _calls(self, w: Writer, names: Names, source: str, to: str) -> None:
        """All channels of the tile at these inputs and outputs."""
        groups = self.window.groups
        if groups == 1:
            self._group(w, source, to, self._weights(names), names.packed["scaling"])
            return
        weights = sum(run.count * run.tile.weights for run in self.runs())
        scaling = sum(run.count * len(self.ending.columns) * run.tile.channels for run in self.runs())
        with w.loop("group", groups):
            self._group(
                w,
                f"{source} + group * {self.window.depth}",
                f"{to} + group * {self.window.share}",
                f"{self._weights(names)} + group * {weights}",
                f"{names.packed['scaling']} + group * {scaling}",
            )

    def _group(self, w: Writer, source: str, to: str, weights: str, scaling: str) -> None:
        for run in self.runs():
            pointers = (
                source,
                f"{weights} + {run.weights}",
                f"{scaling} + {run.scaling}",
                f"{to} + {run.first}",
            )
            call(w, run.tile, pointers, run.count, run.count)

    def _place(self, tile: str) -> str:
        """The first position of a tile; the last tile is moved back."""
        size, last = self.tile.positions, self.places - self.tile.positions
        return tile if self.places % size == 0 else f"{tile} < {last} ? {tile} : {last}"

    def _tiles(self, w: Writer, names: Names, source: str, to: str) -> None:
        """All tiles of a line."""
        with w.loop("tile", self.places, step=self.tile.positions):
            w(f"const int32_t x = {self._place('tile')};")
            w.bill(4)
            self._calls(w, names, f"{source} + x * {self.walk.step}", f"{to} + x * {self.apart}")

    def _copy(self, w: Writer, to: str, source: str, count: str, trips: float) -> None:
        w.bill(3 * ceil(trips * self.size / 16))
        row, of = ("lift", (0,)) if self.size == 1 else ("copy", ())
        w(f"{self.v.call(w, row, to, source, count, of=of)};")

    def _fill(self, w: Writer, to: str, count: str, trips: float) -> None:
        w.bill(2 * ceil(trips * self.size / 16))
        w(f"{self.v.call(w, 'fill', to, count, str(self.zero), of=(4 // self.size,))};")

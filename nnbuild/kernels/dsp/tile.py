"""The tile: the sums of one or two positions for a run of output channels, scaled and stored; and its constants.

A block's starts and scaling constants lie before and behind its weights. Where several steps share the weights, they
lie in an array of their own, as they differ by step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Row
from nnbuild.kernels.dsp.assembly_tile import Lines
from nnbuild.kernels.dsp.scaling import ANY, Scaling, most_left, plain_form, scaling_by
from nnbuild.kernels.dsp.weight_layouts import RAISED, WORD, Layout, Packed, doublets, in_pairs, size_of
from nnbuild.kernels.lanes.layer_sums import Sums, sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.kernels.parts.residual import Residual
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import Layer
from nnbuild.numeric.requant_product import LONG, Form
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.site import Site

LOAD = Row("int32_t {0} = {1};", 0.6, 1)
"""A load among several neighbouring words, some of which are loaded in pairs."""
LONGEST = 36
"""Pairs of inputs up to which the tile is unrolled."""
SHORT, SHORT_ROW = 14, 24
"""The same limit where the code must fit the cache of a slow flash, for two positions and for one."""
WIDEST = 4
"""Channels of a block: with two positions, as many sums as there are registers for."""


@dataclass(frozen=True)
class Run:
    """`count` blocks of `width` channels."""

    width: int
    count: int


def runs(channels: int, widest: int = WIDEST) -> list[Run]:
    """Divides output channels into blocks, as wide as possible, with a narrower one for the remainder."""
    whole, rest = divmod(channels, widest)
    return [Run(width, count) for width, count in ((widest, whole), (rest, 1)) if width and count]


@dataclass(frozen=True, eq=False)
class Tile:
    """What all blocks of an operation share.

    alike: all channels have the same scaling constants, stored once per block.
    """

    layout: Layout
    scaling: Scaling
    pairs: int
    positions: int
    beside: Residual | None = None
    alike: bool = False
    longest: int = LONGEST
    in_ram: bool = False
    """The weights lie in the same memory as the inputs, so that loads of both overlap."""
    lines: Lines | None = None
    shared: bool = False
    """Several steps share its weights, so that their starts and scaling constants lie apart."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The scaling columns stored for every channel."""
        return tuple(self.scaling.columns)

    @property
    def pointers(self) -> tuple[str, ...]:
        """To the outputs of every position, and to what is added to them."""
        names = ("to", "beside") if self.beside else ("to",)
        return tuple(f"{name}{position}" for name in names for position in range(self.positions))

    @property
    def source(self) -> str:
        """The pointer to starts and scaling constants."""
        return "scales" if self.shared else "k"

    @property
    def arrays(self) -> dict[str, str]:
        """The roles of the packed arrays, by the pointers to them."""
        return {"k": "kernel"} | ({"scales": "scales"} if self.shared else {})

    def sizes(self, width: int) -> tuple[int, ...]:
        """int64 of a block in each array: the starts of its sums, the weights, then the roles of every channel."""
        weights, others = size_of(self.layout, self.pairs, width), -(-width // 2) + self.constants_size(width)
        return (weights, others) if self.shared else (weights + others,)

    def constants_size(self, width: int) -> int:
        """int64 of a block's scaling constants."""
        return -(-len(self.roles) * (1 if self.alike else width) // 2)


@lru_cache(maxsize=256)
def scaling_of(layout: Layout, site: Site[Weighted]) -> Scaling | str:
    """The scaling of a site's sums in this layout, or why there is none."""

    def forms(layer: Layer) -> list[Form]:
        left = RAISED if isinstance(layout, Packed) else plain_form(layer).left if site.shared else None
        level = [] if layer.signed else [Form(level=ANY, left=left)]
        long = [LONG] if site.outputs[0].dtype == "int16" else []
        return [*level, plain_form(layer), Form(below=None, left=left), *long]

    sums = sums_of(site)
    most = most_left(sums.largest_weight)
    return layout.refusal(sums) or scaling_by(site, forms, most, layout.room(len(most)))


def unrolled(pairs: int, longest: int = LONGEST) -> int:
    """Pairs per iteration of the inner loop: an even number, all of them where they are few."""
    if pairs <= longest:
        return pairs
    fitting = [size for size in range(longest // 4 * 2, longest + 1, 2) if pairs % size == 0]
    return max(fitting, default=longest - 4)


def pack(tile: Tile, sums: Sums, dtype: str, share: int) -> dict[str, Array]:
    """The constants that a tile reads, block by block; `share` channels form a group."""
    return packed(tile, sums, in_pairs(sums.weights, dtype), share)


def packed(tile: Tile, sums: Sums, pairs: Ints, share: int, widest: int = WIDEST) -> dict[str, Array]:
    """The same for weights [pairs, 2, channels] in the order in which they are read."""
    start = sums.start - tile.scaling.centre
    parts: dict[str, list[Array]] = {pointer: [] for pointer in tile.arrays}
    for own in _blocks(len(start), share, widest):
        scaling = tile.scaling.part(own)
        parts[tile.source].append(doublets(tile.layout.start(start[own], scaling) & WORD))
        parts["k"].append(tile.layout.pack(pairs[:, :, own], scaling))
        each = [scaling.columns[role] & WORD for role in tile.roles]
        if each:
            parts[tile.source].append(doublets(np.stack(each, axis=1)))
    return {role: np.concatenate(parts[pointer]) for pointer, role in tile.arrays.items()}


def _blocks(channels: int, share: int, widest: int) -> Iterator[slice]:
    """The channels of every single block, group by group."""
    for group in range(0, channels, share):
        first = group
        for run in runs(share, widest):
            for _ in range(run.count):
                yield slice(first, first + run.width)
                first += run.width

"""Integer convolutions and dense layers on sets that sum products across their lanes, many totals at a time.

A tile is a few positions by a few channels. Where neighbouring positions are whole vectors apart they share inputs:
each vector is loaded once and multiplied by every tap that meets it. Four positions of one channel then form a vector
that is scaled by a single number; a single position has channels in the lanes instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, product

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.integer_ops import TAPS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.cross_lane.scaling import TotalScaling
from nnbuild.model.graph import Array

HELD = 3
"""Taps whose weights stay in registers while inputs stream by."""
UNROLLED = 40
"""Vectors of inputs up to which the tile is unrolled."""
TURN = 8
"""Vectors per iteration, where there are more."""
Place = tuple[str, int]
"""A pointer and an offset."""
REACH = 508
"""The largest offset of a load of words, in bytes."""
CALL_CYCLES, BLOCK_CYCLES = 12, 8
SINGLE_POSITION = 8
"""Channels of a tile of a single position."""


@dataclass(frozen=True)
class Walk:
    """The inputs of a position: `rows` times `runs` runs of `run` elements; positions are `step` apart."""

    run: int
    step: int
    runs: int = 1
    run_apart: int = 0
    rows: int = 1
    row_apart: int = 0


@dataclass(frozen=True)
class Chunk:
    """`taps` vectors, `apart` elements from each other, the first of them at `at`."""

    at: int
    taps: int = 1
    apart: int = 0


@dataclass(frozen=True, eq=False)
class Tile:
    """`positions` by `channels` outputs of a walk through inputs, in these types of inputs and weights; the outputs of
    neighbouring positions are `apart` elements apart. Only `real` channels of the last block exist."""

    v: Vectors
    dtype: str
    weight_type: str
    walk: Walk
    positions: int
    channels: int
    apart: int
    ending: TotalScaling
    real: int

    @property
    def depth(self) -> int:
        return depth_of(self.dtype, self.weight_type)

    @property
    def widens(self) -> bool:
        """Whether bytes of inputs become words as they are loaded."""
        return self.dtype == "int8" and self.depth == 2

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return self.v.lanes * self.depth

    @property
    def vectors(self) -> int:
        """Vectors of one run."""
        return -(-self.walk.run // self.width)

    @property
    def aligned(self) -> bool:
        """Whether all inputs are word-aligned."""
        walk = self.walk
        return not self.widens and all(by % self.depth == 0 for by in (walk.step, walk.run_apart, walk.row_apart))

    @property
    def weights(self) -> int:
        """Weights of a block of channels."""
        return self.walk.rows * self.walk.runs * self.vectors * self.width * self.channels

    def segments(self) -> list[tuple[int, int, list[Chunk]]]:
        """A run as (count, distance, chunks): the order in which its inputs are read."""
        n, width = self.vectors, self.width
        classes, rest = divmod(self.walk.step, width)
        shared = self.positions > 1 and rest == 0 and 0 < classes < n
        if shared:
            ordered = [_chunks(range(first, n, classes), width) for first in range(classes)]
            if n > UNROLLED and n % classes == 0:
                return [(classes, width, ordered[0])]
            return [(1, 0, [chunk for some in ordered for chunk in some])]
        single = [Chunk(i * width) for i in range(n)]
        if n <= UNROLLED:
            return [(1, 0, single)]
        turns, rest = divmod(n, TURN)
        found = [(turns, TURN * width, single[:TURN])]
        return [*found, (1, 0, single[turns * TURN :])] if rest else found

    def order(self) -> list[int]:
        """The index in its run of every vector, in the order of `segments`."""
        return [
            time * apart + chunk.at + tap * chunk.apart
            for times, apart, chunks in self.segments()
            for time in range(times)
            for chunk in chunks
            for tap in range(chunk.taps)
        ]

    def pack(self, weights: Array) -> Array:
        """[runs, run, channels] -> blocks of [run][vector][channel][element]; the last block is padded."""
        width, channels = self.width, self.channels
        missing = (self.vectors * width - self.walk.run, -weights.shape[2] % channels)
        whole = np.pad(weights, ((0, 0), (0, missing[0]), (0, missing[1])))
        places = np.array(self.order())[:, None] + np.arange(width)
        found = whole[:, places].reshape(len(whole), len(places), width, -1, channels)
        packed: Array = np.ascontiguousarray(found.transpose(3, 0, 1, 4, 2)).reshape(-1).astype(self.weight_type)
        return packed.view(np.int32) if self.depth == 4 else packed

    def cycles(self) -> float:
        """The estimated cost of a tile."""
        loads = sum(times * _loads(self, chunks) for times, _, chunks in self.segments())
        rows = self.walk.rows * self.walk.runs
        products = rows * self.vectors * self.positions * self.channels
        return products + rows * loads + BLOCK_CYCLES + self.ending.cycles * -(-self.channels * self.positions // 4)


def depth_of(dtype: str, weight_type: str) -> int:
    """Inputs of a lane."""
    return 4 if dtype == weight_type == "int8" else 2


def _chunks(places: range, width: int) -> list[Chunk]:
    parts = np.array_split(np.array(places), -(-len(places) // HELD))
    return [Chunk(int(part[0]) * width, len(part), places.step * width) for part in parts]


def _loads(tile: Tile, chunks: list[Chunk]) -> int:
    return sum(len(_inputs(tile, chunk)) + chunk.taps * tile.channels for chunk in chunks)


def _inputs(tile: Tile, chunk: Chunk) -> dict[int, list[tuple[int, int]]]:
    """Offset of each vector of inputs -> the (position, tap) pairs that read it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for tap in range(chunk.taps):
        for position in range(tile.positions):
            at = chunk.at + tap * chunk.apart + position * tile.walk.step
            found.setdefault(at, []).append((position, tap))
    return dict(sorted(found.items()))


def call(w: Writer, tile: Tile, pointers: tuple[str, str, str, str], blocks: int | str, trips: float) -> None:
    """Prints the call that computes `blocks` blocks of channels; pointers: inputs, weights, constants, outputs."""
    routine, cycles = _routine(w, tile)
    w.bill(CALL_CYCLES + trips * cycles)
    w(f"{w.call(routine, *pointers, str(blocks))};")


def _routine(outside: Writer, tile: Tile) -> tuple[Instruction, float]:
    w = Writer("{prefix}")
    walk, ending = tile.walk, tile.ending
    with w.loop("block", "blocks", trips=1):
        _block(w, tile)
    kinds = [tile.dtype] + ["wide"] * tile.widens
    numbers = (tile.positions, tile.real, tile.apart, *(getattr(walk, name) for name in Walk.__dataclass_fields__))
    name = "_".join([tile.v.name, *kinds, *map(str, numbers), *ending.scaling.marks()])
    outside.helpers |= w.helpers
    inputs, weights = C_TYPES[tile.dtype], C_TYPES[tile.weight_type]
    head = (
        f"void {{name}}(const {inputs} *from, const {weights} *k, const int32_t *scaling, {ending.output_type} *to, "
        "int32_t blocks)"
    )
    return w.routine(name, head), w.cycles


def _block(w: Writer, tile: Tile) -> None:
    walk, names = tile.walk, _names(tile)
    for index, name in enumerate(names):
        tile.v.declare_total(w, name, index)
    numbers = count()
    w()
    if walk.rows * walk.runs * tile.vectors <= UNROLLED:
        started: set[str] = set()
        for row in range(walk.rows):
            middle = _middle(tile)
            ahead = row * walk.row_apart + middle
            start = f"from + {ahead}" if ahead else "from"
            tile.v.declare_pointer(w, C_TYPES[tile.dtype], f"row{row}", start)
            for run in range(walk.runs):
                _run(w, tile, (f"row{row}", run * walk.run_apart - middle), started, numbers)
    else:
        for name in names:
            w(f"{name} = 0;")
        with w.loop("line", walk.rows):
            w(f"const {C_TYPES[tile.dtype]} *row = from + line * {walk.row_apart};")
            with w.loop("tap", walk.runs):
                w(f"const {C_TYPES[tile.dtype]} *run = row + tap * {walk.run_apart};")
                _run(w, tile, ("run", 0), set(names), numbers)
    w()
    tile.ending.emit(w, tile.v, names, (tile.positions, tile.channels), tile.real, tile.apart)
    w(f"to += {tile.real};")
    w.bill(2)


def _middle(tile: Tile) -> int:
    """The offset of the pointer to a row of inputs from which loads reach all of them."""
    walk = tile.walk
    last = (walk.runs - 1) * walk.run_apart + tile.vectors * tile.width + (tile.positions - 1) * walk.step
    reach = REACH // 4 if tile.widens else (REACH if tile.aligned else REACH // 4) * tile.depth // 4
    return last // 2 // tile.width * tile.width if last > reach else 0


def _names(tile: Tile) -> list[str]:
    """The names of totals; those of a channel's positions are neighbours."""
    return [f"sum{channel}{position}" for channel in range(tile.channels) for position in range(tile.positions)]


def _run(w: Writer, tile: Tile, source: Place, started: set[str], numbers: Iterator[int]) -> None:
    for times, apart, chunks in tile.segments():
        if times == 1:
            _unrolled(w, tile, source, chunks, started, numbers)
            continue
        with w.loop("turn", times):
            w(f"const {C_TYPES[tile.dtype]} *part = {source[0]} + {source[1]} + turn * {apart};")
            _unrolled(w, tile, ("part", 0), chunks, started, numbers)


def _unrolled(
    w: Writer, tile: Tile, source: Place, chunks: list[Chunk], started: set[str], numbers: Iterator[int]
) -> None:
    """Unrolled chunks; `numbers` make their variables unique."""
    v, depth, kind = tile.v, tile.depth, TAPS[tile.depth]
    load = "weights" if tile.widens else "aligned" if tile.aligned else "inputs"
    fetch, reach = ("aligned", REACH) if depth == 4 else ("inputs" if tile.widens else "weights", REACH // 4)
    weights = 0
    for chunk in chunks:
        number, held = next(numbers), chunk.taps * tile.channels * tile.width
        if weights and weights + held > reach:
            w(f"k = {v.call(w, 'here', f'k + {weights}', of=(2 if tile.widens else 4,))};")
            weights = 0
        loaded: set[tuple[int, int]] = set()
        for place, met in _inputs(tile, chunk).items():
            x = f"x{number}_{place}"
            v.let(w, kind, x, v.call(w, load, f"{source[0]} + {source[1] + place}", of=(depth,)))
            for (position, tap), channel in product(met, range(tile.channels)):
                name = f"w{number}_{tap}{channel}"
                if (tap, channel) not in loaded:
                    at = weights + (tap * tile.channels + channel) * tile.width
                    v.let(w, kind, name, v.call(w, fetch, f"k + {at}", of=(depth,)))
                    loaded.add((tap, channel))
                total = f"sum{channel}{position}"
                if total in started:
                    w(f"{total} = {v.call(w, 'total', total, x, name, of=(depth,))};")
                else:
                    w(f"{total} = {v.call(w, 'first_total', x, name, of=(depth,))};")
                    started.add(total)
        weights += held
    w(f"k += {weights};")
    w.bill(1)

"""How many output positions and vectors of channels a tile takes: the cost model of all vector convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.isa.ops import FMA_CYCLES, LOAD_CYCLES
from nnbuild.kernels.loops.window import even

LATENCY = 4.5
"""Cycles until an accumulator can be added to again."""
LOADS_PER_CYCLE = 2 / 1.1
NEAR = 384
"""Vectors of weights that stay in the nearest cache while a tile is computed."""
FAR_CYCLES = 2.5
"""Cycles to load another vector of weights from the next cache."""
PER_TILE = 12.0
"""Cycles of a tile's prologue and epilogue, besides those of each sum."""
PER_SUM = 1.0


@dataclass(frozen=True)
class Tile:
    """`pixels` positions by `vectors` vectors of channels; with a fused pool, `area` sums of each.

    together: neighbouring positions in each vector.
    """

    pixels: int
    vectors: int
    area: int = 1
    together: int = 1

    @property
    def outputs(self) -> int:
        return self.pixels * self.together

    @property
    def sums(self) -> int:
        return self.pixels * self.vectors * self.area

    def registers(self, loaded: int = 1) -> int:
        """The registers of a tile; inputs of several steps stay loaded until all are multiplied."""
        return self.sums + self.vectors + (self.pixels * self.area if loaded > 1 else 1)

    def step(self) -> float:
        """Cycles of one step of all products: bound by products, loads or latency."""
        loads = self.pixels * self.area + self.vectors
        return max(self.sums / 2, loads / LOADS_PER_CYCLE, LATENCY)

    def cycles(self, steps: int) -> float:
        far = FAR_CYCLES * self.vectors if self.vectors * steps > NEAR else 0.0
        return max(self.step(), far) * steps + PER_TILE + PER_SUM * self.sums


def stall(positions: int, vectors: int) -> float:
    """Stall cycles of a step, beyond its products and loads."""
    tile = Tile(positions, vectors)
    return max(0.0, tile.step() - tile.sums * FMA_CYCLES - (positions + vectors) * LOAD_CYCLES)


def line_cycles(places: int, tile: Tile, steps: int) -> float:
    """Cycles of a line of outputs, in tiles of this size or one position smaller."""
    parts = even(places, tile.pixels)
    return sum(Tile(size, tile.vectors, tile.area).cycles(steps) * count for size, count in parts)


def best_pixels(places: int, vectors: int, steps: int, registers: int, area: int = 1, loaded: int = 1) -> int:
    """The best number of positions for a number of vectors."""
    tiles = [Tile(pixels, vectors, area) for pixels in range(1, places + 1)]
    fitting = [tile for tile in tiles if tile.registers(loaded) <= registers] or tiles[:1]
    return min(fitting, key=lambda tile: (line_cycles(places, tile, steps), tile.pixels)).pixels


def best_vectors(places: int, needed: Sequence[int], steps: int, registers: int, area: int = 1, loaded: int = 1) -> int:
    """The best number of vectors in a block; the groups need the numbers in `needed`."""

    def cycles(vectors: int) -> float:
        total = 0.0
        for count in needed:
            full, rest = divmod(count, vectors)
            for size, times in ((vectors, full), (rest, 1)):
                if size and times:
                    pixels = best_pixels(places, size, steps, registers, area, loaded)
                    total += times * line_cycles(places, Tile(pixels, size, area), steps)
        return total

    choices = [v for v in range(1, min(8, max(needed)) + 1) if Tile(1, v, area).registers(loaded) <= registers]
    return min(choices or [1], key=lambda vectors: (cycles(vectors), vectors))

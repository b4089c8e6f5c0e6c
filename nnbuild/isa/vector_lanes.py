"""Sums of products in vectors of floats, used by the dot-product loops, for every vector set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.model.graph import Array
from nnbuild.ops.base import Clamp

TOGETHER = 4
"""Vectors of sums that are added in one operation, at most."""
Finish = Callable[[Writer, Vectors, str, str, int], None]
"""(writer, floats, variable, pointer, count) prints the epilogue of a result before it is stored at the pointer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorLanes(Lanes):
    """`depth` neighbouring lanes share an output channel and take as many inputs; they are summed at the end.

    channels: the bias, if there is one. filters: the channels of a layer that all fit one vector, where the sums of
    several positions are joined. times: the lanes that share one of `lane_inputs`.
    """

    floats: Vectors
    bounds: Clamp
    channels: Mapping[str, Array]
    lanes: int
    depth: int
    vectors: int = 1
    finish: Finish | None = None
    filters: int = 0
    times: int = 1
    loaded: int = 1
    input_type: str = "float"
    weight_type: str = "float"
    output_type: str = "float"

    def holding(self, vectors: int) -> VectorLanes:
        """The same for tiles of `vectors` vectors."""
        return replace(self, vectors=vectors)

    def by_lane(self) -> VectorLanes:
        """The same with as many inputs per load as there are lanes, where the set can multiply by one lane."""
        alone = self.depth == 1 and "f_fma_of" in self.floats.spellings
        return replace(self, loaded=self.floats.lanes) if alone else self

    def joining(self, filters: int) -> VectorLanes:
        """The same with the sums of several positions joined."""
        return replace(self, filters=filters)

    @property
    def together(self) -> int:
        """Positions whose channels are joined in one vector."""
        return min(self.depth, TOGETHER) if self.filters else 1

    @property
    def row_constants(self) -> dict[str, Array]:
        """The channels' constants in the layout of such a vector."""
        return {name: np.tile(values, self.together) for name, values in self.channels.items()} if self.filters else {}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        biased = self.channels and self.depth == 1
        self.floats.declare(w, accumulator, self._bias(w, channel) if biased else self.floats.each(w, 0.0))

    def clear(self, w: Writer, accumulator: str) -> None:
        self.floats.declare(w, accumulator, self.floats.each(w, 0.0))

    def combine(self, w: Writer, operation: str, accumulator: str, other: str) -> None:
        w(f"{accumulator} = {self.floats.use(w, operation, accumulator, other)};")

    def _bias(self, w: Writer, channel: str) -> str:
        return self.floats.load(w, f"bias + {channel}", self.lanes)

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.floats.declare(w, name, self.floats.load(w, pointer))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        if self.loaded > 1:
            self.floats.declare(w, name, self.floats.load(w, pointer))
        elif self.depth > 1:
            self.floats.declare(w, name, self.floats.broadcast(w, pointer, self.depth))
        else:
            self.floats.declare_factor(w, name, pointer)

    def lane_inputs(self, w: Writer, name: str, pointer: str, count: int) -> None:
        if self.times == 1:
            value = self.floats.load(w, pointer, count)
        elif count <= self.times:
            value = self.floats.broadcast(w, pointer, 1)
        else:
            value = self.floats.call(w, "f_load_repeated", pointer, of=(self.times, count))
        self.floats.declare(w, name, value)

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        self.floats.accumulate(w, accumulator, name, weights)

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        if self.loaded == 1 and self.depth == 1:
            self.floats.accumulate_by(w, accumulator, name, weights)
        elif self.loaded == 1:
            self.multiply(w, accumulator, name, weights)
        else:
            w(f"{accumulator} = {self.floats.call(w, 'f_fma_of', name, weights, accumulator, of=(step,))};")

    def fetch(self, w: Writer, pointer: str) -> None:
        w(f"{self.floats.call(w, 'fetch', pointer)};")

    def gather(self, w: Writer, accumulator: str, channel: str) -> None:
        """Sums every `depth` lanes into the first ones, and adds the bias, which was left out until then."""
        if self.depth == 1:
            return
        self._added(w, [accumulator], self.lanes)
        if self.channels:
            w(f"{accumulator} = {self.floats.use(w, 'add', accumulator, self._bias(w, channel))};")

    def gather_row(self, w: Writer, accumulators: Sequence[str]) -> None:
        self._added(w, accumulators, self.filters)

    def _added(self, w: Writer, sums: Sequence[str], channels: int) -> None:
        added = self.floats.call(w, "f_join", *sums, of=(self.depth, len(sums), channels))
        w(f"{sums[0]} = {added};")

    def add_bias(self, w: Writer, variable: str, count: int) -> None:
        if self.channels:
            w(f"{variable} = {self.floats.use(w, 'add', variable, self.floats.load(w, 'bias', count))};")

    def fold(self, w: Writer, accumulators: Sequence[str]) -> None:
        """Takes the maximum; clamping may follow."""
        first, *others = accumulators
        for other in others:
            w(f"{first} = {self.floats.use(w, 'max', first, other)};")

    def copy(self, w: Writer, to: str, source: str, count: int) -> None:
        """Copies from one pointer to another; without a source, stores zeros."""
        floats = self.floats
        for place, part in in_vectors(w, floats.lanes, count, "i", unrolled=4):
            value = floats.load(w, f"{source} + {place}", part) if source else floats.each(w, 0.0)
            floats.store(w, f"{to} + {place}", value, part)

    def complete(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        """Clamps the sum of the lanes from `channel` on and prints its epilogue, before it is stored at `pointer`."""
        self.floats.bound(w, self.bounds, accumulator)
        if self.finish:
            self.finish(w, self.floats, accumulator, pointer, count)

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        self.complete(w, accumulator, pointer, channel, count)
        self.floats.store(w, pointer, accumulator, count)


def vector_lanes(
    floats: Vectors,
    channels: Mapping[str, Array],
    bounds: Clamp,
    depth: int = 1,
    finish: Finish | None = None,
    kind: type[VectorLanes] = VectorLanes,
) -> VectorLanes:
    return kind(
        floats=floats, bounds=bounds, channels=channels, lanes=floats.lanes // depth, depth=depth, finish=finish
    )

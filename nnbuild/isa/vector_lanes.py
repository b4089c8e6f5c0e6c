"""Sums of products in vectors of floats: the hooks of the dot-product skeletons for every width of x86."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import TileLanes
from nnbuild.isa.vectors import Vectors
from nnbuild.ops.base import Clamp
from nnbuild.ops.site import Site

TOGETHER = 4
"""So many vectors of sums at most are added up in one go."""
Finish = Callable[[Writer, Vectors, str, str, int], None]
"""(writer, floats, variable, pointer, count) prints what else becomes of a result before it is stored there."""


class VectorLanes(TileLanes):
    """`depth` neighbouring lanes share an output channel and meet as many inputs; they are summed up at the end."""

    input_type = "float"
    weight_type = "float"
    output_type = "float"

    def __init__(
        self, site: Site, floats: Vectors, bounds: Clamp, depth: int = 1, finish: Finish | None = None
    ) -> None:
        self.floats = floats
        self.lanes = floats.lanes // depth
        self.depth = depth
        self.bounds = bounds
        self.finish = finish
        self.channels = {"bias": site.constant("bias")} if "bias" in site.constants else {}

    def join(self, filters: int) -> None:
        """Has the sums of several positions brought together, for layers whose channels all lie in one vector."""
        self.filters = filters
        self.together = min(self.depth, TOGETHER)
        self.row_constants = {name: np.tile(values, self.together) for name, values in self.channels.items()}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        biased = self.channels and self.depth == 1
        self.floats.declare(w, accumulator, self._bias(w, channel) if biased else self.floats.each(w, 0.0))

    def clear(self, w: Writer, accumulator: str) -> None:
        self.floats.declare(w, accumulator, self.floats.each(w, 0.0))

    def combine(self, w: Writer, operation: str, accumulator: str, other: str) -> None:
        w(f"{accumulator} = {self.floats.use(w, operation, accumulator, other)};")

    def _bias(self, w: Writer, channel: str) -> str:
        return self.floats.load(w, "bias" if channel == "0" else f"bias + {channel}", self.lanes)

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.floats.declare(w, name, self.floats.load(w, pointer))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        self.floats.declare(w, name, self.floats.broadcast(w, pointer, self.depth))

    def inputs_apart(self, w: Writer, name: str, pointer: str, count: int) -> None:
        self.floats.declare(w, name, self.floats.load(w, pointer, count))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(f"{accumulator} = {self.floats.use(w, 'fma', name, weights, accumulator)};")

    def fetch(self, w: Writer, pointer: str) -> None:
        w(f"{self.floats.call(w, 'fetch', pointer)};")

    def gather(self, w: Writer, accumulator: str, channel: str) -> None:
        """Brings the sums of a depth above one to the first lanes, and adds the bias, which could not be there."""
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
        """By their maximum, which may come before the bounds."""
        first, *others = accumulators
        for other in others:
            w(f"{first} = {self.floats.use(w, 'max', first, other)};")

    def copy(self, w: Writer, to: str, source: str, count: int) -> None:
        whole, rest = divmod(count, self.floats.lanes)
        if whole > 4:
            with w.loop("i", whole * self.floats.lanes, step=self.floats.lanes):
                self._copy_vector(w, f"{to} + i", f"{source} + i" if source else "", self.floats.lanes)
        else:
            for index in range(whole):
                at = f" + {index * self.floats.lanes}" if index else ""
                self._copy_vector(w, to + at, source + at if source else "", self.floats.lanes)
        if rest:
            at = f" + {whole * self.floats.lanes}" if whole else ""
            self._copy_vector(w, to + at, source + at if source else "", rest)

    def _copy_vector(self, w: Writer, to: str, source: str, count: int) -> None:
        self.floats.store(w, to, self.floats.load(w, source, count) if source else self.floats.each(w, 0.0), count)

    def complete(self, w: Writer, accumulator: str, pointer: str, count: int) -> None:
        """The bounds and what else becomes of a sum before it is stored at `pointer`."""
        self.floats.bound(w, self.bounds, accumulator)
        if self.finish:
            self.finish(w, self.floats, accumulator, pointer, count)

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        self.complete(w, accumulator, pointer, count)
        self.floats.store(w, pointer, accumulator, count)

"""One row of a dense layer with N:M sparsity: nonzero weights at N of every M inputs, shared by several outputs.

A place takes 2 or 4 bits; as their number is known, nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import lcm

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.encodings import codes
from nnbuild.encodings.nm import NofM, n_of_m, places_needed
from nnbuild.isa.c99 import IntegerLanes
from nnbuild.kernels.compressed import sparse_weights
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_integer, variant
from nnbuild.kernels.lanes.layer_sums import integer_lanes
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.window import WindowNest, window_of
from nnbuild.kernels.loops.window_loops import with_last
from nnbuild.model.graph import Array
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

STRETCHES = (4, 8, 16)
SHARED = (4, 2, 1)
"""Outputs that share places."""
MOST = 64
"""Weights up to which they are unrolled."""


@lru_cache(maxsize=64)
def smallest(site: Site[Dense], rows: int) -> NofM | None:
    """With the stretch length that takes the fewest bytes."""
    matrix = site.constant("kernel")
    found = (n_of_m(matrix, places_needed(matrix, m, rows), m, rows) for m in STRETCHES)
    fitting = [each for each in found if each is not None and lcm(each.n, 8 // width_of(each)) <= MOST]
    return min(fitting, key=lambda each: each.nbytes, default=None)


def width_of(found: NofM) -> int:
    """Bits of a place."""
    return 2 if found.m == STRETCHES[0] else 4


@dataclass(frozen=True, eq=False)
class NofMRow(WindowNest[IntegerLanes]):
    @cached_property
    def found(self) -> NofM:
        found = smallest(self.site, self.lanes.vectors)
        assert found is not None
        return found

    @property
    def entries(self) -> int:
        """Entries of a group of outputs."""
        return int(self.found.values.shape[1]) * self.found.n

    @property
    def in_byte(self) -> int:
        return 8 // width_of(self.found)

    def demand(self) -> Demand:
        rows, places = self.lanes.vectors, self._places()
        filled = np.pad(places, ((0, 0), (0, -self.entries % self.in_byte)))
        packed = {"places": codes.packed(filled, width_of(self.found)), "kernel": self.found.values.reshape(-1)}
        for name, values in self.lanes.channels.items():
            packed[name] = np.pad(values, (0, -len(values) % rows))
        return Demand(len(places), 0, "int8", packed)

    def _places(self) -> Array:
        """[groups, entries]; padding of the last stretch repeats valid places."""
        places = self.found.every_place()
        there = np.arange(places.shape[1])[:, None] * self.found.m + places < self.window.depth
        return np.where(there, places, 0).reshape(len(places), -1)

    def emit(self, w: Writer, names: Names) -> None:
        lanes, rows, groups = self.lanes, self.lanes.vectors, self.found.values.shape[0]
        at_once = lcm(self.found.n, self.in_byte)
        turns, rest = divmod(self.entries, at_once)
        size = -(-self.entries // self.in_byte)
        w(f"const uint8_t *places = {names.packed['places']} + begin * {size};")
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + begin * {self.entries * rows};")
        w.bill(6)
        with w.loop("group", "end", start="begin", trips=groups):
            dot.declare_channels(w, lanes, names.packed, f" + group * {rows}")
            w(f"const {lanes.input_type} *x = {names.inputs[0]};")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + group * {rows};")
            w.bill(4)
            blocks = dot.divide(self.window.filters, lanes)
            full = blocks.full
            dot.start(w, lanes, 1, full)
            if turns:
                with w.loop("turn", turns):
                    self._some(w, full, at_once)
                    w(f"x += {at_once // self.found.n * self.found.m};")
                    w(f"places += {at_once // self.in_byte};")
                    w(f"k += {at_once * rows};")
                    w.bill(3)
            if rest:
                self._some(w, full, rest)
                w(f"places += {-(-rest // self.in_byte)};")
                w(f"k += {rest * rows};")
            last = partial(dot.store, w, lanes, blocks.last, ["to"]) if blocks.last else None
            with_last(w, "group", blocks.count, partial(dot.store, w, lanes, full, ["to"]), last)

    def _some(self, w: Writer, block: Block, count: int) -> None:
        width, lanes = width_of(self.found), self.lanes
        for entry in w.each(range(count)):
            byte, shift = divmod(entry * width, 8)
            first = entry // self.found.n * self.found.m
            place = f"places[{byte}] >> {shift} & {(1 << width) - 1}"
            w(f"const {lanes.input_type} *from = x + {first} + ({place});")
            w.bill(3, 1 / self.in_byte)
            dot.multiply(w, lanes, block, ["from"], f"k + {entry * block.channels}")


def _nest(rows: int, site: Site[Dense]) -> NofMRow:
    return NofMRow(site, integer_lanes(site, rows))


def _refused(rows: int, site: Site[Dense]) -> str | None:
    if reason := only_integer(site) or sparse_weights.refused(site, rows, 1):
        return reason
    if rows > max(1, window_of(site).filters):
        return "it has too few outputs to share places"
    found = smallest(site, rows)
    few = found is not None and found.n <= sparse_weights.DENSE * found.m
    return None if few else "some stretch of its inputs has too many nonzero weights"


def _by(rows: int) -> Kernel[Dense]:
    name, refused, nest = f"some_of_many_by_{rows}", partial(_refused, rows), partial(_nest, rows)
    return variant(name, PORTABLE, refused, nest, encoding="N of every M")


VARIANTS = tuple(map(_by, SHARED))

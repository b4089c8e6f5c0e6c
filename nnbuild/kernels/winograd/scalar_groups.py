"""Winograd's convolution a group of output channels at a time: each group needs only its slice of the weights, for
memories that cannot hold a whole layer's. The inputs are transformed again for every group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.riscv import WORDS
from nnbuild.kernels.contract import Demand, Kernel, Names, variant
from nnbuild.kernels.loops.window import window_of
from nnbuild.kernels.parts.residual import FUSES
from nnbuild.kernels.winograd.scalar_products import multiply
from nnbuild.kernels.winograd.scalar_routines import LONGEST, Winograd
from nnbuild.kernels.winograd.scalar_tiles import SINGLES, SIZES, Tiles, accepts, lanes_of
from nnbuild.model.graph import Array
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

LINE = 32
"""16-bit numbers to a multiple of which a slice of the weights is padded: 64 bytes."""
JOINED_CYCLES = 8
"""Cycles to join a 32-bit number from its halves."""


@dataclass(frozen=True, eq=False)
class Groups(Tiles):
    """All pairs of tiles of the first group of `together` channels, then those of the next."""

    together: int

    @property
    def group(self) -> Winograd:
        """One group as a layer."""
        return replace(self.lanes, filters=self.together, whole=self.lanes.filters)

    @property
    def groups(self) -> int:
        return self.lanes.filters // self.together

    @property
    def scalings(self) -> int:
        """Numbers with which a group's sums start and are scaled."""
        return self.together * (1 + len(self.lanes.scaling.columns))

    @property
    def weights(self) -> int:
        """Transformed weights of a group; its scaling follows them."""
        return self.lanes.places * self.lanes.depth * self.together

    @property
    def slice(self) -> int:
        """The distance from one group's weights to the next."""
        return -(-(self.weights + 2 * self.scalings) // LINE) * LINE

    def demand(self) -> Demand:
        """Outputs must not overlap inputs, which every group reads again."""
        whole = super().demand()
        return replace(
            whole,
            extent=self.groups * whole.extent,
            packed={"kernel": self._sliced(whole.packed["kernel"], whole.packed["scaling"])},
            overlaps=tuple(overlap for overlap in whole.overlaps if overlap.input > 0),
            bands=self.groups * whole.bands,
            slices=self.groups,
        )

    def _sliced(self, kernel: Array, scaling: Array) -> Array:
        """For each group its weights, then its scaling as halves of numbers, lower half first."""
        numbers = scaling.astype(np.int64).reshape(self.groups, -1, 1)
        halves = np.concatenate([numbers, numbers >> 16], axis=2).astype(np.int16)
        parts = [kernel.reshape(self.groups, -1), halves.reshape(self.groups, -1)]
        filler = np.zeros((self.groups, self.slice - self.weights - 2 * self.scalings), np.int16)
        return np.concatenate([*parts, filler], axis=1).reshape(-1)

    def emit(self, w: Writer, names: Names) -> None:
        kernel = names.packed["kernel"]
        self._rooms(w, names.scratch)
        with w.loop("piece", "end", start="begin", trips=self.groups * self.work_items):
            w(f"const int32_t group = piece / {self.work_items};")
            w(f"const int16_t *const weights_of_group = {kernel} + group * {self.slice};")
            w(f"const int16_t *const halves = weights_of_group + {self.weights};")
            w(f"int32_t scaling[{self.scalings}];")
            with w.loop("i", self.scalings):
                w("const uint32_t low = (uint16_t)halves[2 * i], high = (uint16_t)halves[2 * i + 1];")
                w("scaling[i] = (int32_t)(low | high << 16);")
                w.bill(JOINED_CYCLES)
            w.bill(8)
            self._inputs(w, names, f"piece % {self.work_items}", f" + group * {self.together}")
            multiply(w, self.group, "weights_of_group", "scaling", self.outputs_of_tile)


def _accepts(size: int, together: int, site: Site[Conv2D]) -> str | None:
    if refused := accepts(size, WORDS, site):
        return refused
    filters = window_of(site).filters
    if filters % together or filters == together:
        return f"its output channels are not two groups of {together} or more"
    return None


def _nest(size: int, together: int, site: Site[Conv2D]) -> Groups:
    return Groups(site, lanes_of(size, WORDS, LONGEST, False, site), together)


TOGETHER = {"groups": SINGLES, "groups_wide": 2 * SINGLES}
VARIANTS: tuple[Kernel[Conv2D], ...] = tuple(
    variant(
        f"{name}_{of}", frozenset({"rv32im"}), partial(_accepts, size, together), partial(_nest, size, together), FUSES
    )
    for name, size in SIZES.items()
    for of, together in TOGETHER.items()
)

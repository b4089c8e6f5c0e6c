"""Convolutions and dense layers with few output channels on Cortex-M4 and M7: they read each input too rarely to repay
laying it out, so its words are read where they are, or in the band with the padding.

All channels of two positions are computed together, or those of a dense layer's single row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import in_vectors
from nnbuild.kernels.contract import Kernel, accepted, integer_layer, reason_of, variant
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp import tile_routine
from nnbuild.kernels.dsp.patch_layout import Patch
from nnbuild.kernels.dsp.patches import NEEDS, Patches, is_row, patch_of
from nnbuild.kernels.dsp.tile import Run, Tile
from nnbuild.kernels.dsp.weight_layouts import Wide, add_pair, in_pairs, padded_taps, size_of
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import Axis, Weighted, Window, window_of
from nnbuild.kernels.loops.window_loops import total
from nnbuild.kernels.parts.residual import refusal, residual_of
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

LAYOUT = Wide()
SUMS = 6
"""Sums that leave registers for inputs and weights."""
AT_ONCE = 16
"""Inputs per iteration of the inner loop."""
LONE = Row("*({0})", 1, 1)


class InPlace(Patch):
    @property
    def pairs(self) -> int:
        return 0

    def lay_out(self, w: Writer, source: str, group: str, names: tuple[str, ...] = ("a", "b")) -> None:
        self.point(w, source, group, names)


@dataclass(frozen=True, eq=False)
class FewChannels(Patches):
    @cached_property
    def window(self) -> Window:
        window = window_of(self.site)
        return Window(Axis(1, 1), Axis(1, 1), window.taps, window.taps, window.filters) if is_row(self.site) else window

    @cached_property
    def patch(self) -> Patch:
        usual = patch_of(self.site)
        return InPlace(self.window, usual.zero, usual.dtype)

    @property
    def _alone(self) -> bool:
        return bool(self.width % 2) and not self.lanes.beside

    def _packed(self) -> dict[str, Array]:
        """Every run is padded to groups of four inputs."""
        sums, filters = sums_of(self.site), self.window.filters
        runs = [in_pairs(run, self.patch.dtype) for run in sums.weights.reshape(-1, self.window.run, filters)]
        return tiles.packed(self.lanes, sums, np.concatenate(runs), filters, filters)

    def _group(self, w: Writer, tile: Tile) -> None:
        (run,) = tiles.runs(self.window.filters, self.window.filters)
        tile_routine.block(w, tile, run, self._products)

    def _products(self, w: Writer, tile: Tile, run: Run) -> None:
        names, words = ("a", "b")[: tile.positions], _bytes if self.patch.dtype == "int8" else _halves
        with self.patch.each_run(w, names, self.window.run):
            for _, some in in_vectors(w, AT_ONCE, self.window.run, "i", unrolled=1):
                with w.block(""):
                    for at in range(0, some, 4):
                        each = [words(w, name, at, min(4, some - at)) for name in names]
                        for pair, inputs in enumerate(zip(*each, strict=True)):
                            add_pair(w, tile.layout, at // 2 + pair, inputs, run.width)
                for name in names:
                    w(f"{name} += {some};")
                w(f"k += {size_of(tile.layout, padded_taps(some) // 2, run.width)};")
                w.bill(1 + len(names))


def _bytes(w: Writer, name: str, at: int, count: int) -> list[str]:
    """Declares the pairs among up to four bytes, in the order of inputs. A single one has any upper half, which meets a
    weight of zero."""
    if count < 4:
        singles = [w.use(LONE, total(name, str(at + i))) for i in range(count)]
        if count == 3:
            singles[0] = DSP.call(w, "p_low_halves", singles[0], singles.pop())
        for half, value in zip(("even", "odd"), singles, strict=False):
            w(f"const int32_t {half}_{name}{at} = {value};")
        return [f"{half}_{name}{at}" for half in ("even", "odd")[: len(singles)]]
    w(f"const int32_t {name}{at} = {DSP.call(w, 'load_bytes', total(name, str(at)), of=(count,))};")
    for half in ("even", "odd"):
        w(f"const int32_t {half}_{name}{at} = {DSP.call(w, f'p_{half}_bytes', f'{name}{at}')};")
    return [f"{half}_{name}{at}" for half in ("even", "odd")]


def _halves(w: Writer, name: str, at: int, count: int) -> list[str]:
    """The same among up to four numbers of 16 bits; a single one has any upper half, which meets a weight of zero."""
    places = range(at, at + count, 2)
    for place in places:
        pointer = total(name, str(place))
        value = DSP.call(w, "p_load", pointer) if place + 1 < at + count else w.use(LONE, pointer)
        w(f"const int32_t {name}{place} = {value};")
    return [f"{name}{place}" for place in places]


def _nest(site: Site[Weighted]) -> FewChannels:
    scaling = accepted(tiles.scaling_of(LAYOUT, site))
    return FewChannels(site, Tile(LAYOUT, scaling, 0, 2, residual_of(site), shared=site.shared))


def _accepts(site: Site[Weighted]) -> str | None:
    refused = integer_layer(site) or refusal(site)
    window = window_of(site)
    if refused is None and (window.groups > 1 or window.filters * (1 if is_row(site) else 2) > SUMS):
        refused = "its channels repay laying out its inputs"
    return refused or reason_of(tiles.scaling_of(LAYOUT, site))


def variants(fuses: frozenset[str]) -> tuple[Kernel[Weighted], ...]:
    return (variant("in_place", NEEDS, _accepts, _nest, fuses),)

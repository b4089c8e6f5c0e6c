"""Winograd's convolution for 3 x 3 kernels of stride 1 on Cortex-M4 and M7: fewer products, larger weights.

Two tiles of 2 x 2 outputs side by side are computed together. Where a row or column of tiles would hang over the
edge it is moved back, so that some outputs are computed twice, to the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Overlap, only_int8, variant
from nnbuild.kernels.dsp import winograd
from nnbuild.kernels.dsp.beside import FUSES, beside_of, refusal
from nnbuild.kernels.dsp.inputs import copy, fill
from nnbuild.kernels.dsp.scaling import ANY, Scaling, chosen, most_left, plain_form
from nnbuild.kernels.dsp.winograd import COLUMNS, PLACES, ROWS, WIDTH, Winograd
from nnbuild.kernels.loops.patches import NEEDS
from nnbuild.kernels.overlaps import lead
from nnbuild.kernels.sums import layer_of, sums_of
from nnbuild.kernels.window import Axis, WindowNest, window_of
from nnbuild.kernels.window_loops import product, total
from nnbuild.numeric.requant_product import Form
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

DOWN, ACROSS = 2, 4
"""Outputs of both tiles: rows, and in a row."""


@lru_cache(maxsize=256)
def _scaling(site: Site[Conv2D]) -> Scaling | str:
    sums, layer, kernel = sums_of(site), layer_of(site), site.constant("kernel")
    left, room = most_left(sums.largest_weight), np.full(len(sums.start), (1 << 29) - 1)
    levels = [] if layer.signed else [Form(level=ANY, least=2)]
    for forms in ([*levels, plain_form(layer)], [plain_form(layer)], []):
        scaling = chosen(layer, forms, left, room, 8)
        if isinstance(scaling, Scaling) and winograd.fits(kernel, sums, scaling):
            return scaling
    return "its sums of so many inputs could leave 32 bits"


def _accepts(site: Site[Conv2D]) -> str | None:
    refused = only_int8(site) or refusal(site)
    if refused:
        return refused
    window = window_of(site)
    axes = (window.rows, window.columns)
    if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in axes) or window.groups > 1:
        return "it computes 3 x 3 kernels of stride 1 only"
    if window.depth % 4:
        return "its input channels are no multiple of 4"
    if window.rows.places < DOWN or window.columns.places < ACROSS:
        return "its output is smaller than two tiles"
    scaling = _scaling(site)
    return scaling if isinstance(scaling, str) else None


@dataclass(frozen=True, eq=False)
class Tiles(WindowNest[Winograd]):
    @property
    def products_at(self) -> int:
        """Where the products lie in the scratch: behind the transformed inputs."""
        return PLACES * self.lanes.pairs

    @property
    def inside_share(self) -> float:
        """Of all pairs of tiles those whose inputs are all real."""
        rows, columns = _origins(self.window.rows, DOWN), _origins(self.window.columns, ACROSS)
        inside = [
            0 <= top <= self.window.rows.size - ROWS and 0 <= left <= self.window.columns.size - COLUMNS
            for top in rows
            for left in columns
        ]
        return sum(inside) / len(inside)

    def demand(self) -> Demand:
        shape, window = self.lanes, self.window
        gathered = ROWS * COLUMNS * shape.depth if self.inside_share < 1 else 0
        once = window.rows.places % DOWN == 0 and window.columns.places % ACROSS == 0
        # the other operand of a sum may lie where the outputs do, unless some are computed twice
        beside = [Overlap(input=1)] if self.site.tail and once else []
        return Demand(
            extent=-(-window.rows.places // DOWN),
            scratch=8 * (self.products_at + PLACES * WIDTH) + gathered,
            scratch_type="int64",
            packed=winograd.pack(self.site.constant("kernel"), sums_of(self.site), shape.scaling),
            overlaps=(Overlap(lead=self._lead()), *beside),
        )

    def _lead(self) -> int:
        """A row of tiles reads its inputs while it writes two rows of outputs."""
        rows, out = self.window.rows, self.window.columns.places * self.window.filters
        unread = [max(0, origin) * self.window.line for origin in _origins(rows, DOWN)]
        return lead(len(unread), lambda piece: min(DOWN * piece + DOWN, rows.places) * out, lambda piece: unread[piece])

    def emit(self, w: Writer, names: Names) -> None:
        shape, window = self.lanes, self.window
        rows, columns = window.rows, window.columns
        w(f"int64_t *const patch = {names.scratch};")
        w(f"int32_t *const products = (int32_t *)({names.scratch} + {self.products_at});")
        if self.inside_share < 1:
            w(f"int8_t *const gathered = (int8_t *)({names.scratch} + {self.products_at + PLACES * WIDTH});")
        with w.loop("piece", "end", start="begin", trips=-(-rows.places // DOWN)):
            w(f"const int32_t y = {_held(f'piece * {DOWN}', rows.places, DOWN)};")
            with w.loop("across", columns.places, step=ACROSS):
                w(f"const int32_t x = {_held('across', columns.places, ACROSS)};")
                w(f"const int32_t top = {rows.position('y')};")
                w(f"const int32_t left = {columns.position('x')};")
                place = product(f"y * {columns.places} + x", window.filters)
                w(f"int8_t *const to = {names.outputs[0]} + {place};")
                w.bill(8)
                if shape.beside:
                    w(f"const int8_t *const beside = {names.inputs[1]} + {place};")
                    w.bill(3)
                self._transform(w, names.inputs[0])
                winograd.multiply(w, shape, names.packed["kernel"], names.packed["scaling"])

    def _transform(self, w: Writer, source: str) -> None:
        window, share = self.window, self.inside_share
        rows, columns = window.rows.size, window.columns.size
        place = f"{source} + {product(f'top * {columns} + left', window.channels)}"
        if share == 1:
            winograd.transform_inputs(w, self.lanes, place, str(window.line))
            return
        condition = f"top >= 0 && top <= {rows - ROWS} && left >= 0 && left <= {columns - COLUMNS}"
        with w.block(f"if ({condition})"), w.trips(share):
            winograd.transform_inputs(w, self.lanes, place, str(window.line))
        with w.block("else"), w.trips(1 - share):
            self._gather(w, source)
            winograd.transform_inputs(w, self.lanes, "gathered", str(COLUMNS * window.channels))

    def _gather(self, w: Writer, source: str) -> None:
        """The inputs under both tiles, with the zero point where there are none."""
        window, channels = self.window, self.window.channels
        rows, columns = window.rows.size, window.columns.size
        w("int8_t *into = gathered;")
        down = w.loop("row", f"top + {ROWS}", start="top", trips=ROWS)
        with down, w.loop("column", f"left + {COLUMNS}", start="left", trips=COLUMNS):
            w.bill(8)
            with w.block(f"if (row >= 0 && row < {rows} && column >= 0 && column < {columns})"), w.trips(0.7):
                w(f"const int8_t *from = {total(source, product(f'row * {columns} + column', channels))};")
                copy(w, "int8", "into", "from", channels)
            with w.block("else"), w.trips(0.3):
                fill(w, "int8", "into", quant_of(self.site.inputs[0]).zero_point, channels)
            w(f"into += {channels};")


def _origins(axis: Axis, size: int) -> list[int]:
    """Where the inputs of each tile begin; the last one is moved back to the edge."""
    return [min(place, axis.places - size) - axis.pad for place in range(0, axis.places, size)]


def _held(value: str, places: int, size: int) -> str:
    last = places - size
    return f"{value} < {last} ? {value} : {last}" if places % size else value


def _nest(site: Site[Conv2D]) -> Tiles:
    scaling, window = _scaling(site), window_of(site)
    assert isinstance(scaling, Scaling)
    return Tiles(site, Winograd(window.depth, window.filters, window.columns.places, scaling, beside_of(site)))


VARIANTS = (variant("winograd", NEEDS, _accepts, _nest, FUSES),)

"""Winograd's convolution for 3 x 3 kernels of stride 1 on cores without vectors: fewer products, larger weights.

Two neighbouring tiles of 2 x 2 or 4 x 4 outputs are computed together. The last row and column of tiles is moved back
to the edge, so that some outputs are computed twice, to the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, Overlap, accepted, bytes_layer, reason_of, variant
from nnbuild.kernels.dsp.input_layouts import copy, fill
from nnbuild.kernels.dsp.patches import NEEDS
from nnbuild.kernels.dsp.scaling import ANY, BEYOND, Scaling, most_left, plain_form, scaling_by
from nnbuild.kernels.dsp.staged_weights import staged
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import Axis, WindowNest, window_of
from nnbuild.kernels.parts.overlaps import safe_distance
from nnbuild.kernels.parts.residual import FUSES, refusal, residual_of
from nnbuild.kernels.winograd import scalar_routines
from nnbuild.kernels.winograd.modular_routines import BY_FOUR, BY_TWO, Form
from nnbuild.kernels.winograd.patch_rows import every_three
from nnbuild.kernels.winograd.scalar_products import Outputs, multiply
from nnbuild.kernels.winograd.scalar_routines import WIDTH, Winograd
from nnbuild.numeric.requant import Layer
from nnbuild.numeric.requant_product import Form as Products
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


@lru_cache(maxsize=256)
def _scaling(site: Site[Conv2D], size: int, ops: Vectors) -> Scaling | str:
    form = form_of(size, ops)
    if form is not None:
        return _scaling_of_words(site, form)
    sums, kernel = sums_of(site), site.constant("kernel")

    def level(layer: Layer) -> list[Products]:
        return [] if layer.signed else [Products(level=ANY, least=2)]

    choices: list[Callable[[Layer], list[Products]]] = [
        lambda layer: [*level(layer), plain_form(layer)],
        lambda layer: [plain_form(layer)],
        lambda _: [],
    ]
    for forms in choices:
        scaling = scaling_by(site, forms, most_left(sums.largest_weight), (1 << 29) - 1)
        if isinstance(scaling, Scaling) and scalar_routines.fits(kernel, sums, scaling):
            return scaling
    return BEYOND


def form_of(size: int, ops: Vectors) -> Form | None:
    """The form modulo 2**32, unless the set adds and subtracts halves of words by one instruction."""
    return BY_FOUR if size == 4 else None if ops is DSP else BY_TWO


def _scaling_of_words(site: Site[Conv2D], form: Form) -> Scaling | str:
    """The scaling of sums shifted left by the transforms; without that shift where no numbers exist for it."""

    def forms(layer: Layer) -> list[Products]:
        levels = [] if layer.signed else [Products(level=ANY, least=form.left)]
        return [*levels, Products(left=form.left, below=None if layer.signed else 0), plain_form(layer)]

    scaling = scaling_by(site, forms, form.left, form.room)
    return scaling if isinstance(scaling, Scaling) else "its sums could leave the bits that the transforms leave of 32"


def accepts(size: int, ops: Vectors, site: Site[Conv2D]) -> str | None:
    if refused := bytes_layer(site) or refusal(site):
        return refused
    window = window_of(site)
    if not every_three(window):
        return "it computes 3 x 3 kernels of stride 1 only"
    if window.depth % 4:
        return "its input channels are not a multiple of 4"
    if window.rows.places < size or window.columns.places < 2 * size:
        return "its output is smaller than two tiles"
    return reason_of(_scaling(site, size, ops))


SINGLES = 8
"""Channels whose sums for both tiles fit the registers of a core with many."""


@dataclass(frozen=True, eq=False)
class Tiles(WindowNest[Winograd]):
    @property
    def form(self) -> Form | None:
        return form_of(self.lanes.size, self.lanes.ops)

    @property
    def products_at(self) -> int:
        """The offset of the products in scratch, behind the transformed inputs."""
        return self.lanes.places * self.lanes.pairs

    @property
    def gathered_at(self) -> int:
        return self.products_at + self.lanes.places * self.lanes.block

    @property
    def outputs(self) -> Pair:
        """(rows, columns) of both tiles' outputs."""
        return self.lanes.size, 2 * self.lanes.size

    @property
    def inputs(self) -> Pair:
        """(rows, columns) of both tiles' inputs."""
        return self.lanes.size + 2, 2 * self.lanes.size + 2

    @property
    def inside_share(self) -> float:
        """The share of pairs of tiles whose inputs are all real."""
        (down, across), (high, wide) = self.outputs, self.inputs
        rows, columns = _origins(self.window.rows, down), _origins(self.window.columns, across)
        inside = [
            0 <= top <= self.window.rows.size - high and 0 <= left <= self.window.columns.size - wide
            for top in rows
            for left in columns
        ]
        return sum(inside) / len(inside)

    @property
    def work_items(self) -> int:
        """Pairs of tiles, row by row."""
        down, across = self.outputs
        return -(-self.window.rows.places // down) * -(-self.window.columns.places // across)

    @property
    def bands(self) -> tuple[Pair, ...]:
        """The output rows of each pair of tiles."""
        (down, across), (rows, columns) = self.outputs, (self.window.rows.places, self.window.columns.places)
        tops = [min(top, rows - down) for top in range(0, rows, down)]
        return tuple((top, top + down) for top in tops for _ in range(0, columns, across))

    def demand(self) -> Demand:
        shape, window = self.lanes, self.window
        down, across = self.outputs
        gathered = prod(self.inputs) * shape.depth if self.inside_share < 1 else 0
        once = window.rows.places % down == 0 and window.columns.places % across == 0
        # a residual may be overlapped by the outputs, unless some of these are computed twice
        beside = [Overlap(input=1)] if self.site.tail and once else []
        return Demand(
            extent=self.work_items,
            scratch=8 * self.gathered_at + gathered,
            scratch_type="int64",
            packed=(self.form or scalar_routines).pack(shape, self.site.constant("kernel"), sums_of(self.site)),
            overlaps=(Overlap(distance=self._distance()), *beside),
            bands=self.bands,
        )

    def _distance(self) -> int:
        """A row of tiles reads its inputs while it writes its output rows."""
        down = self.outputs[0]
        item = np.dtype(self.site.outputs[0].dtype).itemsize
        rows, out = self.window.rows, self.window.columns.places * self.window.filters * item
        unread = [max(0, origin) * self.window.line for origin in _origins(rows, down)]
        return safe_distance(
            len(unread), lambda piece: min(down * piece + down, rows.places) * out, lambda piece: unread[piece]
        )

    def emit(self, w: Writer, names: Names) -> None:
        self._rooms(w, names.scratch)
        with w.loop("piece", "end", start="begin", trips=self.work_items):
            self._inputs(w, names, "piece")
            multiply(w, self.lanes, names.packed["kernel"], names.packed["scaling"], self.outputs_of_tile)

    @property
    def outputs_of_tile(self) -> Outputs:
        return (self.form or scalar_routines).tile

    def _rooms(self, w: Writer, scratch: str) -> None:
        w(f"int64_t *const patch = {scratch};")
        w(f"int32_t *const products = (int32_t *)({scratch} + {self.products_at});")
        if self.inside_share < 1:
            w(f"int8_t *const gathered = (int8_t *)({scratch} + {self.gathered_at});")

    def _inputs(self, w: Writer, names: Names, number: str, channel: str = "") -> None:
        """Transforms the inputs of the pair of tiles of this number, and declares its outputs."""
        window = self.window
        rows, columns = window.rows, window.columns
        down, across = self.outputs
        line = -(-columns.places // across)
        w(f"const int32_t y = {_held(f'{number} / {line} * {down}', rows.places, down)};")
        w(f"const int32_t x = {_held(f'{number} % {line} * {across}', columns.places, across)};")
        w(f"const int32_t top = {rows.position('y')};")
        w(f"const int32_t left = {columns.position('x')};")
        place = f"(y * {columns.places} + x) * {window.filters}" + channel
        w(f"{self.lanes.scaling.output_type} *const to = {names.outputs[0]} + {place};")
        w.bill(12)
        if self.lanes.beside:
            w(f"const int8_t *const beside = {names.inputs[1]} + {place};")
            w.bill(3)
        self._transform(w, names.inputs[0])

    def _transform(self, w: Writer, source: str) -> None:
        window, share, (high, wide) = self.window, self.inside_share, self.inputs
        rows, columns = window.rows.size, window.columns.size
        transform = (self.form or scalar_routines).transform_inputs
        place = f"{source} + (top * {columns} + left) * {window.channels}"
        if share == 1:
            transform(w, self.lanes, place, str(window.line))
            return
        if share:
            condition = f"top >= 0 && top <= {rows - high} && left >= 0 && left <= {columns - wide}"
            with w.block(f"if ({condition})"), w.trips(share):
                transform(w, self.lanes, place, str(window.line))
        with w.block("else") if share else nullcontext(), w.trips(1 - share):
            self._gather(w, source)
            transform(w, self.lanes, "gathered", str(wide * window.channels))

    def _gather(self, w: Writer, source: str) -> None:
        """Copies the inputs under both tiles, with the zero point for padding."""
        window, channels, (high, wide) = self.window, self.window.channels, self.inputs
        rows, columns = window.rows.size, window.columns.size
        w("int8_t *into = gathered;")
        down = w.loop("row", f"top + {high}", start="top", trips=high)
        with down, w.loop("column", f"left + {wide}", start="left", trips=wide):
            w.bill(8)
            with w.block(f"if (row >= 0 && row < {rows} && column >= 0 && column < {columns})"), w.trips(0.7):
                w(f"const int8_t *from = {source} + (row * {columns} + column) * {channels};")
                copy(w, "int8", "into", "from", channels, self.lanes.ops)
            with w.block("else"), w.trips(0.3):
                fill(w, "int8", "into", quant_of(self.site.inputs[0]).zero_point, channels, self.lanes.ops)
            w(f"into += {channels};")


def _origins(axis: Axis, size: int) -> list[int]:
    """The first input of each tile; the last tile is moved back to the edge."""
    return [min(place, axis.places - size) - axis.pad for place in range(0, axis.places, size)]


def _held(value: str, places: int, size: int) -> str:
    last = places - size
    return f"{value} < {last} ? {value} : {last}" if places % size else value


def lanes_of(size: int, ops: Vectors, longest: int, in_ram: bool, site: Site[Conv2D]) -> Winograd:
    scaling, window = accepted(_scaling(site, size, ops)), window_of(site)
    sizes = window.depth, window.filters, window.columns.places
    block = WIDTH if ops is DSP else min(SINGLES, -(-window.filters // WIDTH) * WIDTH)
    return Winograd(*sizes, scaling, residual_of(site), size, longest, in_ram, ops, block)


def _nest(size: int, ops: Vectors, longest: int, in_ram: bool, site: Site[Conv2D]) -> Tiles:
    return Tiles(site, lanes_of(size, ops, longest, in_ram, site))


def _variants(name: str, size: int) -> tuple[Kernel[Conv2D], ...]:
    """Variants with unrolled code, with short loops, and with short loops and weights in RAM."""
    ways = ((scalar_routines.LONGEST, False), (scalar_routines.SHORT, False), (scalar_routines.SHORT_NEAR, True))
    nests = [partial(_nest, size, DSP, longest, in_ram) for longest, in_ram in ways]
    names = (name, f"{name}_short", f"{name}_staged")
    straight, short, in_ram = (
        variant(each, NEEDS, partial(accepts, size, DSP), nest, FUSES) for each, nest in zip(names, nests, strict=True)
    )
    return straight, short, staged(in_ram)


def _single(name: str, size: int) -> Kernel[Conv2D]:
    """With products of single numbers."""
    nest = partial(_nest, size, WORDS, scalar_routines.LONGEST, False)
    return variant(f"{name}_single", frozenset({"rv32im"}), partial(accepts, size, WORDS), nest, FUSES)


SIZES = {"winograd": 2, "winograd_four": 4}
VARIANTS = (
    *(kernel for name, size in SIZES.items() for kernel in _variants(name, size)),
    *(_single(name, size) for name, size in SIZES.items()),
)

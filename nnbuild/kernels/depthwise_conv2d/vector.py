"""Depthwise convolution in vectors of channels, for every width of x86.

A tile is a strip of neighbouring positions of one vector of channels. Under one row of taps every input is loaded
once and multiplied by all taps that fall on it. Where a strip lies is known while printing, so taps beside the input
are simply left out; rows above and below are left out of the loop over `ky`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.tiling import even
from nnbuild.kernels.vector_tail import POINTWISE, beside_name, refusal, tail_of
from nnbuild.kernels.window_loops import Axis, declare_taps, moved, product, row_taps, total
from nnbuild.model.graph import Array
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

LONGEST = 8
"""Positions of a strip, where there are registers for them."""


@dataclass(frozen=True)
class Strip:
    """`size` outputs from `place` on, and `count` - 1 more such strips behind it."""

    place: int
    size: int
    count: int = 1


@dataclass(frozen=True)
class Geometry:
    rows: Axis
    columns: Axis
    channels: int
    lanes: VectorLanes

    def taps_at(self, place: int, size: int) -> dict[int, list[tuple[int, int]]]:
        """Input column, counted from tap 0 of the first place -> the (position, tap) pairs that meet there."""
        columns = self.columns
        found: dict[int, list[tuple[int, int]]] = {}
        for position in range(size):
            for tap in range(columns.kernel):
                column = position * columns.stride + tap * columns.dilation
                if 0 <= place * columns.stride - columns.pad + column < columns.size:
                    found.setdefault(column, []).append((position, tap))
        return dict(sorted(found.items()))

    def strips(self) -> list[Strip]:
        """All outputs of a row; strips that are printed alike are one."""
        registers = self.lanes.floats.registers - self.lanes.floats.temporaries
        longest = max(1, min(LONGEST, registers - self.columns.kernel - 1))
        found: list[Strip] = []
        for place, size in self._places(longest):
            last = found[-1] if found else None
            if last and last.size == size and self.taps_at(last.place, size) == self.taps_at(place, size):
                found[-1] = Strip(last.place, size, last.count + 1)
            else:
                found.append(Strip(place, size))
        return found

    def _places(self, longest: int) -> Iterator[tuple[int, int]]:
        place = 0
        for size, count in even(self.columns.places, longest):
            for _ in range(count):
                yield place, size
                place += size


def _geometry(site: Site[DepthwiseConv2D], floats: Vectors) -> Geometry:
    attributes = site.attributes
    kernel, inputs, outputs = site.constant("kernel").shape, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], kernel[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i][0])
        for i in (0, 1)
    )
    lanes = VectorLanes(site, floats, attributes.clamp, finish=tail_of(site).finish)
    return Geometry(rows, columns, inputs[2], lanes)


def _packed_taps(kernel: Array, lanes: int) -> Array:
    """[kh, kw, channels, 1] -> vectors of channels, of each all taps."""
    height, width, channels, _ = kernel.shape
    vectors = -(-channels // lanes)
    whole = np.zeros((height * width, vectors * lanes), kernel.dtype)
    whole[:, :channels] = kernel.reshape(height * width, channels)
    ordered: Array = whole.reshape(height * width, vectors, lanes).transpose(1, 0, 2)
    return ordered.reshape(-1)


def _variant(floats: Vectors) -> Variant:
    def accepts(site: Site[DepthwiseConv2D]) -> str | None:
        if site.output_shape()[2] != site.shape()[2]:
            return "it makes one channel of each"
        return only_float(site) or refusal(site, POINTWISE)

    def demand(site: Site[DepthwiseConv2D]) -> Demand:
        lanes = _geometry(site, floats).lanes
        channels = {name: dot.pack_channels(values, lanes) for name, values in lanes.channels.items()}
        packed = {"kernel": _packed_taps(site.constant("kernel"), lanes.lanes), **channels}
        return Demand(extent=site.output_shape()[0], packed=packed)

    def emit(w: Writer, site: Site[DepthwiseConv2D], names: Names) -> None:
        _emit(w, names, _geometry(site, floats))

    return Variant(floats.name, frozenset({floats.name}), accepts, demand, emit, POINTWISE)


def _emit(w: Writer, names: Names, shape: Geometry) -> None:
    rows, step = shape.rows, shape.lanes.lanes
    whole = shape.channels // step * step
    dot.declare_channels(w, shape.lanes, names.packed)
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        if whole:
            with w.loop("c", whole, step=step):
                _row(w, names, shape, "c", step)
        if whole < shape.channels:
            with w.block(""):
                _row(w, names, shape, str(whole), shape.channels - whole)


def _row(w: Writer, names: Names, shape: Geometry, channel: str, count: int) -> None:
    """One row of outputs of the `count` channels from `channel` on."""
    for strip in shape.strips():
        if strip.count == 1:
            with w.block(""):
                _strip(w, names, shape, strip, str(strip.place), (channel, count))
        else:
            stop = strip.place + strip.size * strip.count
            with w.loop("x", stop, start=strip.place, step=strip.size):
                _strip(w, names, shape, strip, "x", (channel, count))


def _strip(w: Writer, names: Names, shape: Geometry, strip: Strip, x: str, channels: tuple[str, int]) -> None:
    lanes, columns, (channel, count) = shape.lanes, shape.columns, channels
    for position in range(strip.size):
        lanes.start(w, f"sum{position}", channel)
    with row_taps(w, shape.rows, "top"):
        line = product(total("top", product("ky", shape.rows.dilation)), columns.size)
        first = min(shape.taps_at(strip.place, strip.size))
        place = product(moved(f"{line} + {product(x, columns.stride)}", first - columns.pad), shape.channels)
        taps = total(product(channel, shape.rows.kernel * columns.kernel), product("ky", columns.kernel * lanes.lanes))
        w(f"const float *row = {names.inputs[0]} + {total(place, channel)};")
        w(f"const float *k = {names.packed['kernel']} + {taps};")
        _taps(w, shape, strip, count)
    place = product(total(product("y", columns.places), x), shape.channels)
    w(f"float *to = {names.outputs[0]} + {total(place, channel)};")
    for operand in range(1, len(names.inputs)):
        w(f"const float *{beside_name(operand)} = {names.inputs[operand]} + {total(place, channel)};")
    for position in range(strip.size):
        lanes.store(w, f"sum{position}", dot.offset("to", position * shape.channels), channel, count)


def _taps(w: Writer, shape: Geometry, strip: Strip, count: int) -> None:
    """One row of taps."""
    floats, lanes = shape.lanes.floats, shape.lanes
    met = shape.taps_at(strip.place, strip.size)
    for tap in sorted({tap for pairs in met.values() for _, tap in pairs}):
        lanes.weights(w, f"w{tap}", dot.offset("k", tap * lanes.lanes))
    for column, pairs in met.items():
        at = dot.offset("row", (column - min(met)) * shape.channels)
        floats.declare(w, f"x{column}", floats.load(w, at, count))
        for position, tap in pairs:
            lanes.multiply(w, f"sum{position}", f"x{column}", f"w{tap}")


VARIANTS = tuple(_variant(floats) for floats in SETS)

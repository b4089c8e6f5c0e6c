"""The sliding window of a convolution, pool or dense layer: its sizes, and what loop nests derive from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Generic, TypeVar

from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

Weighted = Convolution | Dense | MatMul
"""Operations that multiply inputs by weights, or by another tensor."""
LONGEST_ROW = 128
"""Positions up to which rows are joined."""


@dataclass(frozen=True)
class Axis:
    """One axis of a sliding window: `size` inputs, `places` outputs, `pad` positions before the first input."""

    size: int
    places: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0

    @property
    def span(self) -> int:
        """Inputs from the first to the last under one window."""
        return spread(self.kernel, self.dilation)

    @property
    def covered(self) -> int:
        """Inputs, padding included, from the first to the last under all windows."""
        return (self.places - 1) * self.stride + self.span

    @property
    def padded(self) -> int:
        """Positions of a padded copy of all inputs."""
        return max(self.covered, self.pad + self.size)

    @property
    def taken(self) -> int:
        """The inputs up to the last one under a window."""
        return min(self.size, self.covered - self.pad)

    @property
    def inside(self) -> range:
        """The outputs whose windows lie inside the input."""
        first = -(-self.pad // self.stride)
        last = (self.size + self.pad - self.span) // self.stride
        first = min(first, self.places)
        return range(first, max(first, min(last + 1, self.places)))

    @property
    def always_inside(self) -> bool:
        return len(self.inside) == self.places

    @property
    def inside_share(self) -> float:
        """The share of real inputs among all under windows."""
        under = [i * self.stride - self.pad + k * self.dilation for i in range(self.places) for k in range(self.kernel)]
        return sum(0 <= place < self.size for place in under) / len(under)

    def position(self, index: str) -> str:
        """The input under tap 0 of output `index`."""
        return f"{index} * {self.stride} - {self.pad}"

    def taps_at(self, place: int, size: int) -> dict[int, list[Pair]]:
        """For `size` outputs from `place` on: real input, counted from tap 0 of the first -> its (output, tap)
        pairs."""
        found: dict[int, list[Pair]] = {}
        for output in range(size):
            for tap in range(self.kernel):
                at = output * self.stride + tap * self.dilation
                if 0 <= place * self.stride - self.pad + at < self.size:
                    found.setdefault(at, []).append((output, tap))
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class Strip:
    """`size` neighbouring outputs from `place` on, followed by `count` - 1 more such strips."""

    place: int
    size: int
    count: int = 1

    @property
    def stop(self) -> int:
        return self.place + self.size * self.count


def even(total: int, largest: int) -> list[Pair]:
    """(size, count): parts of at most `largest`, whose sizes differ by at most one, larger ones first."""
    count = -(-total // largest)
    size, rest = divmod(total, count)
    return [(s, n) for s, n in ((size + 1, rest), (size, count - rest)) if n]


def strips(places: int, longest: int) -> list[Strip]:
    found, place = [], 0
    for size, count in even(places, longest):
        found.append(Strip(place, size, count))
        place += size * count
    return found


def edged_strips(axis: Axis, longest: int) -> list[Strip]:
    """`strips` whose taps see the same real inputs; those at an edge are strips of their own."""
    found: list[Strip] = []
    for strip in strips(axis.places, longest):
        for place in range(strip.place, strip.stop, strip.size):
            last = found[-1] if found else None
            taps = axis.taps_at(place, strip.size)
            if last and last.size == strip.size and axis.taps_at(last.place, strip.size) == taps:
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(Strip(place, strip.size))
    return found


@dataclass(frozen=True)
class Window:
    """Sizes are in elements. An output channel reads `depth` input channels.

    pool: the window of a fused maximum pool; positions that fill no pool are left out.
    """

    rows: Axis
    columns: Axis
    channels: int
    depth: int
    filters: int
    groups: int = 1
    pool: Pair = (1, 1)

    @property
    def share(self) -> int:
        """Output channels of one group."""
        return self.filters // self.groups

    @property
    def line(self) -> int:
        """Elements of an input row."""
        return self.columns.size * self.channels

    @property
    def padded_line(self) -> int:
        """Elements of a padded row, as far as windows reach."""
        return self.columns.covered * self.channels

    @property
    def step(self) -> int:
        """Elements from the input under one output to that under the next, pools included."""
        return self.pool[1] * self.columns.stride * self.channels

    @property
    def contiguous(self) -> bool:
        """Whether the inputs under one row of taps are contiguous."""
        return self.groups == 1 and self.columns.dilation == 1

    @property
    def runs(self) -> int:
        """Contiguous runs of inputs under one row of taps."""
        return 1 if self.contiguous else self.columns.kernel

    @property
    def run(self) -> int:
        """Inputs in each run."""
        return self.depth * (self.columns.kernel if self.contiguous else 1)

    @property
    def taps(self) -> int:
        """Inputs of one output."""
        return self.rows.kernel * self.columns.kernel * self.depth

    @property
    def inside(self) -> bool:
        """Whether no window reaches beyond the input."""
        return self.rows.always_inside and self.columns.always_inside

    @property
    def flat(self) -> bool:
        """Whether each position reads its own input only: they are one long row."""
        return self.pool == (1, 1) and all(axis == Axis(axis.size, axis.size) for axis in (self.rows, self.columns))

    @property
    def area(self) -> int:
        """Positions of one output, more than one with a pool."""
        return prod(self.pool)

    @property
    def outputs(self) -> Pair:
        """Rows of outputs, and outputs in a row."""
        return self.rows.places // self.pool[0], self.columns.places // self.pool[1]

    @property
    def row_step(self) -> int:
        """Input rows from one output row to the next."""
        return self.rows.stride * self.pool[0]

    def rows_under(self, outputs: int) -> int:
        """Input rows under `outputs` neighbouring output rows."""
        return (outputs * self.pool[0] - 1) * self.rows.stride + self.rows.span

    def positions(self, count: int, line: int, apart: int = 1) -> list[int]:
        """The start of the window of every `apart`-th of `count` outputs, a pool's together, in rows of `line`."""
        return [
            row * self.rows.stride * line
            + (output * apart * self.pool[1] + column) * self.columns.stride * self.channels
            for output in range(count)
            for row in range(self.pool[0])
            for column in range(self.pool[1])
        ]

    def joined(self) -> Window:
        """Where every output reads one position, joins rows to longer ones."""
        if not self.flat:
            return self
        rows, columns = self.outputs
        fitting = [n for n in range(1, rows + 1) if rows % n == 0 and n * columns <= LONGEST_ROW]
        by = max(fitting, default=1)
        return replace(self, rows=Axis(rows // by, rows // by), columns=Axis(columns * by, columns * by))


def window_of(site: Site) -> Window:
    """The window of a convolution with its fused pool, of a pool, or of the rows of a dense layer or one matrix."""
    attributes = site.attributes
    if isinstance(attributes, MatMul):
        height, depth = site.shape()[-2:]
        return Window(Axis(height, height), Axis(1, 1), depth, depth, site.output_shape()[-1])
    if isinstance(attributes, Dense):
        inputs, filters = site.constant("kernel").shape
        count = prod(site.shape()[:-1])
        return Window(Axis(count, count), Axis(1, 1), inputs, inputs, filters)
    channels, filters = site.shape()[2], site.output_shape()[2]
    if isinstance(attributes, Pool2D):
        return Window(*_axes(site, attributes.window, (1, 1)), channels, 1, channels, channels)
    assert isinstance(attributes, Conv2D | DepthwiseConv2D)
    kernel = site.constant("kernel").shape
    pool = next((p.window for part in site.tail if isinstance(p := part.attributes, Pool2D)), (1, 1))
    rows, columns = (
        replace(axis, places=axis.places // size * size)
        for axis, size in zip(_axes(site, kernel[:2], attributes.dilation), pool, strict=True)
    )
    if isinstance(attributes, DepthwiseConv2D):
        return Window(rows, columns, channels, 1, filters, channels, pool)
    return Window(rows, columns, channels, kernel[2], filters, attributes.groups, pool)


def _axes(site: Site, kernel: Pair, dilation: Pair) -> tuple[Axis, Axis]:
    attributes, inputs, outputs = site.attributes, site.shape(), site.output_shape()
    assert isinstance(attributes, Conv2D | DepthwiseConv2D | Pool2D)
    strides, padding = attributes.strides, attributes.padding
    apart = [by if size > 1 else 1 for by, size in zip(dilation, kernel, strict=True)]
    rows, columns = (Axis(inputs[i], outputs[i], kernel[i], strides[i], apart[i], padding[i][0]) for i in (0, 1))
    return rows, columns


L = TypeVar("L", covariant=True)
"""The lanes that compute in a nest, or what stands for them."""


@dataclass(frozen=True, eq=False)
class Windowed:
    site: Site[Weighted]

    @cached_property
    def window(self) -> Window:
        return window_of(self.site)


@dataclass(frozen=True, eq=False)
class WindowNest(Windowed, Generic[L]):
    lanes: L

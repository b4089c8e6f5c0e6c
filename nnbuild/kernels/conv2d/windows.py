"""What a convolution over a padded copy of its input looks like: shapes, strips of rows, tiles of positions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

STRIP_BYTES = 20 * 1024
"""How much of the input is copied at a time: less than half of a small first-level cache."""
LONGEST_ROW = 128


@dataclass(frozen=True)
class Windows:
    """Sizes in elements. An output is the largest of `pool` windows' sums; (1, 1) where no pool follows.

    rows, columns: the outputs.
    """

    height: int
    width: int
    channels: int
    kernel: Pair
    strides: Pair
    dilation: Pair
    top: int
    left: int
    groups: int
    filters: int
    rows: int
    columns: int
    pool: Pair

    @property
    def depth(self) -> int:
        """Channels that one output channel sees."""
        return self.channels // self.groups

    @property
    def contiguous(self) -> bool:
        """The inputs under one row of taps lie side by side."""
        return self.groups == 1 and self.dilation[1] == 1

    @property
    def runs(self) -> tuple[int, int, int]:
        """(rows of taps, runs of neighbouring inputs in each, inputs in each run)."""
        if self.contiguous:
            return self.kernel[0], 1, self.kernel[1] * self.depth
        return self.kernel[0], self.kernel[1], self.depth

    @property
    def line(self) -> int:
        """Elements of one row of the copy."""
        last = (self.columns * self.pool[1] - 1) * self.strides[1] + spread(self.kernel[1], self.dilation[1])
        return max(last, self.left + self.taken) * self.channels

    @property
    def taken(self) -> int:
        """Columns of the input that some window sees; those beyond are not copied."""
        last = (self.columns * self.pool[1] - 1) * self.strides[1] + spread(self.kernel[1], self.dilation[1])
        return min(self.width, last - self.left)

    @property
    def row_step(self) -> int:
        """Input rows from one output row to the next."""
        return self.strides[0] * self.pool[0]

    @property
    def row_span(self) -> int:
        """Input rows under one output row."""
        return (self.pool[0] - 1) * self.strides[0] + spread(self.kernel[0], self.dilation[0])

    @property
    def padded(self) -> bool:
        """Whether some window reaches beyond the input."""
        below = (self.rows - 1) * self.row_step + self.row_span - self.top > self.height
        return self.top > 0 or below or self.line > self.taken * self.channels

    def strip(self, size: int) -> int:
        """Output rows whose input rows, of elements of this size, are copied together."""
        return self.strip_of(self.line * size)

    def strip_of(self, line_bytes: int) -> int:
        """As many as fit, and all strips about the same."""
        most = max(1, (STRIP_BYTES // line_bytes - self.row_span) // self.row_step + 1)
        return -(-self.rows // -(-self.rows // most))

    def copied(self, rows: int) -> int:
        """Input rows under so many output rows."""
        return (rows - 1) * self.row_step + self.row_span

    def positions(self, count: int, places: int) -> list[int]:
        """Where the windows of every `places`-th of neighbouring outputs begin in the copy, a pool's together."""
        sy, sx = self.strides
        return [
            i * sy * self.line + (q * places * self.pool[1] + j) * sx * self.channels
            for q in range(count)
            for i in range(self.pool[0])
            for j in range(self.pool[1])
        ]


def windows_of(site: Site[Conv2D], pool: Pool2D | None = None) -> Windows:
    attributes = site.attributes
    kh, kw, _, filters = site.constant("kernel").shape
    height, width, channels = site.shape()
    rows, columns, _ = (site.tail[0] if pool else site).output_shape()
    found = Windows(
        height,
        width,
        channels,
        (kh, kw),
        attributes.strides,
        attributes.dilation,
        attributes.padding[0][0],
        attributes.padding[1][0],
        attributes.groups,
        filters,
        rows,
        columns,
        pool.window if pool else (1, 1),
    )
    return _joined(found)


def _joined(windows: Windows) -> Windows:
    """Where every output sees one position only, several rows are as good as one longer one."""
    plain = prod((*windows.kernel, *windows.strides, *windows.pool)) == 1
    if not plain or windows.padded or (windows.height, windows.width) != (windows.rows, windows.columns):
        return windows
    fitting = [n for n in range(1, windows.rows + 1) if windows.rows % n == 0 and n * windows.width <= LONGEST_ROW]
    by = max(fitting, default=1)
    rows, columns = windows.rows // by, windows.columns * by
    return replace(windows, height=rows, width=columns, rows=rows, columns=columns)


def rows_of(count: int, inputs: int, outputs: int) -> Windows:
    """A dense layer on several rows of inputs: each is a position that sees itself alone."""
    single = (1, 1)
    plain = Windows(count, 1, inputs, single, single, single, 0, 0, 1, outputs, count, 1, single)
    return _joined(plain)

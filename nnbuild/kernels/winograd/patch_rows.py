"""What Winograd's convolutions share: the other form of taps, and patches of outputs done by rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.loops.window import Window
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.model.graph import Array

FEWEST = 8
"""Patches that share every weight that is loaded, if there are so many."""
TWO = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
FOUR = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64)
"""The taps of a line in their other form, in integers, for patches of two by two outputs and of four by four."""
FACTORS, NINTH = (1, 2, 4, 4), pow(9, -1, 1 << 32)
"""What each of four outputs in a line lacks to be 24 times itself, and the inverse of 9 modulo 2^32: times both, sums
come 64 times too large."""


def every_three(window: Window) -> bool:
    """Whether windows of 3 by 3 taps, one apart, stand at every position, of all channels."""
    axes = (window.rows, window.columns)
    return window.groups == 1 and all((axis.kernel, axis.stride, axis.dilation) == (3, 1, 1) for axis in axes)


def transformed(kernel: Array, taps: Array) -> Array:
    """[3, 3, in, out] -> [products of a patch, in, out], in int64 or float64 as the taps are."""
    both: Array = np.einsum("ai,bj,ijco->abco", taps, taps, kernel.astype(taps.dtype))
    return both.reshape(len(taps) ** 2, *kernel.shape[2:])


@dataclass(frozen=True)
class PatchRows:
    """Patches of `size` by `size` outputs, of which `rows` rows are done together."""

    window: Window
    size: int
    rows: int

    @property
    def across(self) -> int:
        """Patches in a row."""
        return self.window.columns.places // self.size

    @property
    def patches(self) -> int:
        return self.rows * self.across

    @property
    def times(self) -> int:
        """How often so many rows are computed."""
        return self.window.rows.places // self.size // self.rows

    @property
    def top(self) -> str:
        """The row of a patch's first output."""
        return f"({product('y', self.rows)} + row) * {self.size}"

    @contextmanager
    def each(
        self, w: Writer, channels: int, step: int, declared: str = "", begin: str = "0", end: str = ""
    ) -> Iterator[None]:
        """Loops over the patches, for each of which something may be declared, and their vectors of channels."""
        with w.loop("row", self.rows), w.loop("x", self.across):
            w(f"const int32_t patch = {total(product('row', self.across), 'x')};")
            if declared:
                w(declared)
            with w.loop("c", end or channels, start=begin, step=step, trips=channels // step):
                yield


def patch_rows(window: Window, size: int) -> PatchRows:
    """As few rows at once as fill the loops over patches."""
    across, down = window.columns.places // size, window.rows.places // size
    rows = next(n for n in range(1, down + 1) if down % n == 0 and (n * across >= FEWEST or n == down))
    return PatchRows(window, size, rows)

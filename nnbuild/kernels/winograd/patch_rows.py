"""The common part of Winograd's convolutions: transformed taps, and patches of outputs computed by rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.loops.window import Window
from nnbuild.model.graph import Array

FEWEST = 8
"""Patches that share each load of weights, if there are so many."""
TWO = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
FOUR = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64)
"""The integer transform of a line of taps, for patches of 2 x 2 outputs and of 4 x 4."""
FACTORS, NINTH = (1, 2, 4, 4), pow(9, -1, 1 << 32)
"""The factors that make each of four outputs in a line 24 times too large, and the inverse of 9 modulo 2**32: with
both, sums are 64 times too large."""


def every_three(window: Window) -> bool:
    """Whether it is a convolution of 3 x 3 taps without dilation, of stride 1 and a single group."""
    axes = (window.rows, window.columns)
    return window.groups == 1 and all((axis.kernel, axis.stride, axis.dilation) == (3, 1, 1) for axis in axes)


def transformed(kernel: Array, taps: Array) -> Array:
    """[3, 3, in, out] -> [products of a patch, in, out], in the type of `taps`: int64 or float64."""
    both: Array = np.einsum("ai,bj,ijco->abco", taps, taps, kernel.astype(taps.dtype))
    return both.reshape(len(taps) ** 2, *kernel.shape[2:])


@dataclass(frozen=True)
class PatchRows:
    """Patches of `size` by `size` outputs, of which `rows` rows are computed together."""

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
        """The number of passes over such rows."""
        return self.window.rows.places // self.size // self.rows

    @property
    def top(self) -> str:
        """The first output row of a patch."""
        return f"(y * {self.rows} + row) * {self.size}"

    @contextmanager
    def each(
        self, w: Writer, channels: int, step: int, declared: str = "", begin: str = "0", end: str = ""
    ) -> Iterator[None]:
        """Loops over the patches, with declarations for each, and over their vectors of channels."""
        with w.loop("row", self.rows), w.loop("x", self.across):
            w(f"const int32_t patch = row * {self.across} + x;")
            if declared:
                w(declared)
            with w.loop("c", end or channels, start=begin, step=step, trips=channels // step):
                yield


def patch_rows(window: Window, size: int) -> PatchRows:
    """The fewest rows that fill the loops over patches."""
    across, down = window.columns.places // size, window.rows.places // size
    rows = next(n for n in range(1, down + 1) if down % n == 0 and (n * across >= FEWEST or n == down))
    return PatchRows(window, size, rows)

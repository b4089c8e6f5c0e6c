"""The constants of a channel for tiles of a depthwise convolution: starts of sums, words of weights, scaling.

They are stored as they are read; or with weights as bytes, and unpacked in scratch for a group of channels at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.kernels.contract import Names
from nnbuild.kernels.depthwise.dsp_lines import GROUP, LineLayout, taps_of
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import int32s
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

RAISE = Row("const int32_t {0} = {1} * factor;", 2, 1)


@dataclass(frozen=True, eq=False)
class Stream:
    site: Site[DepthwiseConv2D]
    shape: LineLayout
    scaled: Scaling
    narrow: bool
    """Whether weights are stored as bytes."""

    @property
    def size(self) -> int:
        """Words of a channel."""
        return len(self._constants) + len(self._pairs)

    @property
    def scratch(self) -> int:
        """Words that are unpacked."""
        return min(GROUP, self.shape.channels) * self.shape.multiplier * self.size if self.narrow else 0

    def packed(self) -> dict[str, Array]:
        return self._bytes() if self.narrow else {"stream": self._whole()}

    @property
    def _pairs(self) -> list[tuple[int, int | None]]:
        """The taps of each word of weights, row by row."""
        across = self.shape.across.kernel
        words = [word for line in self.shape.tile(self.shape.rows).words for word in line]
        return [
            (low * across + tap, None if high is None else high * across + tap)
            for low, high in words
            for tap in range(across)
        ]

    @property
    def _taps(self) -> Array:
        """[tap, channel]"""
        taps = taps_of(self.site, self.shape)
        return taps.reshape(-1, taps.shape[-1])

    @property
    def _constants(self) -> list[Array]:
        """The constants of a channel besides its weights."""
        return [(sums_of(self.site).start - self.scaled.centre) * self.scaled.factor, *self.scaled.columns.values()]

    def _whole(self) -> Array:
        raised = self._taps * self.scaled.factor
        start, *scaling = self._constants
        words = [(raised[low] & 0xFFFF) | (0 if high is None else raised[high] << 16) for low, high in self._pairs]
        return _words([start, *words, *scaling])

    def _bytes(self) -> dict[str, Array]:
        """The weights of every channel, the bits by which they are shifted, and all other constants."""
        weights = np.concatenate([self._taps, self.scaled.left[None]]).T.reshape(-1)
        return {"weights": weights.astype(np.int8), "columns": _words(self._constants)}

    def declare(self, w: Writer, names: Names, count: str) -> None:
        """Declares `stream`, the constants of the first of `count` channels of a group."""
        each = GROUP * self.shape.multiplier
        if not self.narrow:
            w(f"const int32_t *stream = {names.packed['stream']} + group * {each * self.size};")
            return
        lines = min(GROUP, self.shape.channels) * self.shape.held * self.shape.width
        taps, constants = len(self._taps), len(self._constants)
        w(f"int32_t *laid = {names.scratch} + {lines};")
        w("const int32_t *stream = laid;")
        w(f"const int8_t *stored = {names.packed['weights']} + group * {each * (taps + 1)};")
        w(f"const int32_t *columns = {names.packed['columns']} + group * {each * constants};")
        trips = self.shape.channels * self.shape.multiplier / -(-self.shape.channels // GROUP)
        with w.loop("c", f"({count}) * {self.shape.multiplier}", trips=trips):
            w(f"const int32_t factor = 1 << stored[{taps}];")
            w.bill(3, 1)
            for tap in range(taps):
                w(w.use(RAISE, f"w{tap}", f"stored[{tap}]"))
            self._lay_out(w)
            for pointer, by in (("laid", self.size), ("stored", taps + 1), ("columns", constants)):
                w(w.use(c99.STEP, pointer, str(by)))

    def _lay_out(self, w: Writer) -> None:
        """Unpacks a channel whose weights are in variables."""
        w(w.use(STORE, "laid[0]", "columns[0]"))
        for at, (low, high) in enumerate(self._pairs):
            both = DSP.call(w, "p_low_halves", f"w{low}", "0" if high is None else f"w{high}")
            w(w.use(STORE, f"laid[{1 + at}]", both))
        for at in range(1, len(self._constants)):
            w(w.use(STORE, f"laid[{len(self._pairs) + at}]", f"columns[{at}]"))
        w.bill(len(self._constants), len(self._constants))


def _words(columns: Sequence[Array]) -> Array:
    """[channel, column] as consecutive words."""
    return int32s(np.stack(columns, 1).reshape(-1))

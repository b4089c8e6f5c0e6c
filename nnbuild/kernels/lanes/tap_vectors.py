"""Lanes of depthwise convolutions: taps are interleaved, input channels repeated for all their output channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_channels import as_kind
from nnbuild.isa.integer_kinds import RealVectors
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.integer_ops import TAPS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.lanes import integer_layers
from nnbuild.model.graph import Array
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

GROUP = 4
"""Vectors of sums whose channels are stored together, if registers suffice: one vector of bytes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TapVectors(IntegerVectors):
    """times: the output channels of an input channel."""

    times: int

    @property
    def group(self) -> int:
        """Vectors of sums computed together; their scaling by lines takes more registers."""
        return GROUP // 2 if self.v.sparing and self.rounded is None else GROUP

    def copy(self, w: Writer, to: str, source: str, count: int) -> None:
        """Copies inputs in prepared form, each of them `times` times, `count` in all."""
        if self.times == 1:
            super().copy(w, to, source, count)
            return
        w.bill(count)
        if self.dtype == "int16":
            call = self.v.call(w, "copy_repeated", to, source, str(count), of=(self.times,))
        elif self.of_bytes:
            call = self.v.call(w, "lift_repeated", to, source, str(count), of=(self.lift, self.times))
        else:
            call = self.v.call(w, "centre_repeated", to, source, str(count), str(self.zero), of=(self.times,))
        w(f"{call};")

    def multiply_lanes(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        """The same for contiguous inputs, a channel a lane."""
        if self.depth == 1:
            row, of = ("h_load", ()) if self.dtype == "int16" else ("inputs", (1,))
            inputs = self.v.call(w, row, name, of=of)
            w(f"{accumulator} = {self.v.call(w, 'dot_lanes', accumulator, inputs, weights)};")
        else:
            self.multiply(w, accumulator, name, weights)

    def order(self, channels: int, groups: int) -> Array:
        """The channel of every lane of every vector of the first groups of a row."""
        vector, lane = np.divmod(np.arange(self.group * self.lanes), self.lanes)
        half, which = np.divmod(vector, self.depth)
        within = lane // self.block * self.block * self.depth + which * self.block + lane % self.block
        size = self.group * self.lanes
        found = np.arange(groups)[:, None] * size + half * self.depth * self.lanes + within
        result: Array = found.reshape(-1) % channels
        return result

    def interleave(self, w: Writer, taps: Sequence[str], vectors: int) -> None:
        """Declares x0 to x3, or fewer: the inputs of a group of channels at the pointers `taps`."""
        kind = TAPS[self.depth]
        if self.depth == 1:  # operands of lane-wise products are loaded there
            whole = len(self.channels["bias"]) % self.lanes == 0  # taps share a few vectors, which can wait
            first = taps[0] if whole or self.dtype == "int16" else self.late_pointer(w, taps[0], "int8_t")
            for vector in range(vectors):
                w(f"const {self.input_type} *x{vector} = {'x0' if vector else first} + {vector * self.lanes};")
            return
        for half in range(GROUP // self.depth):
            names = [f"{name}{half}" for name in "abcd"[: self.depth]]
            for name, pointer in zip(names, taps, strict=True):
                at = f"{pointer} + {half * self.depth * self.lanes}"
                self.v.let(w, kind, name, self.v.call(w, "inputs", at, of=(self.depth,)))
            for which in range(self.depth):
                mixed = self.v.call(w, "mix", *names, of=(self.depth, which, self.block))
                self.v.let(w, kind, f"x{half * self.depth + which}", mixed)

    def store_group(self, w: Writer, values: Sequence[str], pointer: str, count: int) -> None:
        """The first `count` outputs of a group, in the order of their channels."""
        values = [*values, *[values[0]] * (GROUP - len(values))]
        if self.dtype == "int8":
            of = (self.depth, self.block, *self.bounds, count)
            w(f"{self.v.call(w, 'store_mixed', pointer, *values, of=of)};")
            return
        for half in range(2):
            first = half * 2 * self.lanes
            if first < count:
                of_words = (self.block, *self.bounds, min(2 * self.lanes, count - first))
                pair = values[2 * half : 2 * half + 2]
                w(f"{self.v.call(w, 'store_mixed_words', f'{pointer} + {first}', *pair, of=of_words)};")


@dataclass(frozen=True, eq=False, kw_only=True)
class RealTaps(RealVectors, TapVectors):
    """The same with outputs that are floats: each block of lanes has neighbouring channels."""

    def store_group(self, w: Writer, values: Sequence[str], pointer: str, count: int) -> None:
        for vector, value in enumerate(values):
            half, which = divmod(vector, self.depth)
            for lane in range(0, self.lanes, self.block):
                first = (half * self.lanes + lane) * self.depth + which * self.block
                if first < count:
                    lanes = range(lane, lane + min(self.block, count - first))
                    self.store_lanes(w, value, f"{pointer} + {first}", str(vector * self.lanes), lanes)


def tap_vectors(v: Vectors, site: Site[DepthwiseConv2D]) -> TapVectors:
    lanes, times = integer_layers.lanes_of(v, site), site.constant("kernel").shape[3]
    return as_kind(RealTaps if isinstance(lanes, RealVectors) else TapVectors, lanes, times=times)

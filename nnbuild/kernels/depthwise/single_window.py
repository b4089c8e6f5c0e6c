"""Depthwise convolution of bytes with a single window that covers the whole input, as in streams.

On Cortex-M4 and up a word holds a tap's inputs of four channels; it is widened to two pairs, and each half is
multiplied by its channel's weight, without a copy. Elsewhere channels are computed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.kernels.contract import Demand, Names, accepted, bytes_layer, reason_of, variant
from nnbuild.kernels.depthwise.dsp_planes import loads, scaling_of
from nnbuild.kernels.dsp.scaling import Scaling, result
from nnbuild.kernels.lanes.byte_lanes import M0ByteLanes
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import WindowNest, window_of
from nnbuild.kernels.parts.overlaps import in_place
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import int32s
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

FOUR = 4
"""Channels per word."""
MOST_TAPS = 64
"""Taps that are unrolled at most, to limit code."""
FARTHEST = 4000
"""Bytes from the first tap's inputs to the last one's that an instruction can address."""
HALVES = ((0, "e", "p_low_low"), (2, "e", "p_high_high"), (1, "o", "p_low_low"), (3, "o", "p_high_high"))
"""(channel, its pair of inputs, the product of that half): even channels are unpacked together."""


@dataclass(frozen=True, eq=False)
class SingleWindow:
    site: Site[DepthwiseConv2D]
    scaled: Scaling

    @cached_property
    def taps(self) -> Array:
        """[tap, channel]"""
        return self.site.constant("kernel").astype(np.int64).reshape(-1, self.channels)

    @property
    def channels(self) -> int:
        return self.site.shape()[2]

    @property
    def group_words(self) -> int:
        """Words of a group: starts, weights, scaling."""
        return FOUR + 2 * len(self.taps) + FOUR * len(self.scaled.columns)

    def demand(self) -> Demand:
        return Demand(self.channels // FOUR, packed={"stream": self._stream()}, overlaps=in_place(self.site))

    def _stream(self) -> Array:
        raised = self.taps * self.scaled.factor
        start = (sums_of(self.site).start - self.scaled.centre) * self.scaled.factor
        groups = raised.reshape(len(raised), -1, FOUR)
        words = [
            (groups[:, :, low] & 0xFFFF) | ((groups[:, :, low + 2] & 0xFFFF) << 16) for low in (0, 1)
        ]  # [tap, group] of even channels and of odd ones
        parts = [start.reshape(-1, FOUR), np.stack(words, axis=-1).transpose(1, 0, 2).reshape(-1, 2 * len(raised))]
        columns = [values.reshape(-1, FOUR, 1) for values in self.scaled.columns.values()]
        parts.append(np.concatenate(columns, axis=2).reshape(len(parts[0]), -1))
        return int32s(np.concatenate(parts, axis=1).reshape(-1))

    def emit(self, w: Writer, names: Names) -> None:
        w(f"const int8_t *from = {names.inputs[0]} + begin * {FOUR};")
        w(f"{self.scaled.output_type} *to = {names.outputs[0]} + begin * {FOUR};")
        w(f"const int32_t *k = {names.packed['stream']} + begin * {self.group_words};")
        with w.loop("group", "end", start="begin", trips=self.channels // FOUR):
            self._group(w)
            w(f"from += {FOUR};")
            w(f"to += {FOUR};")
            w(f"k += {self.group_words};")
            w.bill(3)

    def _group(self, w: Writer) -> None:
        loads(w, "k", [(f"start{channel}", channel) for channel in range(FOUR)])
        for channel in range(FOUR):
            w(f"int32_t sum{channel} = start{channel};")
        for tap in range(len(self.taps)):
            loads(w, "k", [(f"w{tap}e", FOUR + 2 * tap), (f"w{tap}o", FOUR + 2 * tap + 1)])
            at = f"from + {tap * self.channels}"
            w(f"const int32_t x{tap} = {DSP.call(w, 'load_bytes', at, of=(4,))};")
            w(f"const int32_t x{tap}e = {DSP.call(w, 'p_even_bytes', f'x{tap}')};")
            w(f"const int32_t x{tap}o = {DSP.call(w, 'p_odd_bytes', f'x{tap}')};")
            for channel, half, name in HALVES:
                value = DSP.call(w, name, f"x{tap}{half}", f"w{tap}{half}", f"sum{channel}")
                w(f"sum{channel} = {value};")
        columns = list(self.scaled.columns)
        first = FOUR + 2 * len(self.taps)
        values = []
        for channel in range(FOUR):
            own = [(f"{name}{channel}", first + channel * len(columns) + i) for i, name in enumerate(columns)]
            loads(w, "k", own)
            values.append(result(w, self.scaled, f"sum{channel}", {name: f"{name}{channel}" for name in columns}))
        for channel, value in enumerate(values):
            w(w.use(STORE, f"to[{channel}]", f"({self.scaled.output_type}){value}"))


@dataclass(frozen=True, eq=False)
class ScalarSingleWindow(WindowNest[M0ByteLanes]):
    """One channel at a time; the weights of a channel are contiguous."""

    def demand(self) -> Demand:
        taps = M0ByteLanes.stored(self.site.constant("kernel")).reshape(-1, self.window.filters)
        packed = {"kernel": taps.T.reshape(-1), **self.lanes.channels}
        return Demand(self.window.filters, packed=packed, overlaps=in_place(self.site))

    def emit(self, w: Writer, names: Names) -> None:
        taps, channels = self.window.taps, self.window.filters
        w(f"const int8_t *from = {names.inputs[0]} + begin;")
        w(f"{self.lanes.output_type} *to = {names.outputs[0]} + begin;")
        w(f"const {self.lanes.weight_type} *k = {names.packed['kernel']} + begin * {taps};")
        dot.declare_channels(w, self.lanes, names.packed, " + begin")
        with w.loop("channel", "end", start="begin", trips=channels):
            self.lanes.start(w, "sum00", "0")
            for tap in range(taps):
                self.lanes.weights(w, "w0", f"k + {tap}")
                self.lanes.inputs(w, "x0", f"from + {tap * channels}")
                self.lanes.multiply(w, "sum00", "x0", "w0")
            self.lanes.store(w, "sum00", "to", "0", 1)
            for name, by in (("from", 1), ("to", 1), ("k", taps), *((name, 1) for name in self.lanes.channels)):
                w(f"{name} += {by};")
                w.bill(1)


def _refused_window(site: Site[DepthwiseConv2D]) -> str | None:
    if refused := bytes_layer(site):
        return refused
    window = window_of(site)
    axes = (window.rows, window.columns)
    if any(axis.places > 1 or axis.pad for axis in axes) or site.constant("kernel").shape[:2] != site.shape()[:2]:
        return "it computes one position, whose window is the whole input"
    if site.constant("kernel").shape[3] > 1:
        return "it computes one output channel for each input channel"
    taps = window.rows.kernel * window.columns.kernel
    return f"it unrolls at most {MOST_TAPS} taps" if taps > MOST_TAPS else None


def _accepts(site: Site[DepthwiseConv2D]) -> str | None:
    if refused := _refused_window(site):
        return refused
    if site.shape()[2] % FOUR:
        return "its channels do not fill words"
    if site.constant("kernel").size > FARTHEST:
        return f"its inputs lie farther apart than {FARTHEST} bytes"
    return reason_of(scaling_of(site))


def _nest(site: Site[DepthwiseConv2D]) -> SingleWindow:
    return SingleWindow(site, accepted(scaling_of(site)))


VARIANTS = (
    variant("alone", frozenset({"armv7em_dsp"}), _accepts, _nest),
    variant("alone_short", frozenset({"armv6m"}), _refused_window, lambda s: ScalarSingleWindow(s, M0ByteLanes(s))),
)

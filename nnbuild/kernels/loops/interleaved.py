"""Depthwise convolution over a padded copy of the input, many channels at a time.

A row of outputs is one run of numbers, position after position, channel after channel; a group of lanes may span
several positions. With a stride, the columns of a row are copied apart by what is left of their number divided by the
stride: so the inputs under one tap lie side by side for neighbouring outputs, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import IntegerVectors
from nnbuild.isa.x86_interleaving import VECTORS, interleaved, order, store_group
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.conv2d.windows import Windows
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.padded import copy_between
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

SLACK = 256
"""Bytes beyond the copy that filling and the last group of channels may touch."""
UNROLLED = 3
"""So many rows of taps are printed one after the other rather than as a loop."""


@dataclass(frozen=True)
class Layout:
    """Where things lie in the copy. Sizes in elements."""

    windows: Windows
    lanes: IntegerVectors

    @property
    def part(self) -> int:
        """One row's columns of the same remainder."""
        return -(-self.windows.line // (self.windows.channels * self.windows.strides[1])) * self.windows.channels

    @property
    def line(self) -> int:
        return self.part * self.windows.strides[1]

    @property
    def size(self) -> int:
        return int(np.dtype(self.lanes.scratch_type).itemsize)

    @property
    def strip(self) -> int:
        return self.windows.strip_of(self.line * self.size)

    @property
    def scratch(self) -> int:
        return self.windows.copied(self.strip) * self.line * self.size + SLACK

    @property
    def steps(self) -> int:
        """Dot products for one row of taps."""
        return -(-self.windows.kernel[1] // self.lanes.depth)

    def tap(self, column: int) -> int:
        """Where the input under a column of taps lies for the first output; those filled up repeat the last one."""
        column = min(column, self.windows.kernel[1] - 1) * self.windows.dilation[1]
        along, part = divmod(column, self.windows.strides[1])
        return part * self.part + along * self.windows.channels

    @property
    def taps(self) -> int:
        """Weights of one row of taps for one group."""
        return self.steps * VECTORS * self.lanes.lanes * self.lanes.depth

    @property
    def together(self) -> int:
        """Rows of outputs that share the inputs they both see."""
        kernel, stride = self.windows.kernel[0], self.windows.strides[0]
        shares = 2 * stride <= kernel <= UNROLLED and self.strip > 1
        return 2 if shares and self.lanes.set.registers > 16 else 1

    @property
    def outputs(self) -> int:
        """In one row."""
        return self.windows.columns * self.windows.channels

    @property
    def group(self) -> int:
        """Outputs computed at once."""
        return self.lanes.v.bytes

    @property
    def period(self) -> int:
        """After so many outputs of a row the same channels come in the same lanes."""
        return lcm(self.windows.channels, self.group)


def demand(site: Site[DepthwiseConv2D], layout: Layout) -> Demand:
    return Demand(
        extent=layout.windows.rows,
        scratch=layout.scratch,
        scratch_type=layout.lanes.scratch_type,
        packed=_packed(site, layout),
    )


def _packed(site: Site[DepthwiseConv2D], layout: Layout) -> dict[str, Array]:
    lanes = layout.lanes
    rows, columns = layout.windows.kernel
    taps = np.zeros((rows, layout.steps * lanes.depth, layout.windows.channels), np.int8)
    taps[:, :columns] = site.constant("kernel")[..., 0]
    channels = order(lanes.set, layout.windows.channels).reshape(-1, VECTORS * lanes.lanes)
    # groups, rows of taps, steps, lanes of four vectors, depth
    kernel = taps.reshape(rows, layout.steps, lanes.depth, -1)[..., channels].transpose(3, 0, 1, 4, 2)
    constants = {name: lanes.arranged(name, values[channels.reshape(-1)]) for name, values in lanes.channels.items()}
    return {"kernel": np.ascontiguousarray(kernel).reshape(-1), **constants}


def emit(w: Writer, site: Site[DepthwiseConv2D], names: Names, layout: Layout) -> None:
    windows, lanes = layout.windows, layout.lanes
    with w.loop("strip", "end", start="begin", step=layout.strip, trips=-(-windows.rows // layout.strip)):
        w(f"const int32_t rows = end - strip < {layout.strip} ? end - strip : {layout.strip};")
        _copy(w, names, layout)
        w("int32_t y = 0;")
        for together in (layout.together, 1):
            with w.block(f"for (; y + {together} <= rows; y += {together})"):
                share = layout.strip // together if together == layout.together else layout.strip % layout.together
                across = product("y", windows.row_step * layout.line)
                w(f"const {lanes.input_type} *across = {names.scratch} + {across};")
                w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('(strip + y)', layout.outputs)};")
                with w.trips(share):
                    _rows(w, names, layout, together)
            if together == 1:
                break


def _copy(w: Writer, names: Names, layout: Layout) -> None:
    windows, lanes = layout.windows, layout.lanes
    rows = total(product("(rows - 1)", windows.row_step), str(windows.row_span))
    with w.loop("y", rows, trips=windows.copied(layout.strip)):
        w(f"{lanes.input_type} *line = {names.scratch} + {product('y', layout.line)};")
        row = total(product("strip", windows.row_step), "y")
        w(f"const int32_t row = {row}{f' - {windows.top}' if windows.top else ''};")
        with w.block(f"if (row >= 0 && row < {windows.height})"):
            source = f"{names.inputs[0]} + {product('row', windows.width * windows.channels)}"
            w(f"const {lanes.output_type} *from = {source};")
            if windows.strides[1] == 1:
                inside = windows.left * windows.channels, windows.taken * windows.channels
                copy_between(w, lanes, "from", inside, layout.line)
            else:
                lanes.fill(w, "line", layout.line)
                _copy_apart(w, layout)
        with w.block("else"), w.trips(0):
            lanes.fill(w, "line", layout.line)


def _copy_apart(w: Writer, layout: Layout) -> None:
    """The columns of a row, those of each remainder together."""
    windows, stride = layout.windows, layout.windows.strides[1]
    with w.loop("x", windows.left + windows.taken, start=windows.left):
        place = f"x % {stride} * {layout.part} + x / {stride} * {windows.channels}"
        source = total("from", product(f"x - {windows.left}" if windows.left else "x", windows.channels))
        layout.lanes.copy(w, f"line + {place}", source, windows.channels)


def _rows(w: Writer, names: Names, layout: Layout, together: int) -> None:
    """All groups of neighbouring rows of outputs; those of one period have constants of their own."""
    lanes = layout.lanes
    whole, rest = divmod(layout.outputs, layout.group)
    groups = layout.period // layout.group
    size = layout.windows.kernel[0] * layout.taps
    w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
    dot.declare_channels(w, lanes, names.packed)
    with w.loop("i", whole * layout.group, step=layout.group):
        _group(w, layout, layout.group, together)
        if groups > 1:
            width = VECTORS * lanes.lanes
            w(f"taps += {size};")
            for name in lanes.channels:
                w(f"{name} += {width};")
            if groups < whole or rest:
                with w.block(f"if (taps == {names.packed['kernel']} + {size * groups})"):
                    w(f"taps = {names.packed['kernel']};")
                    for name in lanes.channels:
                        w(f"{name} = {names.packed[name]};")
    if rest:
        with w.block(""):
            w(f"const int32_t i = {whole * layout.group};")
            _group(w, layout, rest, together)


def _group(w: Writer, layout: Layout, count: int, together: int) -> None:
    lanes, rows = layout.lanes, layout.windows.kernel[0]
    for row in range(together):
        for vector in range(VECTORS):
            lanes.start(w, f"sum{row}{vector}", str(vector * lanes.lanes))
    if rows <= UNROLLED:
        _lines(w, layout, together)
    else:
        with w.loop("ky", rows):
            w(f"const {lanes.input_type} *row = across + i + ky * {layout.windows.dilation[0] * layout.line};")
            taps = total("taps", product("ky", layout.taps))
            _line(w, layout, "row", 0, [(0, taps)])
    for vector in range(VECTORS):
        with w.block(""):
            lanes.prepare(w, str(vector * lanes.lanes))
            for row in range(together):
                lanes.scale(w, f"sum{row}{vector}")
    for row in range(together):
        place = total("to", "i", str(row * layout.outputs))
        store_group(w, lanes, [f"sum{row}{vector}" for vector in range(VECTORS)], place, count)


def _lines(w: Writer, layout: Layout, together: int) -> None:
    """Every line of inputs once, for all the rows of outputs that see it."""
    windows = layout.windows
    users: dict[int, list[tuple[int, str]]] = {}
    for row in range(together):
        for ky in range(windows.kernel[0]):
            line = row * windows.strides[0] + ky * windows.dilation[0]
            users.setdefault(line, []).append((row, total("taps", str(ky * layout.taps))))
    for line, rows in sorted(users.items()):
        _line(w, layout, total("across", "i"), line * layout.line, rows)


def _line(w: Writer, layout: Layout, inputs: str, at: int, users: list[tuple[int, str]]) -> None:
    """A line of inputs into the sums of each row of outputs that sees it, with its weights."""
    lanes = layout.lanes
    width = lanes.lanes * lanes.depth
    for step in range(layout.steps):
        with w.block(""):
            taps = [layout.tap(step * lanes.depth + tap) + at for tap in range(lanes.depth)]
            interleaved(w, lanes.set, [total(inputs, str(tap)) for tap in taps])
            for row, weights in users:
                for vector in range(VECTORS):
                    name = f"w{row}{vector}"
                    lanes.weights(w, name, total(weights, str((step * VECTORS + vector) * width)))
                    lanes.multiply(w, f"sum{row}{vector}", f"x{vector}", name)

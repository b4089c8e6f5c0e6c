"""Depthwise convolution over a padded copy of the input, many channels at a time.

An output row is one run of numbers, channels within positions; a group of lanes may span several positions. With a
stride, columns are copied apart by their index modulo the stride, so that the inputs under one tap are contiguous for
neighbouring outputs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.tap_vectors import TapVectors
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.padded_tiles import copy_between
from nnbuild.kernels.loops.window import Window, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import copy_strip, each_strip_of_rows, strip_rows
from nnbuild.model.graph import Array

SLACK = 256
"""Bytes behind the copy that padding to full groups may touch."""
LONGEST_PERIOD = 1024
"""Outputs with separate constants, if a position has no more."""
MORE_WORK = 1 + 1 / 32
"""The work in a row for which constants are saved."""
UNROLLED = 3
"""Rows of taps up to which they are unrolled."""


@dataclass(frozen=True, eq=False)
class Interleaved(WindowNest[TapVectors]):
    """Sizes in elements. Where an input channel has several output channels, it is copied as often."""

    @cached_property
    def window(self) -> Window:
        window = window_of(self.site)
        return replace(window, channels=window.filters, groups=window.filters)

    @property
    def part(self) -> int:
        """Elements of the columns of a row with the same remainder."""
        return -(-self.window.columns.covered // self.window.columns.stride) * self.window.channels

    @property
    def line(self) -> int:
        return self.part * self.window.columns.stride

    @property
    def size(self) -> int:
        return int(np.dtype(self.lanes.scratch_type).itemsize)

    @property
    def strip(self) -> int:
        return strip_rows(self.window, self.line * self.size)

    @property
    def steps(self) -> int:
        """Dot products per row of taps."""
        return -(-self.window.columns.kernel // self.lanes.depth)

    def tap(self, column: int) -> int:
        """The input under a column of taps, for the first output; columns added to fill a step repeat the last one."""
        column = min(column, self.window.columns.kernel - 1) * self.window.columns.dilation
        along, part = divmod(column, self.window.columns.stride)
        return part * self.part + along * self.window.channels

    @property
    def taps(self) -> int:
        """Weights of one row of taps for one group."""
        return self.steps * self.lanes.group * self.lanes.lanes * self.lanes.depth

    @property
    def together(self) -> int:
        """Output rows computed together, which share inputs."""
        kernel, stride = self.window.rows.kernel, self.window.rows.stride
        shares = 2 * stride <= kernel <= UNROLLED and self.strip > 1
        return 2 if shares and self.lanes.v.registers > 16 else 1

    @property
    def outputs(self) -> int:
        """Outputs of a row."""
        return self.window.columns.places * self.window.channels

    @property
    def group(self) -> int:
        """Outputs computed at once."""
        return self.lanes.group * self.lanes.lanes

    def vectors(self, count: int) -> int:
        """The vectors of a group with so many outputs."""
        return -(-count // self.lanes.lanes) if self.lanes.depth == 1 else self.lanes.group

    @cached_property
    def period(self) -> int:
        """Outputs after which constants are used again: a few positions, whose last group may reach beyond them. As
        few as hardly add work to a row."""
        channels = self.window.channels
        most = max(1, min(self.window.columns.places, LONGEST_PERIOD // channels))
        work = {period: self._work(period) for period in range(channels, (most + 1) * channels, channels)}
        return next(period for period, vectors in work.items() if vectors <= min(work.values()) * MORE_WORK)

    def _work(self, period: int) -> int:
        """The vectors of a row."""
        starts = self._starts(period)
        return (len(starts) - 1) * self.lanes.group + self.vectors(self.outputs - int(starts[-1]))

    @property
    def groups(self) -> int:
        """Groups of a period."""
        return -(-self.period // self.group)

    @property
    def starts(self) -> list[int]:
        """The first output of every group of a row."""
        return [int(start) for start in self._starts(self.period)]

    def _starts(self, period: int) -> Array:
        found = np.add.outer(np.arange(0, self.outputs, period), np.arange(0, period, self.group)).reshape(-1)
        return found[np.append(0, found[:-1] + self.group) < self.outputs]

    def demand(self) -> Demand:
        return Demand(
            extent=self.window.rows.places,
            scratch=self.window.rows_under(self.strip) * self.line * self.size + SLACK,
            scratch_type=self.lanes.scratch_type,
            packed=self._packed(),
        )

    def _packed(self) -> dict[str, Array]:
        lanes = self.lanes
        rows, columns = self.window.rows.kernel, self.window.columns.kernel
        weights = self.site.constant("kernel").reshape(rows, columns, -1)
        taps = np.pad(weights, ((0, 0), (0, self.steps * lanes.depth - columns), (0, 0)))
        channels = lanes.order(self.window.channels, self.groups).reshape(-1, self.group)
        # groups, rows of taps, steps, lanes of four vectors, depth
        kernel = taps.reshape(rows, self.steps, lanes.depth, -1)[..., channels].transpose(3, 0, 1, 4, 2)
        constants = {
            name: lanes.arranged(name, values[channels.reshape(-1)]) for name, values in lanes.channels.items()
        }
        return {"kernel": np.ascontiguousarray(kernel).reshape(-1), **constants}

    def emit(self, w: Writer, names: Names) -> None:
        window, lanes = self.window, self.lanes
        with each_strip_of_rows(w, window, self.strip):
            self._copy(w, names)
            w("int32_t y = 0;")
            for together in (self.together, 1):
                with w.block(f"for (; y + {together} <= rows; y += {together})"):
                    share = self.strip // together if together == self.together else self.strip % self.together
                    across = f"y * {window.row_step * self.line}"
                    w(f"const {lanes.input_type} *across = {names.scratch} + {across};")
                    w(f"{lanes.output_type} *to = {names.outputs[0]} + (strip + y) * {self.outputs};")
                    with w.trips(share):
                        self._rows(w, names, together)
                if together == 1:
                    break

    def _copy(self, w: Writer, names: Names) -> None:
        window, lanes = self.window, self.lanes
        blank = partial(lanes.fill, w, "line", self.line)

        def copy(row: str) -> None:
            w(f"const {lanes.dtype}_t *from = {names.inputs[0]} + ({row}) * {window.line // lanes.times};")
            if window.columns.stride == 1:
                copy_between(w, lanes, "from", window, self.line)
            else:
                blank()
                self._copy_apart(w)

        line = f"{lanes.input_type} *line = {names.scratch} + y * {self.line};"
        copy_strip(w, window, self.strip, line, copy, blank)

    def _copy_apart(self, w: Writer) -> None:
        """Copies the columns of a row, grouped by remainder."""
        window, stride = self.window, self.window.columns.stride
        with w.loop("x", window.columns.pad + window.columns.taken, start=window.columns.pad):
            place = f"x % {stride} * {self.part} + x / {stride} * {window.channels}"
            column = f"x - {window.columns.pad}" if window.columns.pad else "x"
            source = f"from + ({column}) * {window.channels // self.lanes.times}"
            self.lanes.copy(w, f"line + {place}", source, window.channels)

    def _rows(self, w: Writer, names: Names, together: int) -> None:
        """All groups of neighbouring output rows; those of one period have separate constants."""
        lanes = self.lanes
        starts, groups = self.starts, self.groups
        rest = (self.outputs - starts[-1]) % self.group
        size = self.window.rows.kernel * self.taps
        w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        with self._each_group(w, starts, len(starts) - (rest > 0)):
            self._group(w, self.group, together)
            if groups > 1:
                width = self.group
                w(f"taps += {size};")
                for name in lanes.channels:
                    w(f"{name} += {width};")
                if groups < len(starts):
                    with w.block(f"if (taps == {names.packed['kernel']} + {size * groups})"):
                        w(f"taps = {names.packed['kernel']};")
                        for name in lanes.channels:
                            w(f"{name} = {names.packed[name]};")
                        if groups * self.group > self.period:
                            w(f"i -= {groups * self.group - self.period};")
        if rest:
            with w.block(""):
                w(f"const int32_t i = {starts[-1]};")
                self._group(w, rest, together)

    @contextmanager
    def _each_group(self, w: Writer, starts: list[int], count: int) -> Iterator[None]:
        """The loop `i` over the first groups of a row; behind a period that its last group exceeds, it steps back."""
        step = self.group if self.groups > 1 else self.period
        if starts == list(range(0, len(starts) * step, step)):
            with w.loop("i", count * step, step=step):
                yield
        else:
            with w.block(f"for (int32_t i = 0; i <= {starts[count - 1]}; i += {step})"), w.trips(count):
                yield

    def _group(self, w: Writer, count: int, together: int) -> None:
        lanes, rows, vectors = self.lanes, self.window.rows.kernel, self.vectors(count)
        for row in range(together):
            for vector in range(vectors):
                lanes.start(w, f"sum{row}{vector}", str(vector * lanes.lanes))
        if rows <= UNROLLED:
            self._lines(w, together, vectors)
        else:
            with w.loop("ky", rows):
                w(f"const {lanes.input_type} *row = across + i + ky * {self.window.rows.dilation * self.line};")
                taps = f"taps + ky * {self.taps}"
                self._line(w, "row", 0, [(0, taps)], vectors)
        for vector in w.each(range(vectors)):
            lanes.prepare(w, str(vector * lanes.lanes))
            for row in range(together):
                lanes.scale(w, f"sum{row}{vector}")
        for row in range(together):
            place = f"to + i + {row * self.outputs}"
            lanes.store_group(w, [f"sum{row}{vector}" for vector in range(vectors)], place, count)

    def _lines(self, w: Writer, together: int, vectors: int) -> None:
        """Loads every line of inputs once, for all output rows that read it."""
        window = self.window
        users: dict[int, list[tuple[int, str]]] = {}
        for row in range(together):
            for ky in range(window.rows.kernel):
                line = row * window.rows.stride + ky * window.rows.dilation
                users.setdefault(line, []).append((row, f"taps + {ky * self.taps}"))
        for line, rows in sorted(users.items()):
            self._line(w, "across + i", line * self.line, rows, vectors)

    def _line(self, w: Writer, inputs: str, at: int, users: list[tuple[int, str]], vectors: int) -> None:
        """Adds a line of inputs, times its weights, to the sums of each output row that reads it."""
        lanes = self.lanes
        width = lanes.lanes * lanes.depth
        for step in w.each(range(self.steps)):
            taps = [self.tap(step * lanes.depth + tap) + at for tap in range(lanes.depth)]
            lanes.interleave(w, [f"{inputs} + {tap}" for tap in taps], vectors)
            for row, weights in users:
                if lanes.v.sparing:
                    w(f"const {lanes.weight_type} *k{row} = {lanes.late_pointer(w, weights)};")
                    weights = f"k{row}"
                for vector in range(vectors):
                    name = f"w{row}{vector}"
                    lanes.weights(w, name, f"{weights} + {(step * self.lanes.group + vector) * width}")
                    lanes.multiply_lanes(w, f"sum{row}{vector}", f"x{vector}", name)
                if lanes.v.sparing:
                    sums = [f"&sum{row}{vector}" for vector in range(vectors)]
                    w(f"{lanes.v.call(w, 'settle', *sums, of=(vectors,))};")

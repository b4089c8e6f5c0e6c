"""The input layouts of convolutions and dense layers for `tile`.

Windows that lie inside the input and fill vectors are read in place. Otherwise rows are copied with their padding; or,
where few inputs are contiguous, the windows of one column of outputs at a time are laid out so that each is one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, Nest, accepted, integer_layer, reason_of, variant
from nnbuild.kernels.cross_lane.scaling import total_scaling_of
from nnbuild.kernels.cross_lane.tile import Walk, call
from nnbuild.kernels.cross_lane.tile_calls import CrossLane
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.loops.window import Weighted, window_of
from nnbuild.kernels.loops.window_loops import copy_strip, each_strip_of_rows, in_range, strip_rows
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Flat(CrossLane):
    """Positions with one input each; a work item is a tile."""

    @cached_property
    def places(self) -> int:
        return prod(self.window.outputs)

    @property
    def walk(self) -> Walk:
        return Walk(self.window.depth, self.window.channels)

    @property
    def apart(self) -> int:
        return self.window.filters

    @property
    def copied(self) -> bool:
        return self.window.depth % self.slack > 0

    def demand(self) -> Demand:
        copy = (self.places * self.window.channels + self.slack) * self.size if self.copied else 0
        return Demand(-(-self.places // self.tile.positions), copy, self.dtype, self.packed())

    def emit(self, w: Writer, names: Names) -> None:
        source, size = names.inputs[0], self.tile.positions
        if self.copied:
            channels = self.window.channels
            first = f"(begin < {self.places // size} ? begin * {size} : {self.places - size})"
            last = f"(end * {size} < {self.places} ? end * {size} : {self.places})"
            at = f"({first}) * {channels}"
            count = f"({last} - {first}) * {channels}"
            self._copy(w, f"{names.scratch} + {at}", f"{source} + {at}", count, self.places * channels)
            source = names.scratch
        with w.loop("piece", "end", start="begin", trips=-(-self.places // size)):
            w(f"const int32_t x = {self._place(f'piece * {size}')};")
            w.bill(4)
            at, to = f"x * {self.window.channels}", f"x * {self.apart}"
            self._calls(w, names, f"{source} + {at}", f"{names.outputs[0]} + {to}")


@dataclass(frozen=True, eq=False)
class SingleRow(CrossLane):
    """One position; a work item is a block of channels."""

    places, apart = 1, 1

    @property
    def walk(self) -> Walk:
        return Walk(self.window.taps, self.window.taps)

    @property
    def copied(self) -> bool:
        return self.window.taps % self.slack > 0

    def demand(self) -> Demand:
        copy = (self.window.taps + self.slack) * self.size if self.copied else 0
        return Demand(sum(run.count for run in self.runs()), copy, self.dtype, self.packed())

    def emit(self, w: Writer, names: Names) -> None:
        source, columns = names.inputs[0], len(self.ending.columns) * self.tile.channels
        if self.copied:
            self._copy(w, names.scratch, source, str(self.window.taps), self.window.taps)
            source = names.scratch
        piece = 0
        for run in self.runs():
            pointers = (
                source,
                f"{self._weights(names)} + first * {self.tile.weights}",
                f"{names.packed['scaling']} + first * {columns}",
                f"{names.outputs[0]} + first * {self.tile.channels}",
            )
            with in_range(w, piece, run.count):
                call(w, run.tile, pointers, "last - first", run.count)
            piece += run.count


@dataclass(frozen=True, eq=False)
class Lines(CrossLane):
    """Rows of the input or of a padded copy; a work item is an output row."""

    @property
    def places(self) -> int:
        return self.window.outputs[1]

    @property
    def apart(self) -> int:
        return self.window.filters

    @property
    def copied(self) -> bool:
        return not self.window.inside or self.window.run % self.slack > 0

    @property
    def line(self) -> int:
        return self.window.padded_line if self.copied else self.window.line

    @property
    def walk(self) -> Walk:
        window = self.window
        across = window.columns.dilation * window.channels
        down = window.rows.dilation * self.line
        return Walk(window.run, window.step, window.runs, across, window.rows.kernel, down)

    @property
    def strip(self) -> int:
        return strip_rows(self.window, self.line * self.size)

    def demand(self) -> Demand:
        rows = self.window.outputs[0]
        copy = (self.window.rows_under(self.strip) * self.line + self.slack) * self.size if self.copied else 0
        return Demand(rows, copy, self.dtype, self.packed())

    def emit(self, w: Writer, names: Names) -> None:
        window, rows = self.window, self.window.outputs[0]
        width = self.places * self.apart
        if not self.copied:
            with w.loop("y", "end", start="begin", trips=rows):
                down = f"y * {window.row_step * self.line}"
                w(f"const {self.kind} *across = {names.inputs[0]} + {down};")
                w(f"{self.ending.output_type} *line_to = {names.outputs[0]} + y * {width};")
                self._tiles(w, names, "across", "line_to")
            return
        with each_strip_of_rows(w, window, self.strip):
            self._copy_rows(w, names)
            with w.loop("y", "rows", trips=self.strip):
                down = f"y * {window.row_step * self.line}"
                w(f"const {self.kind} *across = {names.scratch} + {down};")
                w(f"{self.ending.output_type} *line_to = {names.outputs[0]} + (strip + y) * {width};")
                self._tiles(w, names, "across", "line_to")

    def _copy_rows(self, w: Writer, names: Names) -> None:
        """Copies the input rows under a strip, with padding."""
        window = self.window
        before, real = window.columns.pad * window.channels, window.columns.taken * window.channels

        def fill(first: int, count: int) -> None:
            if count:
                self._fill(w, f"line + {first}", str(count), count)

        def copy(row: str) -> None:
            fill(0, before)
            source = f"{names.inputs[0]} + ({row}) * {window.line}"
            self._copy(w, f"line + {before}", source, str(real), real)
            fill(before + real, self.line - before - real)

        line = f"{self.kind} *line = {names.scratch} + y * {self.line};"
        copy_strip(w, window, self.strip, line, copy, partial(fill, 0, self.line))


@dataclass(frozen=True, eq=False)
class Columns(CrossLane):
    """A work item is a column of outputs; neighbouring positions lie below each other."""

    @property
    def places(self) -> int:
        return self.window.outputs[0]

    @property
    def apart(self) -> int:
        return self.window.outputs[1] * self.window.filters

    @property
    def walk(self) -> Walk:
        window = self.window
        return Walk(window.rows.kernel * window.run, window.rows.stride * window.run)

    @property
    def held(self) -> int:
        """Elements of a column's inputs."""
        return self.window.rows.padded * self.window.run

    def demand(self) -> Demand:
        return Demand(self.window.outputs[1], (self.held + self.slack) * self.size, self.dtype, self.packed())

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        with w.loop("column", "end", start="begin", trips=window.outputs[1]):
            self._lay_out(w, names)
            w(f"{self.ending.output_type} *line_to = {names.outputs[0]} + column * {window.filters};")
            self._tiles(w, names, names.scratch, "line_to")

    def _lay_out(self, w: Writer, names: Names) -> None:
        window, columns, channels = self.window, self.window.columns, self.window.channels
        if not window.inside:
            self._fill(w, names.scratch, str(self.held), self.held)
        w(f"const int32_t left = {columns.position('column')};")
        first, count = "0", str(columns.kernel * channels)
        if not columns.always_inside:
            w("const int32_t first = left < 0 ? -left : 0;")
            room = f"{columns.size} - left"
            w(f"const int32_t last = {room} < {columns.kernel} ? {room} : {columns.kernel};")
            w(f"const int32_t count = last > first ? (last - first) * {channels} : 0;")
            first, count = "first", "count"
        source = f"{names.inputs[0]} + (left + {first}) * {channels}"
        w(f"const {self.kind} *under = {source};")
        w(f"{self.kind} *into = {names.scratch} + {window.rows.pad * window.run} + ({first}) * {channels};")
        w.bill(12)
        with w.loop("y", window.rows.taken):
            w.bill(4)  # addresses of a line and of its copy
            self._copy(w, f"into + y * {window.run}", f"under + y * {window.line}", count, window.run)


def _refused(site: Site[Weighted]) -> str | None:
    return integer_layer(site) or integer_layers.refused_weights(site) or reason_of(total_scaling_of(site))


def _refused_columns(site: Site[Weighted]) -> str | None:
    window = window_of(site)
    if isinstance(site.attributes, Dense) or not window.contiguous or window.rows.dilation > 1:
        return "the inputs under a window cannot be contiguous"
    if window.rows.kernel == 1 or window.columns.places < 1:
        return "its windows have one row only"
    return _refused(site)


def _nest(v: Vectors, site: Site[Weighted]) -> Nest:
    ending, window = accepted(total_scaling_of(site)), window_of(site)
    if isinstance(site.attributes, Dense) and prod(window.outputs) == 1:
        return SingleRow(site, v, ending)
    return (Flat if window.flat else Lines)(site, v, ending)


def _columns(v: Vectors, site: Site[Weighted]) -> Nest:
    return Columns(site, v, accepted(total_scaling_of(site)))


def on_set(v: Vectors) -> Iterator[Kernel[Weighted]]:
    """The kernels of a set for a convolution or a dense layer."""
    needs = frozenset({v.name})
    yield variant(f"{v.name}_across", needs, _refused, partial(_nest, v))
    yield variant(f"{v.name}_columns", needs, _refused_columns, partial(_columns, v))

"""Depthwise convolution of bytes on sets that sum across their lanes and gather: taps are lanes.

A few channels at a time are copied with their padding. A vector gathers a patch of one channel's plane that holds the
windows of several outputs; each output multiplies it by its own weights, zero outside its window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product as pairs

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Overlap, accepted, bytes_layer, reason_of
from nnbuild.kernels.cross_lane.scaling import total_scaling_of
from nnbuild.kernels.depthwise.tap_gather_tables import FARTHEST, KEPT, MOST_TILES, TOTALS, Patch, TapGatherTables
from nnbuild.kernels.loops.window import window_of
from nnbuild.kernels.loops.window_loops import repeated
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class TapGather(TapGatherTables):
    def demand(self) -> Demand:
        window = self.window
        groups = -(-window.channels // self.group)
        packed = {
            "kernel": np.ascontiguousarray(self._weights()).reshape(-1).view(np.int32),
            "scaling": self.ending.pack(1),
            "places": np.array(self.table, np.uint16),
        }
        distance = -window.rows.size * window.columns.size * window.channels
        in_place = self.multiplier == 1 and not self.ending.scaling.results
        overlaps = (Overlap(distance=distance, step=window.channels),) if in_place else ()
        return Demand(groups, self.area * self.group + self.lanes, "int8", packed, overlaps)

    def emit(self, w: Writer, names: Names) -> None:
        window, group = self.window, self.group
        groups = -(-window.channels // group)
        if self.area > window.rows.size * window.columns.size:
            row, count = ("fill", self.area * group)
            w.bill(count / 8)
            zero = str(quant_of(self.site.inputs[0]).zero_point)
            w(f"{self.v.call(w, row, names.scratch, str(count), zero, of=(4,))};")
        per, columns = len(self.patch.outputs) * self.vectors * self.lanes, len(self.ending.columns)
        filters = group * self.multiplier
        with w.loop("group", "end", start="begin", trips=groups):
            rest = window.channels % group
            w(f"const int32_t channels = {f'group == {groups - 1} ? {rest} : {group}' if rest else group};")
            self._copy(w, names)
            routine, cycles = self._routine(w)
            w.bill(12 + cycles * window.channels / groups)
            pointers = (
                names.scratch,
                f"(const int8_t *){names.packed['kernel']} + group * {filters * per}",
                f"{names.packed['scaling']} + group * {filters * columns}",
                names.packed["places"],
                f"{names.outputs[0]} + group * {filters}",
                "channels",
            )
            w(f"{w.call(routine, *pointers)};")

    def _copy(self, w: Writer, names: Names) -> None:
        """Copies some channels of all positions into the plane."""
        window, group, v = self.window, self.group, self.v
        rows, columns, channels = window.rows, window.columns, window.channels
        with w.loop("y", rows.size):
            w(f"const int8_t *from = {names.inputs[0]} + y * {window.line} + group * {group};")
            first = (rows.pad * columns.padded + columns.pad) * group
            w(f"int8_t *into = {names.scratch} + y * {columns.padded * group} + {first};")
            w.bill(4)
            if channels == group:
                w.bill(3 * window.line / 16)
                w(f"{v.call(w, 'lift', 'into', 'from', str(window.line), of=(0,))};")
                return
            with w.loop("x", columns.size):
                source, to = f"from + x * {channels}", f"into + x * {group}"
                if group == self.lanes and channels % group == 0:
                    w(f"{v.call(w, 'b_store', to, v.call(w, 'inputs', source, of=(4,)), of=(16,))};")
                else:
                    w(f"{v.call(w, 'lift', to, source, 'channels', of=(0,))};")

    def _routine(self, outside: Writer) -> tuple[Instruction, float]:
        """The routine for all outputs of some channels, and the cost of one of them."""
        w = Writer("{prefix}")
        window, patch = self.window, self.patch
        rows, columns = window.rows, window.columns
        kept = len(self.products) <= KEPT
        down, last = patch.rows * patch.down, rows.places - patch.rows * patch.down
        with w.loop("channel", "channels", trips=1):
            with repeated(w, "m", self.multiplier):
                if kept:
                    self._load(w, "")
                with w.loop("block", rows.places if self.blocks > 1 else 1, step=down):
                    held = f"block < {last} ? block : {last}" if rows.places % down and self.blocks > 1 else "block"
                    w(f"const int32_t y = {held};")
                    w(f"const int8_t *line = from + y * {rows.stride * columns.padded * self.group};")
                    w(f"{self.ending.output_type} *line_to = to + y * {columns.places * window.filters};")
                    w("const uint16_t *place = places;")
                    w.bill(6)
                    with w.loop("unit", len(self.tiles) // patch.times):
                        self._unit(w, kept)
                w("to += 1;")
                w(f"k += {len(patch.outputs) * self.vectors * self.lanes};")
                w(f"scaling += {len(self.ending.columns)};")
                w.bill(3)
            w("from += 1;")
            w.bill(1)
        numbers = (
            *(rows.places, columns.places, rows.kernel, columns.kernel, rows.stride, columns.stride),
            *(rows.dilation, columns.dilation, columns.padded, window.filters, self.multiplier, self.group),
            *(patch.down, patch.across, patch.times, patch.rows),
        )
        name = "_".join([self.v.name, "gathered", *map(str, numbers), *self.ending.scaling.marks()])
        head = (
            "void {name}(const int8_t *from, const int8_t *k, const int32_t *scaling, const uint16_t *places, "
            f"{self.ending.output_type} *to, int32_t channels)"
        )
        outside.helpers |= w.helpers
        return w.routine(name, head), w.cycles

    def _load(self, w: Writer, mark: str) -> None:
        for vector, output in self.products:
            place = (output * self.vectors + vector) * self.lanes
            name = f"w{mark}{vector}_{output}"
            self.v.let(w, "bytes", name, self.v.call(w, "aligned", f"k + {place}", of=(4,)))

    def _unit(self, w: Writer, kept: bool) -> None:
        v, outputs, times = self.v, len(self.patch.outputs), self.patch.times
        totals = [f"sum{i}" for i in range(outputs * times)]
        for index, name in enumerate(totals):
            v.declare_total(w, name, index)
        for time in range(times):
            for vector in range(self.vectors):
                at = (time * self.vectors + vector) * self.lanes
                v.let(w, "bytes", f"patch{time}_{vector}", v.call(w, "gather_two", "line", f"place + {at}"))
            mark = "" if kept else f"{time}_"
            if not kept:
                self._load(w, mark)
            for vector, output in self.products:
                total, operands = (
                    totals[time * outputs + output],
                    (f"patch{time}_{vector}", f"w{mark}{vector}_{output}"),
                )
                if vector == self.used[output][0]:
                    w(f"{total} = {v.call(w, 'first_total', *operands, of=(4,))};")
                else:
                    w(f"{total} = {v.call(w, 'total', total, *operands, of=(4,))};")
        self._finish(w, totals)
        w(f"place += {self.record};")
        w.bill(1)

    def _finish(self, w: Writer, totals: list[str]) -> None:
        v, ending = self.v, self.ending
        if not ending.in_lanes:
            names = {name: f"scaling[{i}]" for i, name in enumerate(ending.columns)}
            first = self.record - TOTALS
            lanes = [2 * (i % 4) + i // 4 for i in range(len(totals))]
            targets = [f"line_to[place[{first + lane}]]" for lane in lanes]
            ending.emit_apart(w, dict(zip(ending.kept(w, totals), targets, strict=True)), names)
            return
        names = ending.load(w, v, 0)
        whole = totals + [totals[-1]] * (-len(totals) % 4)
        vectors = [f"all{first}" for first in range(0, len(whole), 4)]
        for index, name in enumerate(vectors):
            v.let(w, "sums", name, v.call(w, "join", *whole[4 * index : 4 * index + 4]), "")
        outputs, places = [ending.scale(w, v, name, names) for name in vectors], f"place + {self.record - TOTALS}"
        if ending.scaling.results:
            for first, output in enumerate(outputs):
                w(f"{v.use(w, 'store_places', 'line_to', output, places, of=(first,))};")
            return
        operands = ("line_to", outputs[0], outputs[-1], places)
        w(f"{v.call(w, 'store_places', *operands, of=(ending.scaling.low, ending.scaling.high))};")


@lru_cache(maxsize=64)
def nest(v: Vectors, site: Site[DepthwiseConv2D]) -> TapGather:
    ending, (rows, columns) = accepted(total_scaling_of(site)), window_of(site).outputs
    draft = TapGather(site, v, ending, Patch(1, 1, 1, 1))
    shapes = [(down, across) for down, across in pairs((1, 2), (1, 2, 4)) if down <= rows and across <= columns]
    found = [
        replace(draft, patch=Patch(down, across, TOTALS // (down * across), most))
        for down, across in shapes
        for most in range(1, -(-rows // down) + 1)
        if most * -(-columns // across) <= MOST_TILES and (most * down <= rows or most == -(-rows // down))
    ]
    found.sort(key=lambda nest: (nest.cost(), nest.patch.rows))
    return next((nest for nest in found if max(nest.table) < FARTHEST), draft)


def refused(v: Vectors, site: Site[DepthwiseConv2D]) -> str | None:
    if site.constant("kernel").dtype != np.int8:
        return "its weights have more than 8 bits"
    if reason := bytes_layer(site) or reason_of(total_scaling_of(site)):
        return reason
    return None if max(nest(v, site).table) < FARTHEST else "the inputs under a window lie too far apart"

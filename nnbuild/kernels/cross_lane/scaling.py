"""Scaling of totals on sets that sum across their lanes: join to vectors, scale by a product's high half, store.

The numbers are those of `numeric.requant_product`; where a channel has none, the vendored function scales totals one by
one, which is exact for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.dsp.scaling import Scaling, plain_form, result, scaling_by
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import Layer
from nnbuild.numeric.requant_product import LONG, Form
from nnbuild.numeric.rounding import Ints, int32s
from nnbuild.ops.site import Site

Rows = tuple[str, str, str, str]
OF_ALL: Rows = ("add_by", "high_by", "less_below", "moved_by")
OF_EACH: Rows = ("add", "high_each", "less_below_each", "moved_by_each")
"""The rows that scale lanes of one channel, and of a channel each."""
FARTHEST = 30
"""The largest shift of sums to the left."""
APART_CYCLES = 30
"""Cycles of an output that the function scales."""


@dataclass(frozen=True, eq=False)
class TotalScaling:
    """`start` holds the start of each channel's sums, for outputs of `bits` bits."""

    scaling: Scaling
    start: Ints

    @property
    def bits(self) -> int:
        return self.scaling.bits

    @property
    def output_type(self) -> str:
        return self.scaling.output_type

    @property
    def in_lanes(self) -> bool:
        """Whether vectors of totals are scaled, not each total."""
        return self.scaling.form is not None or self.scaling.results is not None

    @property
    def columns(self) -> dict[str, Ints]:
        """The constants of every channel; shifts are to the left."""
        found = {"start": self.start, **self.scaling.columns}
        if self.scaling.form and self.scaling.form.left is None:
            found["left"] = self.scaling.left - 1  # the product itself doubles
        if self.scaling.form:
            found["shift"] = -found["shift"]
        return found

    @property
    def cycles(self) -> float:
        """Cycles of four outputs."""
        form = self.scaling.form
        if not self.in_lanes:
            return 4 * APART_CYCLES
        return 24 if form and form.long else 14

    def part(self, channels: slice) -> TotalScaling:
        return TotalScaling(self.scaling.part(channels), self.start[channels])

    def pack(self, channels: int) -> Array:
        """The columns of every block of `channels` channels: channel by channel, or column by column where channels are
        lanes. The last block is padded."""
        found = np.stack(list(self.columns.values()), axis=1)
        whole = np.pad(found, ((0, -len(found) % channels), (0, 0))).reshape(-1, channels, found.shape[1])
        ordered = whole.transpose(0, 2, 1) if channels > 2 else whole
        return int32s(ordered.reshape(-1))

    def emit(self, w: Writer, v: Vectors, totals: list[str], tile: tuple[int, int], real: int, apart: int) -> None:
        """Stores the totals of (positions, channels), a channel's contiguous; `real` channels exist."""
        positions, channels = tile
        if not self.in_lanes:
            count, totals = len(self.columns), self.kept(w, totals)
            for unused in totals[real * positions :]:
                w(f"(void){unused};")
            for first in range(0, real * positions, positions):
                channel = first // positions
                step, start = (channels, channel) if channels > 2 else (1, channel * count)
                names = {name: f"scaling[{start + i * step}]" for i, name in enumerate(self.columns)}
                own = {total: f"to[{i * apart + channel}]" for i, total in enumerate(totals[first : first + positions])}
                self.emit_apart(w, own, names)
        elif channels > 2:
            self._emit_channels(w, v, totals, channels, real)
        else:
            self._emit_positions(w, v, totals, tile, apart)
        w(f"scaling += {channels * len(self.columns)};")
        w.bill(1)

    def _emit_positions(self, w: Writer, v: Vectors, totals: list[str], tile: tuple[int, int], apart: int) -> None:
        positions, channels = tile
        for channel in range(channels):
            own = totals[channel * positions : (channel + 1) * positions]
            four = [own[min(position, positions - 1)] for position in range(4)]
            v.let(w, "sums", f"all{channel}", v.call(w, "join", *four), "")
        outputs = [self.scale(w, v, f"all{channel}", self.load(w, v, channel)) for channel in range(channels)]
        if self.scaling.results:
            for channel, output in enumerate(outputs):
                w(f"{v.use(w, 'store_apart', f'to + {channel}', output, of=(positions, apart))};")
            return
        of = (self.bits, apart, channels, positions, self.scaling.low, self.scaling.high)
        w(f"{v.call(w, 'store_apart', 'to', *outputs, of=of)};")

    def load(self, w: Writer, v: Vectors, channel: int) -> dict[str, str]:
        """Loads a channel's columns, two at a time."""
        names = {name: f"{name}{channel}" for name in self.columns}
        first = channel * len(names)
        for index, name in enumerate(names.values()):
            if index % 2 == 0 and index + 1 < len(names):
                second = list(names.values())[index + 1]
                w(f"int32_t {second};")
                both = v.call(w, "load_two", f"scaling + {first + index}", f"&{second}")
                w(f"const int32_t {name} = {both};")
            elif index % 2 == 0:
                w(f"const int32_t {name} = scaling[{first + index}];")
                w.bill(1)
        return names

    def _emit_channels(self, w: Writer, v: Vectors, totals: list[str], channels: int, real: int) -> None:
        for first in range(0, real, v.lanes):
            value = f"all{first}"
            v.let(w, "sums", value, v.call(w, "join", *totals[first : first + v.lanes]), "")
            names = {}
            for index, name in enumerate(self.columns):
                names[name] = f"{name}{first}"
                v.let(w, "sums", names[name], v.call(w, "load", f"scaling + {index * channels + first}"))
            output, count = self.scale(w, v, value, names, OF_EACH), min(v.lanes, real - first)
            if self.scaling.results:
                v.store(w, f"to + {first}", output, count)
                continue
            of = (self.scaling.low, self.scaling.high, count)
            store = "store_bytes" if self.bits == 8 else "store_words"
            w(f"{v.call(w, store, f'to + {first}', output, of=of)};")

    def scale(self, w: Writer, v: Vectors, value: str, names: dict[str, str], rows: Rows = OF_ALL) -> str:
        """Turns a vector of totals into outputs, not clamped yet unless they are floats, and gives its name."""
        form, results = self.scaling.form, self.scaling.results
        add, high, less, moved = rows
        w(f"{value} = {v.call(w, add, value, names['start'])};")
        if results:
            each = names if rows == OF_EACH else {name: v.call(w, "each", names[name]) for name in results.constants}
            constants = {name: v.use(w, "of_bits", each[name]) for name in results.constants}
            results.declare_vector(w, v, f"{value}_real", value, constants)
            return f"{value}_real"
        assert form is not None
        if "left" in names:
            w(f"{value} = {v.call(w, moved, value, names['left'])};")
        half, result = (1 << 30) if form.rounded else 0, f"{value}_high"
        factors = [names[name] for name in ("multiplier", "lower") if name in names]
        product = self._long(w, v, value, factors, rows) if form.long else v.call(w, high, value, *factors, of=(half,))
        v.let(w, "sums", result, product, "")
        if form.below == 1:
            w(f"{result} = {v.call(w, 'add', result, v.call(w, 'shift_right', value, of=(31,)))};")
        elif form.below is None:
            w(f"{result} = {v.call(w, less, result, value, names['below'])};")
        w(f"{result} = {v.call(w, add, result, names['offset'])};")
        w(f"{value} = {v.call(w, moved, result, names['shift'])};")
        return value

    def _long(self, w: Writer, v: Vectors, value: str, factors: list[str], rows: Rows) -> str:
        """The product with a multiplier and its lower half."""
        multiplier, lower = (v.call(w, "each", name) for name in factors) if rows == OF_ALL else factors
        v.let(w, "sums", f"{value}_lower", v.call(w, "upper", value, lower))
        sign = v.call(w, "shift_right", f"{value}_lower", of=(31,))
        return v.call(w, "scaled_apart", value, multiplier, f"{value}_lower", sign)

    def kept(self, w: Writer, totals: list[str]) -> list[str]:
        """Moves totals out of registers that calls of functions need."""
        for total in totals:
            w(f"const int32_t {total}_kept = {total};")
        w.bill(len(totals))
        return [f"{total}_kept" for total in totals]

    def emit_apart(self, w: Writer, outputs: dict[str, str], names: dict[str, str]) -> None:
        """Scales one channel's totals one by one."""
        for total, target in outputs.items():
            value = f"{total}_out"
            w(f"int32_t {value} = (int32_t)((uint32_t){total} + (uint32_t){names['start']});")
            own = {name: constant for name, constant in names.items() if name != "start"}
            value = result(w, self.scaling, value, own)
            w(f"{target} = ({self.output_type}){value};")
            w.bill(4)


@lru_cache(maxsize=256)
def total_scaling_of(site: Site[Weighted]) -> TotalScaling | str:
    """The scaling of a site; sums wrap to 32 bits around the centre of each channel."""

    def forms(layer: Layer) -> list[Form]:
        return [plain_form(layer) if layer.rule == "twice" else Form(left=1), Form(below=None, least=1), LONG]

    scaling = scaling_by(site, forms, FARTHEST)
    return scaling if isinstance(scaling, str) else TotalScaling(scaling, sums_of(site).start - scaling.centre)

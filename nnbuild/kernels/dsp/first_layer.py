"""First layers on Cortex-M4 and up, whose few channels make windows contiguous within a row.

Each input row under a row of windows is spread once into a line of 16-bit numbers, padding included. A tile of two
positions reads its words there, without a copy for each window. So words must begin at the same place in every window,
that is, neighbouring windows must be an even number of inputs apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product as combined

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Demand, Kernel, Names, Nest, Overlap, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp import tile_routine
from nnbuild.kernels.dsp.assembly_tile import Lines
from nnbuild.kernels.dsp.input_layouts import MOVE, fill
from nnbuild.kernels.dsp.staged_weights import staged
from nnbuild.kernels.dsp.tile import Tile
from nnbuild.kernels.dsp.weight_layouts import Layout, Packed, Wide
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.kernels.loops.window import Weighted, Window, WindowNest, window_of
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.overlaps import rows
from nnbuild.kernels.parts.residual import refusal, residual_of
from nnbuild.model.graph import Array
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

NEEDS = frozenset({"armv7em_dsp"})
FARTHEST = 2000
"""Elements that a load can advance a pointer by."""
MOST_PAIRS = 12
"""Pairs of a row of taps, which are unrolled."""
AT_ONCE = 4
"""Words of bytes per iteration of the loop that spreads them."""
CALL_CYCLES = 10


def lines_of(window: Window) -> Lines:
    pairs = -(-window.run // 2)
    reach = max(window.padded_line, (window.columns.places - 1) * window.step + 2 * pairs)
    return Lines(window.rows.kernel, pairs, window.step, reach + reach % 2)


@dataclass(frozen=True, eq=False)
class FirstLayer(WindowNest[Tile]):
    """Two positions at a time."""

    @property
    def lines(self) -> Lines:
        return lines_of(self.window)

    def demand(self) -> Demand:
        size = 2 * self.lines.rows * self.lines.length
        window = self.window
        return Demand(
            extent=window.rows.places,
            scratch=-(-size // 8) * 8,
            scratch_type="int64",
            packed=self._packed(),
            overlaps=(
                *rows(self.site, window.rows, ahead=window.rows.stride),
                *([Overlap(input=1)] if self.site.tail else []),
            ),
            rows=True,
        )

    def _packed(self) -> dict[str, Array]:
        sums, lines = sums_of(self.site), self.lines
        taps = sums.weights.reshape(lines.rows, self.window.run, -1)
        pairs = np.pad(taps, ((0, 0), (0, 2 * lines.pairs - self.window.run), (0, 0)))
        return tiles.packed(self.lanes, sums, pairs.reshape(-1, 2, taps.shape[-1]), self.window.filters)

    def emit(self, w: Writer, names: Names) -> None:
        window, lines = self.window, self.lines
        w(f"int16_t *const lines = (int16_t *){names.scratch};")
        fill(w, "int16", "lines", self._zero, lines.rows * lines.length)
        with w.loop("y", "end", start="begin", trips=window.rows.places):
            self._spread(w, names.inputs[0])
            with w.loop("x", window.columns.places, step=2):
                self._pair(w, names)

    @property
    def _zero(self) -> int:
        return quant_of(self.site.inputs[0]).zero_point

    def _spread(self, w: Writer, source: str) -> None:
        """Spreads the input rows under the windows of row y, between the padding."""
        window, axis, taken = self.window, self.window.rows, self.window.columns.taken * self.window.channels
        if taken <= 0:
            return
        with w.loop("ky", axis.kernel):
            w(f"const int32_t row = {total(axis.position('y'), product('ky', axis.dilation))};")
            place = total(product("ky", self.lines.length), str(window.columns.pad * window.channels))
            w(f"int16_t *to = lines + {place};")
            w.bill(6)
            with w.block(f"if (row >= 0 && row < {axis.size})"), w.trips(axis.inside_share):
                w(f"const int8_t *from = {source} + {product('row', window.line)};")
                spread(w, "to", "from", taken)
            with w.block("else"), w.trips(1 - axis.inside_share):
                fill(w, "int16", "to", self._zero, taken)

    def _pair(self, w: Writer, names: Names) -> None:
        """All channels of positions x and x + 1."""
        window, tile = self.window, self.lanes
        place = total(
            product("y", window.columns.places * window.filters),
            product("x", window.filters),
        )
        w(f"const int64_t *const patch = (const int64_t *)(const void *)(lines + {product('x', window.step)});")
        w(f"int8_t *to0 = {names.outputs[0]} + {place};")
        w(f"int8_t *to1 = to0 + {window.filters};")
        w.bill(8)
        if tile.beside:
            w(f"const int8_t *beside0 = {names.inputs[1]} + {place};")
            w(f"const int8_t *beside1 = beside0 + {window.filters};")
            w.bill(5)
        tile_routine.declare(w, tile, names)
        tile_routine.all_runs(w, tile, window.filters)


def spread(w: Writer, to: str, source: str, count: int) -> None:
    """Widens bytes to 16-bit numbers in their order; writes nothing behind them."""
    whole = count // (4 * AT_ONCE)
    body = Writer("{prefix}")
    with body.loop("i", "count", trips=1):
        for at in range(AT_ONCE):  # together, since loads overlap
            loaded = DSP.call(body, "load_bytes", f"from + {4 * at}" if at else "from", of=(4,))
            body(f"const int32_t all{at} = {loaded};")
        for at in range(AT_ONCE):
            with body.block(""):
                body(f"const int32_t even = {DSP.call(body, 'p_even_bytes', f'all{at}')};")
                body(f"const int32_t odd = {DSP.call(body, 'p_odd_bytes', f'all{at}')};")
                for half, name in enumerate((("p_low_halves", "even", "odd"), ("p_high_halves", "odd", "even"))):
                    value = DSP.call(body, *name)
                    target = f"(int8_t *)(to + {4 * at + 2 * half})"
                    body(f"{DSP.call(body, 'write_bytes', target, value)};")
        body(f"from += {4 * AT_ONCE};")
        body(f"to += {4 * AT_ONCE};")
        body.bill(2)
    head = "void {name}(int16_t *to, const int8_t *from, int32_t count)"
    if whole:
        w.bill(CALL_CYCLES, CALL_CYCLES)
        w.add(body.counts.times(whole))
        spreading = body.routine("spread_bytes", head)
        w(f"{w.call(spreading, to, source, str(whole))};")
    for at in range(4 * AT_ONCE * whole, count):
        w(w.use(MOVE, f"{to}[{at}]", f"{source}[{at}]"))


def _tile(layout: Layout, in_ram: bool, site: Site[Weighted]) -> Tile:
    scaling, lines = accepted(tiles.scaling_of(layout, site)), lines_of(window_of(site))
    longest = tiles.SHORT if in_ram else tiles.LONGEST
    pairs, residual = lines.rows * lines.pairs, residual_of(site)
    return Tile(layout, scaling, pairs, 2, residual, False, longest, in_ram, lines, site.shared)


def _nest(layout: Layout, in_ram: bool, site: Site[Weighted]) -> Nest:
    return FirstLayer(site, _tile(layout, in_ram, site))


def _accepts(layout: Layout, site: Site[Weighted]) -> str | None:
    refused = only_int8(site) or refusal(site)
    if refused:
        return refused
    window, lines = window_of(site), lines_of(window_of(site))
    if site.constant("kernel").dtype != np.int8 and isinstance(layout, Packed):
        return "its weights do not fit 8 bits"
    if not window.contiguous or window.rows.kernel == 1:
        return "its windows are not contiguous within a row"
    if window.step % 2 or window.columns.places % 2:
        return "its windows, two by two, do not begin at words"
    if lines.pairs > MOST_PAIRS or lines.length > FARTHEST:
        return "its rows of taps are too long"
    if any(lines.pairs * layout.words(run.width) % 2 for run in tiles.runs(window.filters)):
        return "the weights of a row of taps do not fill pairs of words"
    return reason_of(tiles.scaling_of(layout, site))


def variants(fuses: frozenset[str]) -> tuple[Kernel[Weighted], ...]:
    found = []
    layouts: tuple[Layout, ...] = (Wide(), Packed())
    for layout, in_ram in combined(layouts, (False, True)):
        name = f"lines_{layout.name}{'_staged' if in_ram else ''}"
        kernel = variant(name, NEEDS, partial(_accepts, layout), partial(_nest, layout, in_ram), fuses)
        found.append(staged(kernel) if in_ram else kernel)
    return tuple(found)

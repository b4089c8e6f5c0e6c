"""Matrix products of two tensors on Cortex-M4 and M7: the right one is packed like weights, then every row of the left
one is a position of a dense layer.

All columns have one scale. A work item is a matrix, as each must be packed before its first row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Demand, Names, accepted, only_int8, reason_of, variant
from nnbuild.kernels.dsp import tile as tiles
from nnbuild.kernels.dsp.input_layouts import STORE_TWO
from nnbuild.kernels.dsp.patches import NEEDS, Patches, patch_of
from nnbuild.kernels.dsp.scaling import Scaling, chosen, plain_form
from nnbuild.kernels.dsp.tile import LOAD, Run, Tile
from nnbuild.kernels.dsp.weight_layouts import WORD, Wide, doublets
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops.vector_matmul import each_matrix
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT32, ints
from nnbuild.ops.integer import quant_of
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

CALL_CYCLES = 16
PAIR = 0x10001
"""A one in each half of a word."""


@lru_cache(maxsize=256)
def scaling_of(site: Site[MatMul]) -> Scaling | str:
    """The scaling of its sums, with a constant shift where possible, or why there is none."""
    layer, most = layer_of(site), ints([1])
    right = -site.attributes.scale(site).shift
    plain = plain_form(layer)
    levels = [replace(plain, level=right)] if right > 0 else []
    return chosen(layer, [*levels, plain], most, ints([INT32[1]]), 8)


def _accepts(site: Site[MatMul]) -> str | None:
    return only_int8(site) or reason_of(scaling_of(site))


@dataclass(frozen=True, eq=False)
class DspMatmul(Patches):
    @property
    def scaling(self) -> Scaling:
        return self.lanes.scaling

    @property
    def turned(self) -> bool:
        return self.site.of(MatMul).attributes.turned

    @property
    def runs(self) -> list[Run]:
        return tiles.runs(self.window.filters)

    def demand(self) -> Demand:
        laid_out = sum(run.count * self.lanes.sizes(run.width)[0] for run in self.runs)
        return Demand(
            extent=prod(self.site.shape()[:-2]),
            scratch=8 * (self.patch.pairs + laid_out),
            scratch_type="int64",
            packed={"scaling": self._scaling_constants()},
        )

    def _scaling_constants(self) -> Array:
        values = [int(column[0]) & WORD for column in self.scaling.columns.values()]
        return doublets(ints(values))

    def emit(self, w: Writer, names: Names) -> None:
        w(f"int64_t *const patch = {names.scratch};")
        w(f"int64_t *const columns = patch + {self.patch.pairs};")
        with each_matrix(w, self.site.of(MatMul), names) as (left, right, out):
            w(f"const int8_t *const rows = {left};")
            w(f"const int8_t *from = {right};")
            w(f"int8_t *const result = {out};")
            w("int64_t *laid = columns;")
            w.bill(8)
            for run in self.runs:
                self._lay_out(w, run, names.packed["scaling"])
            inner = Names(("rows",), ("result",), {"kernel": "columns"})
            with w.loop("x", self.width, step=2):
                w(f"const int32_t next = {f'x + 1 < {self.width} ? x + 1 : x' if self.width % 2 else 'x + 1'};")
                self._pair(w, inner)

    def _lay_out(self, w: Writer, run: Run, scaling: str) -> None:
        """Prints a call that packs the columns of a run; advances `laid` and `from`."""
        routine, cycles = _routine(self, run)
        w.bill(CALL_CYCLES + run.count * cycles)
        zeros = [quant_of(tensor).zero_point for tensor in self.site.inputs]
        centred = -zeros[1] & 0xFFFF
        pair = int(np.int32(np.uint32(centred << 16 | centred)))
        start = -int(self.scaling.centre[0] * self.scaling.factor[0])
        w(f"{w.call(routine, 'laid', 'from', str(run.count), str(pair), str(-zeros[0]), str(start), scaling)};")
        w(f"laid += {run.count * self.lanes.sizes(run.width)[0]};")
        w(f"from += {run.count * run.width * (self.window.depth if self.turned else 1)};")


def _routine(nest: DspMatmul, run: Run) -> tuple[Instruction, float]:
    """The routine that packs blocks of columns, and the cost of one."""
    window, turned, doubled = nest.window, nest.turned, int(nest.scaling.factor[0]) == 2
    w = Writer("{prefix}")
    with w.loop("block", "blocks", trips=1):
        _block(w, nest, run, turned, doubled)
        w(f"from += {run.width * (window.depth if turned else 1)};")
    size = window.depth if turned else window.filters
    marks = ["rows" if turned else "columns", f"{window.depth}x{run.width}", str(size), str(len(nest.scaling.columns))]
    name = "_".join(["lay_out", *marks, *["twice"] * doubled])
    head = (
        "void {name}(int64_t *to, const int8_t *from, int32_t blocks, int32_t centre, int32_t zero, int32_t start, "
        "const int64_t *scaling)"
    )
    return w.routine(name, head), w.cycles


def _block(w: Writer, nest: DspMatmul, run: Run, turned: bool, doubled: bool) -> None:
    """One block: the starts of its sums, its pairs of numbers, its scaling constants."""
    depth, line = nest.window.depth, nest.window.filters
    w("int64_t *const first = to;")
    for channel in range(run.width):
        w(f"int32_t sum{channel} = 0;")
    w(f"to += {-(-run.width // 2)};")
    if turned:
        for channel in range(1, run.width):
            w(f"const int8_t *from{channel} = from + {channel * depth};")
        w("const int8_t *from0 = from;")
    else:
        w("const int8_t *row = from;")
    w.bill(2 * run.width)
    with w.loop("i", depth // 4):
        words = _rows(w, run, [4] * run.width) if turned else _columns(w, run, line, 4)
        _store(w, words, doubled)
        if turned:
            for channel in range(run.width):
                w(f"from{channel} += 4;")
        else:
            w(f"row += {4 * line};")
        w.bill(run.width if turned else 1)
    if depth % 4:
        rest = depth % 4
        with w.block(""):
            words = _rows(w, run, [rest] * run.width) if turned else _columns(w, run, line, rest)
            _store(w, words, doubled)
    for channel in range(0, run.width, 2):
        parts = [f"start + sum{channel + i} * zero" if channel + i < run.width else "0" for i in range(2)]
        w(w.use(STORE_TWO, f"first[{channel // 2}]", DSP.call(w, "two", *parts)))
        w.bill(2)
    for index in range(nest.lanes.constants_size(run.width)):
        w(f"to[{index}] = scaling[{index}];")
    w(f"to += {nest.lanes.constants_size(run.width)};")
    w.bill(8)


def _rows(w: Writer, run: Run, counts: list[int]) -> list[list[str]]:
    """Two words of pairs, in the order of inputs, for each column whose numbers are contiguous."""
    halves: list[list[str]] = [[], []]
    for channel, count in enumerate(counts):
        w(w.use(LOAD, f"x{channel}", DSP.call(w, "load_bytes", f"from{channel}", of=(count,))))
        for half, operation in enumerate(("p_add_even_bytes", "p_add_odd_bytes")):
            name = f"{'ab'[half]}{channel}"
            w(f"int32_t {name} = {_whole(w, DSP.call(w, operation, 'centre', f'x{channel}'), half, count)};")
            halves[half].append(name)
    return halves


def _whole(w: Writer, value: str, half: int, count: int) -> str:
    """Masks numbers beyond the end: of four, a word holds the first and third, or the second and fourth."""
    real = len(range(half, count, 2))
    if real == 0:
        return "0"
    return value if real == 2 else f"{DSP.call(w, 'p_low_halves', value, '0')}"


def _columns(w: Writer, run: Run, line: int, count: int) -> list[list[str]]:
    """The same for columns whose numbers lie a line apart, from `count` rows."""
    for row in range(count):
        place = f"row + {row * line}" if row else "row"
        w(w.use(LOAD, f"x{row}", DSP.call(w, "load_bytes", place, of=(run.width,))))
        for half, operation in enumerate(("p_add_even_bytes", "p_add_odd_bytes")[: run.width]):
            w(f"const int32_t {'eo'[half]}{row} = {DSP.call(w, operation, 'centre', f'x{row}')};")
    halves: list[list[str]] = [[], []]
    for channel in range(run.width):
        for half in range(2):
            rows = [f"{'eo'[channel % 2]}{row}" if row < count else "0" for row in (half, half + 2)]
            operation, rows = ("p_high_halves", rows[::-1]) if channel >= 2 else ("p_low_halves", rows)
            name = f"{'ab'[half]}{channel}"
            w(f"int32_t {name} = {DSP.call(w, operation, *rows)};")
            halves[half].append(name)
    return halves


def _store(w: Writer, halves: list[list[str]], doubled: bool) -> None:
    """Stores two pairs of every column of a block, and their sums."""
    for half in halves:
        for channel, name in enumerate(half):
            if doubled:
                w(f"{name} = {DSP.call(w, 'p_add', name, name)};")
            w(f"sum{channel} = {DSP.call(w, 'p_dot', name, str(PAIR), f'sum{channel}')};")
    names = halves[0] + halves[1]
    for at in range(0, len(names), 2):
        w(w.use(STORE_TWO, f"to[{at // 2}]", DSP.call(w, "two", *names[at : at + 2])))
    w(f"to += {len(names) // 2};")
    w.bill(1)


def _nest(site: Site[MatMul]) -> DspMatmul:
    return DspMatmul(site, Tile(Wide(), accepted(scaling_of(site)), patch_of(site).pairs, 2, alike=True))


VARIANTS = (variant("patches_wide", NEEDS, _accepts, _nest),)

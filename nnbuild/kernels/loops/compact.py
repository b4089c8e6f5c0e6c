"""Convolutions and dense layers on Cortex-M4 and M7 for a small program: all of a model share three routines, whose
shapes are arguments.

Weights are packed, two channels a word, and constants take 9 bytes a channel: where its sum starts and its
multiplier as int32, and its shift; the offset is worked out from the shift. A dense layer's row is computed as two
equal positions: the second costs time, but a routine for one would cost code.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Demand, Names, Nest, only_int8, variant
from nnbuild.kernels.dsp.inputs import expand
from nnbuild.kernels.dsp.scaling import Scaling, chosen, general, plain_form
from nnbuild.kernels.dsp.weights import LOAD_TWO, Packed, high, in_pairs, low, padded_taps
from nnbuild.kernels.loops.patches import NEEDS
from nnbuild.kernels.overlaps import rows, tiles
from nnbuild.kernels.sums import Sums, layer_of, sums_of
from nnbuild.kernels.unpacked import unpacked
from nnbuild.kernels.window import Weighted, WindowNest, window_of
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

LAYOUT = Packed()
WIDTH = 4
"""Channels of a block; the last one is filled up with zeros."""
ONE = Row("{0} = {1};", 1, 0.5)
LOOP_CYCLES = 7
"""Of the inner loop, with what it keeps on the stack."""
TILE_CALL = 30
"""Cycles of a call."""


@lru_cache(maxsize=256)
def scaling_of(site: Site[Weighted]) -> Scaling | str:
    """The rule of its sums, or why they cannot be computed so."""
    sums, layer = sums_of(site), layer_of(site)
    room = LAYOUT.room(len(sums.start))
    return LAYOUT.refusal(sums) or chosen(layer, [plain_form(layer, True)], np.zeros_like(room), room, 8)


def shape_of(site: Site[Weighted], pairs: int, filters: int) -> Compact:
    scaling = scaling_of(site)
    assert isinstance(scaling, Scaling)
    return Compact(scaling, pairs, filters)


@dataclass(frozen=True, eq=False)
class Compact:
    """What the routines want to know of an operation's sums: their rule and how many pairs of inputs they take."""

    scaling: Scaling
    pairs: int
    filters: int

    @property
    def told(self) -> tuple[str, ...]:
        """What is stored of every channel beside its start, its multiplier and its shift."""
        own = tuple(name for name in self.scaling.columns if name not in ("multiplier", "shift"))
        usual = self.scaling.form is not None and np.array_equal(
            _usual_offset(self.scaling), self.scaling.columns["offset"]
        )
        return () if usual else own

    @property
    def blocks(self) -> int:
        return -(-self.filters // WIDTH)


def _usual_offset(scaling: Scaling) -> Ints:
    """The zero point and a half, above the point."""
    return (np.int64(2 * scaling.zero + 1) << scaling.columns["shift"]) >> 1


def pack(sums: Sums, shape: Compact, channels: slice) -> dict[str, Array]:
    """The weights and the constants of some channels, in blocks of four; shifts apart, in bytes."""
    own = shape.scaling.part(channels)
    missing = -len(own.left) % WIDTH
    pairs = in_pairs(sums.weights[:, channels], "int8")
    pairs = np.pad(pairs, ((0, 0), (0, 0), (0, missing)))
    start = LAYOUT.start(np.pad(sums.start[channels] - own.centre, (0, missing)), own)
    columns = dict(own.columns)
    if "offset" in columns:
        columns["offset"] = columns["offset"] - (np.int64(own.zero) << columns["shift"])
    told = [np.pad(columns[name], (0, missing)) for name in ("multiplier", *shape.told)]
    blocks = [slice(at, at + WIDTH) for at in range(0, len(start), WIDTH)]
    return {
        "kernel": np.concatenate([LAYOUT.pack(pairs[:, :, block], own) for block in blocks]),
        "scaling": np.concatenate([column[block] for block in blocks for column in (start, *told)]).astype(np.int32),
        "shift": np.pad(own.columns["shift"], (0, missing)).astype(np.int8),
    }


def multiply(w: Writer, shape: Compact, pointers: Sequence[str], to: Sequence[str]) -> None:
    """Prints the call that computes all channels of the two positions laid out in `patch`."""
    scaling = shape.scaling
    rule = scaling.function or ("twice" if scaling.doubled else "once")
    rule += "_offsets" if shape.told and scaling.form else ""
    body = Writer("{prefix}")
    with body.block("for (; channels > 0; channels -= 4)"):
        _block(body, shape)
    head = (
        "void {name}(const int64_t *patch, int32_t pairs, const int64_t *k, const int32_t *scaling, "
        "const int8_t *shift, int8_t *to0, int8_t *to1, int32_t channels, int32_t zero, int32_t low, int32_t high)"
    )
    routine = Instruction(
        f"compact_tile_{rule}", head, str(body), 0, uses=tuple(body.instructions.values()), outlined=True
    )
    w.helpers |= body.helpers
    w.bill(TILE_CALL, TILE_CALL)
    w.add(body.whole.times(shape.blocks))
    w.reads(8 * shape.pairs * shape.blocks)
    numbers = (str(shape.filters), str(scaling.zero), str(scaling.low), str(scaling.high))
    w(f"{w.call(routine, 'patch', str(shape.pairs), *pointers, *to, *numbers)};")


def _block(w: Writer, shape: Compact) -> None:
    for channel in range(WIDTH):
        w(w.use(ONE, f"int32_t sum0{channel}", f"scaling[{channel}]"))
        w(w.use(ONE, f"int32_t sum1{channel}", f"sum0{channel}"))
    w("const int64_t *x = patch;")
    with w.block("for (const int64_t *const end = patch + pairs; x != end; x += 2)"), w.trips(shape.pairs // 2):
        for pair in range(2):
            w(w.use(LOAD_TWO, f"x{pair}", f"x[{pair}]"))
            LAYOUT.step(w, pair, [low(f"x{pair}"), high(f"x{pair}")], WIDTH)
        w("k += 2;")
        w.bill(LOOP_CYCLES)
    LAYOUT.finish(w, WIDTH, 2, shape.scaling)
    names = ", ".join(f"sum{position}{channel}" for channel in range(WIDTH) for position in range(2))
    w(f"const int32_t sums[8] = {{{names}}};")
    w.bill(8)
    with w.loop("channel", "4 && channel < channels", trips=shape.filters / shape.blocks):
        _scale(w, shape)
    w(f"scaling += {4 * (2 + len(shape.told))};")
    w("shift += 4;")
    w("to0 += 4;")
    w("to1 += 4;")
    w.bill(6)


def _scale(w: Writer, shape: Compact) -> None:
    scaling, told = shape.scaling, {name: f"scaling[{8 + 4 * i} + channel]" for i, name in enumerate(shape.told)}
    w("const int32_t n = shift[channel];")
    if scaling.form:
        half = f"{told['offset']} + zero * (1 << n)" if told else "((2 * zero + 1) * (1 << n)) >> 1"
        w(f"const int32_t offset = {half};")
    w.bill(7, 5)
    with w.loop("position", 2):
        w("const int32_t sum = sums[2 * channel + position];")
        if scaling.form is None:
            names = {**told, "multiplier": "scaling[4 + channel]", "shift": "n"}
            value = f"{general(w, scaling, 'sum', names)} + zero"
        elif scaling.doubled:
            value = DSP.call(w, "high_rounded_add", "sum", "scaling[4 + channel]", "offset + (sum >> 31)") + " >> n"
        else:
            value = DSP.call(w, "high_add", "sum", "scaling[4 + channel]", "offset") + " >> n"
        w(f"const int32_t value = {value};")
        w("const int32_t raised = value < low ? low : value;")
        w()
        w("(position ? to1 : to0)[channel] = (int8_t)(raised > high ? high : raised);")
        w.bill(11, 4)


def gather_routine() -> Instruction:
    """Copies the inputs under one window, with the zero point where there are none.

    `window` holds rows, columns and channels of the input, the kernel's rows and columns, both dilations, the inputs
    of one tap, and the zero point.
    """
    w = Writer("{prefix}")
    names = ("rows", "columns", "channels", "kernel_rows", "kernel_columns", "step_down", "step_along", "depth", "zero")
    for index, name in enumerate(names):
        w(f"const int32_t {name} = window[{index}];")
    w()
    with _counted(w, "ky", "kernel_rows"):
        w("const int32_t row = top + ky * step_down;")
        w()
        with _counted(w, "kx", "kernel_columns"):
            w("const int32_t column = left + kx * step_along;")
            w()
            with w.block("if (row >= 0 && row < rows && column >= 0 && column < columns)"):
                w("const int8_t *from = in + (row * columns + column) * channels;")
                w("int32_t i = 0;")
                w()
                with w.block("for (; i + 4 <= depth; i += 4)"):
                    w(f"{DSP.call(w, 'write_bytes', 'to + i', DSP.call(w, 'load_bytes', 'from + i', of=(4,)))};")
                with w.block("for (; i < depth; ++i)"):
                    w("to[i] = from[i];")
            with w.block("else"), _counted(w, "i", "depth"):
                w("to[i] = (int8_t)zero;")
            w("to += depth;")
    head = "void {name}(int8_t *to, const int8_t *in, int32_t top, int32_t left, const int16_t *window)"
    return Instruction("compact_gather", head, str(w), 0, uses=tuple(w.instructions.values()), outlined=True)


def _counted(w: Writer, variable: str, count: str) -> AbstractContextManager[None]:
    return w.loop(variable, count, trips=1)


def gather_cycles(taps: int, depth: int) -> float:
    """What one call costs."""
    return 40 + taps * (18 + depth // 4 * 6 + depth % 4 * 5)


POINTERS = {"k": ("kernel", "int64_t"), "scaling": ("scaling", "int32_t"), "shift": ("shift", "int8_t")}


def _accepts(site: Site[Weighted]) -> str | None:
    refused = only_int8(site)
    if refused:
        return refused
    if site.op.kind == "dense" and site.shape()[-1] % 4:
        return "its inputs are no multiple of 4"
    scaling = scaling_of(site)
    return scaling if isinstance(scaling, str) else None


@dataclass(frozen=True, eq=False)
class Gathered(WindowNest[Compact]):
    """The inputs under two windows are gathered by a routine, group by group."""

    @property
    def taps(self) -> int:
        return 2 * self.lanes.pairs

    def demand(self) -> Demand:
        window, sums = self.window, sums_of(self.site)
        parts = [
            pack(sums, self.lanes, slice(first, first + window.share))
            for first in range(0, window.filters, window.share)
        ]
        packed = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        apart = tiles(self.site, window.rows, window.columns, 2)
        return Demand(
            extent=window.rows.places,
            scratch=-(-(4 * self.taps + 2 * self.taps) // 8) * 8,
            scratch_type="int64",
            packed=packed | {"window": self._numbers()},
            rows=True,
            overlaps=apart if window.groups == 1 else rows(self.site, window.rows),
        )

    def _numbers(self) -> Array:
        """As the gathering routine wants them."""
        window, down, along = self.window, self.window.rows, self.window.columns
        sizes = [down.size, along.size, window.channels, down.kernel, along.kernel, down.dilation, along.dilation]
        return np.array([*sizes, window.depth, quant_of(self.site.inputs[0]).zero_point], np.int16)

    def emit(self, w: Writer, names: Names) -> None:
        window, shape, taps = self.window, self.lanes, self.taps
        places = window.columns.places
        w(f"int64_t *const patch = {names.scratch};")
        w(f"int8_t *const gathered = (int8_t *)(patch + {shape.pairs});")
        for i in range(window.taps, taps):
            w(f"gathered[{i}] = gathered[{taps + i}] = 0;")
        with w.loop("y", "end", start="begin", trips=window.rows.places), w.loop("x", places, step=2):
            w(f"const int32_t next = x + 1 < {places} ? x + 1 : x;")
            w(f"int8_t *to = {names.outputs[0]} + {product(f'y * {places} + x', window.filters)};")
            w.bill(9)
            if window.groups == 1:
                self._group(w, names, names.inputs[0], tuple(names.packed[role] for role, _ in POINTERS.values()))
                return
            for name, (role, kind) in POINTERS.items():
                w(f"const {kind} *{name} = {names.packed[role]};")
            with w.loop("group", window.groups):
                self._group(w, names, f"{names.inputs[0]} + {product('group', window.depth)}", tuple(POINTERS))
                w(f"k += {shape.blocks * shape.pairs};")
                w(f"scaling += {4 * (2 + len(shape.told)) * shape.blocks};")
                w(f"shift += {4 * shape.blocks};")
                w(f"to += {window.share};")

    def _group(self, w: Writer, names: Names, source: str, pointers: tuple[str, ...]) -> None:
        window, taps = self.window, self.taps
        top, place = window.rows.position("y"), names.packed["window"]
        routine = gather_routine()
        buffers = ("gathered", f"gathered + {taps}")
        for buffer, at in zip(buffers, ("x", "next"), strict=True):
            gathering = gather_cycles(window.rows.kernel * window.columns.kernel, window.depth)
            w.bill(gathering, gathering / 3)
            w(f"{w.call(routine, buffer, source, top, window.columns.position(at), place)};")
        expand(w, "int8", "patch", buffers, taps, most=1)
        multiply(w, self.lanes, pointers, ("to", f"to + {product('next - x', window.filters)}"))


@dataclass(frozen=True, eq=False)
class PairedRows(WindowNest[Compact]):
    """A dense layer's rows of inputs, of which a last one without a neighbour is taken twice."""

    def demand(self) -> Demand:
        window = self.window
        return Demand(
            extent=window.rows.places,
            scratch=8 * self.lanes.pairs,
            scratch_type="int64",
            packed=pack(sums_of(self.site), self.lanes, slice(0, window.filters)),
            overlaps=tiles(self.site, window.rows, window.columns, 2),
        )

    def emit(self, w: Writer, names: Names) -> None:
        window = self.window
        w(f"int64_t *const patch = {names.scratch};")
        with w.loop("row", "end", start="begin", step=2, trips=-(-window.rows.places // 2)):
            w("const int32_t next = row + 1 < end ? row + 1 : row;")
            w.bill(4)
            sources = tuple(f"{names.inputs[0]} + {product(row, window.depth)}" for row in ("row", "next"))
            expand(w, "int8", "patch", sources, window.depth, most=1)
            pointers = [names.packed[role] for role, _ in POINTERS.values()]
            to = [f"{names.outputs[0]} + {product(row, window.filters)}" for row in ("row", "next")]
            multiply(w, self.lanes, pointers, to)


def _nest(site: Site[Weighted]) -> Nest:
    window = window_of(site)
    shape = shape_of(site, padded_taps(window.taps) // 2, window.share)
    return (PairedRows if site.op.kind == "dense" else Gathered)(site, shape)


_COMPACT = variant("compact", NEEDS, _accepts, _nest)
VARIANTS = (_COMPACT, *unpacked(_COMPACT))

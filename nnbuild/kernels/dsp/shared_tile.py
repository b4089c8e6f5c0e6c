"""One tile for all layers of a small program: two positions by four channels, whose sizes are stored with the weights.

Weights are packed, two channels a word. Constants take 9 bytes a channel: the start of its sum, its multiplier and its
shift; the offset is computed from the shift, unless it differs. A layer is one stream of words: first the numbers of
input pairs and channels, the zero point and bounds; then blocks of four channels, each with starts, weights, shifts in
one word, and multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp import assembly_tile
from nnbuild.kernels.dsp.scaling import Scaling, chosen, general, plain_form
from nnbuild.kernels.dsp.weight_layouts import LOAD_TWO, Packed, add_pair, high, in_pairs, low
from nnbuild.kernels.lanes.layer_sums import Sums, layer_of, sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8, INT32, Ints, int32s, ints
from nnbuild.ops.site import Site

LAYOUT = Packed()
WIDTH = 4
"""Channels of a block; the last block is padded with zeros."""
CALL, CALL_WORDS = 24, 22
"""Cycles of a call: saving registers, passing arguments, reading the header, returning; the words that this moves."""
BYTES = 0x01010101
"""A one in each byte of a word."""


@lru_cache(maxsize=256)
def scaling_of(site: Site[Weighted]) -> Scaling | str:
    """The scaling of its sums, or why it has none of this kind."""
    sums, layer = sums_of(site), layer_of(site)
    room = LAYOUT.room(len(sums.start))
    return LAYOUT.refusal(sums) or chosen(layer, [plain_form(layer, True)], np.zeros_like(room), room, 8)


@dataclass(frozen=True, eq=False)
class Shared:
    """An operation's sums as the routine sees them: their scaling and the number of input pairs."""

    scaling: Scaling
    pairs: int
    filters: int

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns stored for every channel besides its start and its shift."""
        others = tuple(name for name in self.scaling.columns if name not in ("multiplier", "shift"))
        return ("multiplier", *(() if _is_usual(self.scaling) else others))

    @property
    def bounded(self) -> bool:
        """Whether outputs have narrower bounds than a byte."""
        return (self.scaling.low, self.scaling.high) != INT8

    @property
    def blocks(self) -> int:
        return -(-self.filters // WIDTH)

    @property
    def words(self) -> int:
        """Words of a layer, or of one of its groups."""
        return (5 if self.bounded else 3) + self.blocks * (WIDTH * (1 + len(self.stored)) + 2 * self.pairs + 1)


def _is_usual(scaling: Scaling) -> bool:
    """Whether every offset is the zero point plus a half, before the shift."""
    if scaling.form is None:
        return False
    twice: Ints = np.int64(2 * scaling.zero + 1) << scaling.columns["shift"]
    return bool((np.abs(twice) <= INT32[1]).all()) and np.array_equal(twice >> 1, scaling.columns["offset"])


def pack(sums: Sums, shape: Shared, channels: slice) -> Array:
    """The stream of some channels."""
    own = shape.scaling.part(channels)
    missing = -len(own.left) % WIDTH
    pairs = np.pad(in_pairs(sums.weights[:, channels], "int8"), ((0, 0), (0, 0), (0, missing)))
    start = LAYOUT.start(np.pad(sums.start[channels] - own.centre, (0, missing)), own)
    shift = np.pad(own.columns["shift"], (0, missing)) & 0xFF
    stored = np.stack([np.pad(own.columns[name], (0, missing)) for name in shape.stored], axis=1)
    bounds = [(bound & 0xFF) * BYTES for bound in (own.low, own.high)] if shape.bounded else []
    parts = [ints([shape.pairs, shape.filters, 2 * own.zero + 1, *bounds])]
    for at in range(0, len(start), WIDTH):
        block = slice(at, at + WIDTH)
        weights = ints(LAYOUT.pack(pairs[:, :, block], own).view(np.int32))
        shifts = (shift[block] << np.arange(0, 32, 8)).sum(keepdims=True)
        parts += [start[block], weights, shifts, stored[block].ravel()]
    return int32s(np.concatenate(parts))


def multiply(w: Writer, shape: Shared, stream: str, to: Sequence[str]) -> None:
    """Prints the call that computes all channels of the two positions laid out in `patch`."""
    routine, bill = _routine(shape)
    w.helpers |= _body(shape).helpers
    w.bill(CALL, CALL_WORDS)
    w.add(bill.times(shape.blocks))
    w.reads(4 * shape.words)
    w(f"{w.call(routine, 'patch', stream, *to)};")


def _routine(shape: Shared) -> tuple[Instruction, OpCounts]:
    """The routine, and the cost of a block."""
    scaling, body = shape.scaling, _body(shape)
    marks = [scaling.function or ("twice" if scaling.doubled else "once")]
    marks += ["offsets"] if len(shape.stored) > 1 and scaling.form else []
    marks += ["bounded"] if shape.bounded else []
    head = "void {name}(const int64_t *patch, const int32_t *k, int8_t *to0, int8_t *to1)"
    name = f"tile_{'_'.join(marks)}"
    routine = body.routine(name, head)
    if scaling.form is None or scaling.form.below not in (0, 1):
        return routine, body.counts
    native, bill = assembly_tile.shared(scaling, shape.pairs, len(shape.stored) > 1, shape.bounded)
    return replace(routine, native=native, guard=assembly_tile.WHERE), bill


@lru_cache(maxsize=64)
def _body(shape: Shared) -> Writer:
    """Its portable meaning."""
    w = Writer("{prefix}")
    w("const int32_t pairs = k[0];")
    w("int32_t left = k[1];")
    if shape.scaling.form is None or len(shape.stored) == 1:
        w("const int32_t zero = k[2];")
    low_bound, high_bound = ("(int8_t)k[3]", "(int8_t)k[4]") if shape.bounded else map(str, INT8)
    w(f"const int32_t low = {low_bound}, high = {high_bound};")
    w(f"k += {5 if shape.bounded else 3};")
    with w.block("for (; left > 0; left -= 4)"):
        _block(w, shape)
    return w


def _block(w: Writer, shape: Shared) -> None:
    for channel in range(WIDTH):
        w(f"int32_t sum0{channel} = k[{channel}];")
        w(f"int32_t sum1{channel} = sum0{channel};")
    w("const int64_t *x = patch;")
    w("k += 4;")
    w.bill(8, 4)
    with w.block("for (const int64_t *const end = patch + pairs; x != end; ++x)"), w.trips(shape.pairs):
        w(w.use(LOAD_TWO, "both", "x[0]"))
        w("const int32_t first = k[0], second = k[1];")
        add_pair(w, LAYOUT, 0, [low("both"), high("both")], WIDTH, ("first", "second"))
        w("k += 2;")
        w.bill(6, 2)
    LAYOUT.finish(w, WIDTH, 2, shape.scaling)
    names = ", ".join(f"sum{position}{channel}" for channel in range(WIDTH) for position in range(2))
    w(f"const int32_t sums[8] = {{{names}}};")
    w.bill(8)
    with w.loop("channel", "4 && channel < left", trips=shape.filters / shape.blocks):
        _scale(w, shape)
    w(f"k += {1 + WIDTH * len(shape.stored)};")
    w("to0 += 4;")
    w("to1 += 4;")
    w.bill(6)


def _scale(w: Writer, shape: Shared) -> None:
    scaling = shape.scaling
    stored = {name: f"k[{at + 1} + {len(shape.stored)} * channel]" for at, name in enumerate(shape.stored)}
    w("const int32_t n = (int8_t)((uint32_t)k[0] >> 8 * channel);")
    if scaling.form:
        w(f"const int32_t offset = {stored.get('offset', 'zero * (1 << n) >> 1')};")
    w.bill(7, 5)
    with w.loop("position", 2):
        w("const int32_t sum = sums[2 * channel + position];")
        if scaling.form is None:
            value = f"{general(w, scaling, 'sum', {**stored, 'shift': 'n'})} + (zero >> 1)"
        else:
            rounded = "high_rounded_add" if scaling.form.rounded else "high_add"
            less = " + (sum >> 31)" if scaling.form.below else ""
            value = DSP.call(w, rounded, "sum", stored["multiplier"], f"offset{less}") + " >> n"
        w(f"const int32_t value = {value};")
        w("const int32_t raised = value < low ? low : value;")
        w()
        w("(position ? to1 : to0)[channel] = (int8_t)(raised > high ? high : raised);")
        w.bill(11, 4)

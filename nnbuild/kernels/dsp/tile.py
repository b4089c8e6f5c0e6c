"""The tile: the sums of one or two positions for a run of output channels, scaled and stored.

It is a routine specialised to the number of input pairs, so that operations of one size share it and the compiler has
all registers for it: 8 sums, 2 inputs, 2 words of weights, 2 pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Names
from nnbuild.kernels.dsp import assembly_tile
from nnbuild.kernels.dsp.assembly_tile import Lines
from nnbuild.kernels.dsp.scaling import ANY, Scaling, most_left, plain_form, result, scaling_by
from nnbuild.kernels.dsp.weight_layouts import (
    LOAD_TWO,
    RAISED,
    WORD,
    Layout,
    Packed,
    add_pair,
    doublets,
    high,
    in_pairs,
    low,
    overlapping_pair,
    size_of,
    word,
)
from nnbuild.kernels.lanes.layer_sums import Sums, sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.kernels.loops.window_loops import total
from nnbuild.kernels.parts.residual import Residual
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import Layer
from nnbuild.numeric.requant_product import LONG, Form
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.site import Site

LOAD = Row("int32_t {0} = {1};", 0.6, 1)
"""A load among several neighbouring words, some of which are loaded in pairs."""
COPY = Row("int32_t {0} = {1};", 0.5, 0.5)
"""Half of these moves are free."""
STORE = Row("{0} = ({1}){2};", 1)
CALL_CYCLES, CALL_WORDS = 14, 22
"""Cycles to save registers, pass arguments and return; the words that this moves."""
LOOP_CYCLES = 7
"""Cycles of the inner loop: two pointers, a comparison, and sums spilled around the branch."""
IN_RAM_CYCLES = 14
"""Additional cycles where one more word is held and some sums are spilled."""
WORTH_ALIGNING = 8
LONGEST = 36
"""Pairs of inputs up to which the tile is unrolled."""
SHORT, SHORT_ROW = 14, 24
"""The same limit where the code must fit the cache of a slow flash, for two positions and for one."""
WIDEST = 4
"""Channels of a block: with two positions, as many sums as there are registers for."""


@dataclass(frozen=True)
class Run:
    """`count` blocks of `width` channels."""

    width: int
    count: int


def runs(channels: int, widest: int = WIDEST) -> list[Run]:
    """Divides output channels into blocks, as wide as possible, with a narrower one for the remainder."""
    whole, rest = divmod(channels, widest)
    return [Run(width, count) for width, count in ((widest, whole), (rest, 1)) if width and count]


@dataclass(frozen=True, eq=False)
class Tile:
    """What all blocks of an operation share.

    alike: all channels have the same scaling constants, stored once per block.
    """

    layout: Layout
    scaling: Scaling
    pairs: int
    positions: int
    beside: Residual | None = None
    alike: bool = False
    longest: int = LONGEST
    in_ram: bool = False
    """The weights lie in the same memory as the inputs, so that loads of both overlap."""
    lines: Lines | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """The scaling columns stored for every channel."""
        return tuple(self.scaling.columns)

    @property
    def pointers(self) -> tuple[str, ...]:
        """To the outputs of every position, and to what is added to them."""
        names = ("to", "beside") if self.beside else ("to",)
        return tuple(f"{name}{position}" for name in names for position in range(self.positions))

    def size(self, width: int) -> int:
        """int64 of a block: the starts of its sums, the weights, then the roles of every channel."""
        return -(-width // 2) + size_of(self.layout, self.pairs, width) + self.constants_size(width)

    def constants_size(self, width: int) -> int:
        """int64 of a block's scaling constants."""
        return -(-len(self.roles) * (1 if self.alike else width) // 2)


@lru_cache(maxsize=256)
def scaling_of(layout: Layout, site: Site[Weighted]) -> Scaling | str:
    """The scaling of a site's sums in this layout, or why there is none."""
    left = RAISED if isinstance(layout, Packed) else None

    def forms(layer: Layer) -> list[Form]:
        level = [] if layer.signed else [Form(level=ANY, left=left)]
        long = [LONG] if site.outputs[0].dtype == "int16" else []
        return [*level, plain_form(layer), Form(below=None, left=left), *long]

    sums = sums_of(site)
    most = most_left(sums.largest_weight)
    return layout.refusal(sums) or scaling_by(site, forms, most, layout.room(len(most)))


def unrolled(pairs: int, longest: int = LONGEST) -> int:
    """Pairs per iteration of the inner loop: an even number, all of them where they are few."""
    if pairs <= longest:
        return pairs
    fitting = [size for size in range(longest // 4 * 2, longest + 1, 2) if pairs % size == 0]
    return max(fitting, default=longest - 4)


def pack(tile: Tile, sums: Sums, dtype: str, channels: slice) -> Array:
    """The constants that a tile reads for some channels, block by block."""
    return packed(tile, sums, in_pairs(sums.weights[:, channels], dtype), channels)


def packed(tile: Tile, sums: Sums, pairs: Ints, channels: slice, widest: int = WIDEST) -> Array:
    """The same for weights [pairs, 2, channels] in the order in which they are read."""
    scaling = tile.scaling.part(channels)
    start = sums.start[channels] - scaling.centre
    stream = []
    for first, run in blocks(len(start), widest):
        own = slice(first, first + run.width)
        mine = scaling.part(own)
        stream.append(doublets(tile.layout.start(start[own], mine) & WORD))
        stream.append(tile.layout.pack(pairs[:, :, own], mine))
        each = [mine.columns[role] & WORD for role in tile.roles]
        if each:
            stream.append(doublets(np.stack(each, axis=1)))
    return np.concatenate(stream)


def blocks(channels: int, widest: int) -> Iterator[tuple[int, Run]]:
    """(first channel, block) for every single block."""
    first = 0
    for run in runs(channels, widest):
        for _ in range(run.count):
            yield first, run
            first += run.width


def call(w: Writer, tile: Tile, run: Run, kernel: str, to: tuple[str, ...], count: str) -> None:
    """Prints the call for `count` blocks of a run (all of them, for the bill)."""
    routine, bill = _routine(w, tile, run)
    w.bill(CALL_CYCLES, CALL_WORDS)
    w.add(bill.times(run.count))
    if not tile.in_ram and not tile.alike:
        w.reads(8 * run.count * tile.size(run.width))
    w(f"{w.call(routine, 'patch', kernel, *to, count)};")


def all_runs(w: Writer, tile: Tile, runs: list[Run], names: Names) -> None:
    """Prints the calls for all channels of the positions with the outputs `to0` and `to1`."""
    w(f"const int64_t *k = {names.packed['kernel']};")
    for run in runs:
        advance(w, tile, run)


def advance(w: Writer, tile: Tile, run: Run) -> None:
    """The call for one run, after which its pointers advance."""
    call(w, tile, run, "k", tile.pointers, str(run.count))
    w(f"k += {run.count * tile.size(run.width)};")
    for pointer in tile.pointers:
        w(f"{pointer} += {run.count * run.width};")


def _routine(w: Writer, tile: Tile, run: Run) -> tuple[Instruction, OpCounts]:
    """The routine, and the cost of a block. In assembly it is the same wherever the weights lie."""
    in_assembly, in_ram = has_assembly(tile, run), tile.in_ram
    if in_assembly:
        tile = replace(tile, in_ram=False, longest=LONGEST if tile.pairs <= assembly_tile.SHORT else tile.longest)
    body = Writer("{prefix}")
    with body.loop("block", "blocks", trips=1):
        block(body, tile, run)
    marks = [tile.layout.name, f"{tile.positions}x{run.width}", str(tile.pairs), *tile.scaling.marks()]
    marks += [tile.beside.mark()] if tile.beside else []
    marks += ["alike"] if tile.alike else []
    marks += [tile.lines.mark()] if tile.lines else []
    marks += ["near"] if tile.in_ram else ["short"] if tile.longest < LONGEST else []
    name = f"tile_{'_'.join(marks)}"
    kinds = [tile.scaling.output_type] * tile.positions + ["const int8_t"] * tile.positions
    pointers = [f"{kind} *{pointer}" for kind, pointer in zip(kinds, tile.pointers, strict=False)]
    head = f"void {{name}}(const int64_t *patch, const int64_t *k, {', '.join(pointers)}, int32_t blocks)"
    routine = body.routine(name, head)
    w.helpers |= body.helpers
    if not in_assembly:
        return routine, body.counts
    longest = LONGEST if tile.longest == LONGEST else assembly_tile.SHORT
    native, bill = assembly_tile.body(tile.scaling, tile.pairs, longest, in_ram, tile.lines)
    return replace(routine, native=native, guard=assembly_tile.WHERE), bill


def has_assembly(tile: Tile, run: Run) -> bool:
    """Whether the routine exists in assembly."""
    usual = tile.positions == 2 and run.width == WIDEST and not (tile.beside or tile.alike)
    return usual and isinstance(tile.layout, Packed) and assembly_tile.serves(tile.scaling)


def block(w: Writer, tile: Tile, run: Run, products: Callable[[Writer, Tile, Run], None] | None = None) -> None:
    """The sums of a block, by `products` if given, scaled and stored."""
    for channel in range(run.width):
        w(w.use(COPY, f"sum0{channel}", word(w, channel, "start")))
    w(f"k += {-(-run.width // 2)};")
    for position in range(1, tile.positions):
        for channel in range(run.width):
            w(w.use(COPY, f"sum{position}{channel}", f"sum0{channel}"))
    w()
    (products or _products)(w, tile, run)
    tile.layout.finish(w, run.width, tile.positions, tile.scaling)
    w()
    for channel in range(run.width):
        _store(w, tile, channel)
    if tile.roles:
        w(f"k += {tile.constants_size(run.width)};")
    for pointer in tile.pointers:
        w(f"{pointer} += {run.width};")
    w.bill(2 + len(tile.pointers))


def _products(w: Writer, tile: Tile, run: Run) -> None:
    if tile.lines:
        return _along(w, tile, run, tile.lines)
    size = unrolled(tile.pairs, tile.longest)
    count, rest = divmod(tile.pairs, size)
    if count == 1 and not rest:
        w("const int64_t *x = patch;")
        if size >= WORTH_ALIGNING:
            w(f"k = {DSP.call(w, 'at_word', 'k')};")
        _steps(w, tile, run, size)
        return
    step = size * tile.positions // 2  # int64 of inputs
    moved = "" if _is_single(tile, run) else f" x += {step}"
    head = f"for (const int64_t *const end = x + {count * step}; x != end;{moved})"
    w("const int64_t *x = patch;")
    with w.block(head), w.trips(count):
        w(f"k = {DSP.call(w, 'at_word', 'k')};")
        _steps(w, tile, run, size)
        w.bill(LOOP_CYCLES + (IN_RAM_CYCLES if tile.in_ram and tile.layout.name == "packed" else 0))
    if rest:
        with w.block(""):
            _steps(w, tile, run, rest)


def _along(w: Writer, tile: Tile, run: Run, lines: Lines) -> None:
    """Row of taps by row of taps, each in its line."""
    w("const int16_t *x = (const int16_t *)(const void *)patch;")
    with w.loop("row", lines.rows):
        for pair in range(lines.pairs):
            inputs = {f"x{pair}_{position}": total("x", str(2 * pair + lines.step * position)) for position in (0, 1)}
            for name, place in inputs.items():
                w(f"const int32_t {name} = {DSP.call(w, 'p_load', place)};")
            add_pair(w, tile.layout, pair, list(inputs), run.width)
        w(f"x += {lines.length};")
        w(f"k += {size_of(tile.layout, lines.pairs, run.width)};")
        w.bill(2)


def _steps(w: Writer, tile: Tile, run: Run, pairs: int) -> None:
    """`pairs` is even; k advances."""
    if _is_single(tile, run):
        _single(w, tile, run.width, pairs)
        return
    for pair in range(pairs):
        inputs: Sequence[str]
        there: tuple[str, ...] = ()
        if tile.in_ram and run.width == WIDEST and tile.pairs > tile.longest:  # unrolled code would spill
            inputs, there = overlapping_pair(w, pair, size_of(tile.layout, pair, run.width))
        elif tile.positions == 2:
            w(w.use(LOAD_TWO, f"x{pair}", f"x[{pair}]"))
            inputs = [low(f"x{pair}"), high(f"x{pair}")]
        else:
            if pair % 2 == 0:
                w(w.use(LOAD_TWO, f"x{pair}", f"x[{pair // 2}]"))
            inputs = [high(f"x{pair - 1}") if pair % 2 else low(f"x{pair}")]
        add_pair(w, tile.layout, pair, inputs, run.width, there)
    w(f"k += {size_of(tile.layout, pairs, run.width)};")
    w.bill(1)


def _is_single(tile: Tile, run: Run) -> bool:
    return tile.positions == 1 and run.width > 2


def _single(w: Writer, tile: Tile, width: int, pairs: int) -> None:
    """One position leaves registers for four words of weights and four of inputs at a time."""
    w("int32_t a, b, c, d;")
    w(f"int32_t {', '.join(f'x{n}' for n in range(min(4, pairs)))};")
    for pair in range(0, pairs, 2):
        inputs = ["x2", "x3"] if pair % 4 else ["x0", "x1"]
        if pair + 2 == pairs and not pair % 4:
            w(f"x0 = {DSP.call(w, 'load_two', '(const int32_t *)x', '&x1')};")
            w("x += 1;")
        elif not pair % 4:
            w(f"x = {DSP.call(w, 'load_four_more', 'x', '&x0', '&x1', '&x2', '&x3')};")
        wanted = [(x, index) for x in inputs for index in range(tile.layout.words(width))]
        for at in range(0, len(wanted), 4):
            if len(wanted) - at >= 4:
                w(f"k = {DSP.call(w, 'load_four', 'k', '&a', '&b', '&c', '&d')};")
            else:
                w(f"a = {DSP.call(w, 'load_two', '(const int32_t *)k', '&b')};")
                w("k += 1;")
            for name, (x, index) in zip("abcd", wanted[at : at + 4], strict=False):
                tile.layout.multiply(w, [x], name, index, width, f"low{pair}_{name}")


def _store(w: Writer, tile: Tile, channel: int) -> None:
    scaling, first = tile.scaling, 0 if tile.alike else channel
    names = {role: f"{role}{first}" for role in scaling.columns}
    if first == channel and tile.roles:
        for index, name in enumerate(names.values()):
            w(f"const int32_t {name} = {word(w, len(names) * first + index, 'c')};")
    if tile.beside:  # before any is stored, as the outputs may overlap these
        for position in range(tile.positions):
            tile.beside.load(w, f"other{position}{channel}", f"beside{position}[{channel}]")
    for position in range(tile.positions):
        value = result(w, scaling, f"sum{position}{channel}", names)
        if tile.beside:
            tile.beside.add(w, value, f"other{position}{channel}")
        w(w.use(STORE, f"to{position}[{channel}]", scaling.output_type, value))

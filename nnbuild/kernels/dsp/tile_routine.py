"""The routine of a tile, and what calls it.

It is specialised to the number of input pairs, so that operations of one size share it and the compiler has all
registers for it: 8 sums, 2 inputs, 2 words of weights, 2 pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Names
from nnbuild.kernels.dsp import assembly_tile
from nnbuild.kernels.dsp.assembly_tile import Lines
from nnbuild.kernels.dsp.scaling import result
from nnbuild.kernels.dsp.tile import LONGEST, WIDEST, Run, Tile, runs, unrolled
from nnbuild.kernels.dsp.weight_layouts import LOAD_TWO, Packed, add_pair, high, low, overlapping_pair, size_of, word
from nnbuild.kernels.loops.window_loops import product, total

COPY = Row("int32_t {0} = {1};", 0.5, 0.5)
"""Half of these moves are free."""
STORE = Row("{0} = ({1}){2};", 1)
CALL_CYCLES, CALL_WORDS = 14, 22
"""Cycles to save registers, pass arguments and return; the words that this moves."""
BLOCK_CYCLES = 3
"""Cycles of the loop over blocks."""
LOOP_CYCLES = 7
"""Cycles of the inner loop: two pointers, a comparison, and sums spilled around the branch."""
IN_RAM_CYCLES = 14
"""Additional cycles where one more word is held and some sums are spilled."""
WORTH_ALIGNING = 8


def call(w: Writer, tile: Tile, run: Run, packed: tuple[str, ...], to: tuple[str, ...], count: str) -> None:
    """Prints the call for `count` blocks of a run (all of them, for the bill), whose constants lie at `packed`."""
    routine, bill = _routine(w, tile, run)
    w.bill(CALL_CYCLES, CALL_WORDS)
    w.add(bill.times(run.count))
    if not tile.in_ram and not tile.alike:
        w.reads(8 * run.count * sum(tile.sizes(run.width)))
    w(f"{w.call(routine, 'patch', *packed, *to, count)};")


def declare(w: Writer, tile: Tile, names: Names) -> None:
    """Declares the pointers to the constants."""
    for pointer, role in tile.arrays.items():
        w(f"const int64_t *{pointer} = {names.packed[role]};")


def all_runs(w: Writer, tile: Tile, channels: int) -> None:
    """Prints the calls for all channels of the positions with the outputs `to0` and `to1`; all pointers advance."""
    for run in runs(channels):
        call(w, tile, run, tuple(tile.arrays), tile.pointers, str(run.count))
        for pointer, size in zip(tile.arrays, tile.sizes(run.width), strict=True):
            w(f"{pointer} += {run.count * size};")
        for pointer in tile.pointers:
            w(f"{pointer} += {run.count * run.width};")


def _routine(w: Writer, tile: Tile, run: Run) -> tuple[Instruction, OpCounts]:
    """The routine, and the cost of a block. In assembly it is the same wherever the weights lie."""
    in_assembly, in_ram = has_assembly(tile, run), tile.in_ram
    if in_assembly:
        tile = replace(tile, in_ram=False, longest=LONGEST if tile.pairs <= assembly_tile.SHORT else tile.longest)
    body = Writer("{prefix}")
    with _each_block(body, tile, run):
        block(body, tile, run)
    marks = [tile.layout.name, f"{tile.positions}x{run.width}", str(tile.pairs), *tile.scaling.marks()]
    marks += [tile.beside.mark()] if tile.beside else []
    marks += ["alike"] if tile.alike else ["shared"] if tile.shared else []
    marks += [tile.lines.mark()] if tile.lines else []
    marks += ["near"] if tile.in_ram else ["short"] if tile.longest < LONGEST else []
    name = f"tile_{'_'.join(marks)}"
    kinds = [tile.scaling.output_type] * tile.positions + ["const int8_t"] * tile.positions
    pointers = ["const int64_t *patch", "const int64_t *k", *["const int64_t *volatile scales"] * tile.shared]
    pointers += [f"{kind} *{pointer}" for kind, pointer in zip(kinds, tile.pointers, strict=False)]
    head = f"void {{name}}({', '.join(pointers)}, int32_t blocks)"
    routine = body.routine(name, head)
    w.helpers |= body.helpers
    if not in_assembly:
        return routine, body.counts
    longest = LONGEST if tile.longest == LONGEST else assembly_tile.SHORT
    native, bill = assembly_tile.body(tile.scaling, tile.pairs, longest, in_ram, tile.lines, tile.shared)
    return replace(routine, native=native, guard=assembly_tile.WHERE), bill


@contextmanager
def _each_block(w: Writer, tile: Tile, run: Run) -> Iterator[None]:
    """The loop over blocks. Counted by the pointer to outputs it needs fewer instructions, but one more register, which
    a loop over inputs inside has none for; a narrower block is the only one."""
    if tile.pairs > tile.longest or run.width < WIDEST:
        with w.loop("block", "blocks", trips=1):
            yield
        return
    last = f"const {tile.scaling.output_type} *const last = to0 + {product('blocks', run.width)}"
    with w.block(f"for ({last}; to0 != last;)"):
        yield
        w.bill(BLOCK_CYCLES)


def has_assembly(tile: Tile, run: Run) -> bool:
    """Whether the routine exists in assembly."""
    usual = tile.positions == 2 and run.width == WIDEST and not (tile.beside or tile.alike)
    return usual and isinstance(tile.layout, Packed) and assembly_tile.serves(tile.scaling)


def block(w: Writer, tile: Tile, run: Run, products: Callable[[Writer, Tile, Run], None] | None = None) -> None:
    """The sums of a block, by `products` if given, scaled and stored."""
    starts = _source(w, tile, "starts", 0)
    for channel in range(run.width):
        w(w.use(COPY, f"sum0{channel}", word(w, channel, "start", starts)))
    before = -(-run.width // 2)
    if not tile.shared:
        w(f"k += {before};")
    for position in range(1, tile.positions):
        for channel in range(run.width):
            w(w.use(COPY, f"sum{position}{channel}", f"sum0{channel}"))
    w()
    (products or _products)(w, tile, run)
    tile.layout.finish(w, run.width, tile.positions, tile.scaling)
    w()
    columns, size = _source(w, tile, "columns", before), tile.constants_size(run.width)
    for channel in range(run.width):
        _store(w, tile, channel, columns)
    if tile.shared or size:
        w(f"{tile.source} = {added(columns, size)};" if tile.shared else f"k += {size};")
    for pointer in tile.pointers:
        w(f"{pointer} += {run.width};")
    w.bill(2 + len(tile.pointers))


def _source(w: Writer, tile: Tile, name: str, offset: int) -> str:
    """The pointer to starts or scaling constants. One of their own is read from memory when it is needed, as sums and
    weights need all registers in between."""
    if not tile.shared:
        return "k"
    w(f"const int64_t *const {name} = {added(tile.source, offset)};")
    w.bill(2, 1)
    return name


def _products(w: Writer, tile: Tile, run: Run) -> None:
    if tile.lines:
        return _along(w, tile, run, tile.lines)
    size = unrolled(tile.pairs, tile.longest)
    count, rest = divmod(tile.pairs, size)
    if count == 1 and not rest:
        hidden = tile.positions == 2 and tile.scaling.bits > 8  # else compilers move all loads before the loop
        w(f"const int64_t *x = {DSP.call(w, 'again', 'patch') if hidden else 'patch'};")
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
    for pair in range(0, pairs, 4):
        inputs = [f"x{n}" for n in range(min(4, pairs - pair))]
        if len(inputs) == 2:
            w(f"x0 = {DSP.call(w, 'load_two', '(const int32_t *)x', '&x1')};")
            w("x += 1;")
        else:
            w(f"x = {DSP.call(w, 'load_four_more', 'x', '&x0', '&x1', '&x2', '&x3')};")
        if pair and tile.pairs > tile.longest:  # short stores of a pointer between long instructions move these
            w(f"k = {DSP.call(w, 'at_word', 'k')};")
        wanted = [(x, index) for x in inputs for index in range(tile.layout.words(width))]
        for at in range(0, len(wanted), 4):
            if len(wanted) - at >= 4:
                w(f"k = {DSP.call(w, 'load_four', 'k', '&a', '&b', '&c', '&d')};")
            else:
                w(f"a = {DSP.call(w, 'load_two', '(const int32_t *)k', '&b')};")
                w("k += 1;")
            for name, (x, index) in zip("abcd", wanted[at : at + 4], strict=False):
                tile.layout.multiply(w, [x], name, index, width, f"low{pair + at // 2}_{name}")


def _store(w: Writer, tile: Tile, channel: int, columns: str) -> None:
    scaling, first = tile.scaling, 0 if tile.alike else channel
    names = {role: f"{role}{first}" for role in scaling.columns}
    if first == channel and tile.roles:
        for index, name in enumerate(names.values()):
            w(f"const int32_t {name} = {word(w, len(names) * first + index, 'c', columns)};")
    if tile.beside:  # before any is stored, as the outputs may overlap these
        for position in range(tile.positions):
            tile.beside.load(w, f"other{position}{channel}", f"beside{position}[{channel}]")
    for position in range(tile.positions):
        value = result(w, scaling, f"sum{position}{channel}", names)
        if tile.beside:
            tile.beside.add(w, value, f"other{position}{channel}")
        w(w.use(STORE, f"to{position}[{channel}]", scaling.output_type, value))

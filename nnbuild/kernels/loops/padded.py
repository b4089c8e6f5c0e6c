"""Convolution as dot products over a padded copy of the input: no borders, no element read that is not there.

The copy holds the inputs as the multiplications want them. It is made strip by strip, so that a strip and the weights
of one block of output channels stay in the nearest cache while a block goes along all rows of the strip. Tiles are of
one size; the last of a row overlaps the one before it and computes a few outputs twice. A maximum pool that follows
takes its maxima among sums, before they are scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import IntegerVectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.conv2d.windows import Windows
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

SLACK = 64
"""Bytes beyond the copy that filling and the last taps may touch."""
Pair = tuple[str, str]
MOST_VECTORS = 4
OUTPUT_CYCLES = 5
SHUFFLE_CYCLES = 0.85
"""Of loading and shuffling what several outputs side by side take; it shares units with the multiplications."""
UNROLLED = 4
"""So many steps of a dot product are printed one after the other rather than as a loop."""


@dataclass(frozen=True)
class Tile:
    """count: sums of one channel computed together, but for pools; places: outputs side by side in one vector."""

    count: int
    vectors: int
    places: int

    @property
    def outputs(self) -> int:
        return self.count * self.places


def choose_tile(windows: Windows, lanes: IntegerVectors) -> Tile:
    """What wastes least of the machine."""
    filters = windows.filters // windows.groups
    step = windows.pool[1] * windows.strides[1] * windows.channels
    most = lanes.most_places(filters, step) if windows.groups == 1 and lanes.added is None else 1
    tiles = [
        Tile(count, vectors, places)
        for places in range(1, min(most, windows.columns) + 1)
        for vectors in range(1, min(MOST_VECTORS, -(-filters // lanes.lanes)) + 1)
        for count in range(1, _most_sums(windows, lanes, vectors) + 1)
        if count * places <= windows.columns or count == 1
    ]
    return min(tiles, key=lambda tile: _cost(windows, lanes, tile))


def _most_sums(windows: Windows, lanes: IntegerVectors, vectors: int) -> int:
    spare = 1 if lanes.set.dot else 2
    return max(1, (lanes.set.registers - spare - vectors) // (vectors * windows.pool[0] * windows.pool[1]))


def _cost(windows: Windows, lanes: IntegerVectors, tile: Tile) -> float:
    """Cycles of a row: of every step the multiplications, the loads or their latency; and of the outputs."""
    sums = tile.count * windows.pool[0] * windows.pool[1]
    loads = sums + tile.vectors * (1 if lanes.set.dot else 2)
    multiplications = sums * tile.vectors * lanes.set.step_cycles
    step = (
        max(multiplications + (sums * SHUFFLE_CYCLES if tile.places > 1 else 0), loads * lanes.set.load_cycles, 3) + 0.5
    )
    tiles = -(-windows.columns // tile.outputs)
    blocks = -(-windows.filters // windows.groups // (tile.vectors * lanes.lanes))
    return blocks * tiles * (step * _steps(windows, lanes) + OUTPUT_CYCLES * tile.count * tile.vectors)


def demand(site: Site, windows: Windows, lanes: IntegerVectors) -> Demand:
    _set(windows, lanes)
    size = np.dtype(lanes.scratch_type).itemsize
    copied = windows.copied(windows.strip(size)) * windows.line * size
    return Demand(
        extent=windows.rows,
        scratch=copied + SLACK,
        scratch_type=lanes.scratch_type,
        packed=_packed(site, windows, lanes),
    )


def _set(windows: Windows, lanes: IntegerVectors) -> Tile:
    """Tells the lanes of the tile that is taken."""
    tile = choose_tile(windows, lanes)
    lanes.vectors = tile.vectors
    lanes.hold(tile.places, windows.filters)
    return tile


def _packed(site: Site, windows: Windows, lanes: IntegerVectors) -> dict[str, Array]:
    """Every run of taps is filled up to whole steps with weights of zero, which whatever lies there is taken by."""
    lines, runs, inputs = windows.runs
    taps = site.constant("kernel").reshape(lines * runs, inputs, windows.filters)
    filled = np.zeros((lines * runs, -(-inputs // lanes.depth) * lanes.depth, windows.filters), taps.dtype)
    filled[:, :inputs] = taps
    weights = filled.reshape(-1, windows.filters)
    weights = lanes.repeated(weights, windows.filters) if lanes.places > 1 else weights
    packed = dot.packed(weights, lanes, windows.groups)
    return {name: lanes.arranged(name, values) for name, values in packed.items()}


def emit(w: Writer, site: Site, names: Names, windows: Windows, lanes: IntegerVectors) -> None:
    tile = _set(windows, lanes)
    lanes.declare_apart(w, windows.filters, windows.pool[1] * windows.strides[1] * windows.channels)
    strip = windows.strip(np.dtype(lanes.scratch_type).itemsize)
    with w.loop("strip", "end", start="begin", step=strip, trips=-(-windows.rows // strip)):
        w(f"const int32_t rows = end - strip < {strip} ? end - strip : {strip};")
        _copy(w, windows, names, lanes, strip)
        w(f"const {lanes.weight_type} *taps = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        _outputs(w, lanes, ("to", "beside"), _ends(names, lanes), product("strip", windows.columns, windows.filters))
        if windows.groups > 1:
            w(f"const {lanes.input_type} *from = {names.scratch};")
            with w.loop("group", windows.groups):
                _blocks(w, windows, lanes, tile, strip, "from")
                w(f"from += {windows.depth};")
        else:
            _blocks(w, windows, lanes, tile, strip, names.scratch)


def _ends(names: Names, lanes: IntegerVectors) -> Pair:
    """The output and, where another tensor is added, that tensor."""
    return names.outputs[0], names.inputs[1] if lanes.added else ""


def _outputs(w: Writer, lanes: IntegerVectors, declared: Pair, bases: Pair, by: str) -> None:
    """Declares a pointer into the output, and one to the same place of the tensor that is added."""
    w(f"{lanes.output_type} *{declared[0]} = {total(bases[0], by)};")
    if lanes.added:
        w(f"const {lanes.output_type} *{declared[1]} = {total(bases[1], by)};")


def _copy(w: Writer, windows: Windows, names: Names, lanes: IntegerVectors, strip: int) -> None:
    """The input rows under a strip, with what lies outside the input."""
    rows = total(product("(rows - 1)", windows.row_step), str(windows.row_span))
    with w.loop("y", rows, trips=windows.copied(strip)):
        w(f"{lanes.input_type} *line = {names.scratch} + {product('y', windows.line)};")
        first = product("strip", windows.row_step)
        if not windows.padded:
            source = f"{names.inputs[0]} + {product(f'{first} + y', windows.width * windows.channels)}"
            lanes.copy(w, "line", source, windows.line)
            return
        w(f"const int32_t row = {first} + y - {windows.top};" if windows.top else f"const int32_t row = {first} + y;")
        with w.block(f"if (row >= 0 && row < {windows.height})"):
            source = f"{names.inputs[0]} + {product('row', windows.width * windows.channels)}"
            copy_between(
                w, lanes, source, (windows.left * windows.channels, windows.taken * windows.channels), windows.line
            )
        with w.block("else"), w.trips(0):
            lanes.fill(w, "line", windows.line)


def copy_between(w: Writer, lanes: IntegerVectors, source: str, inside: tuple[int, int], line: int) -> None:
    """A row of inputs, of which `inside` gives the place in the line and the number, with zeros on either side."""
    first, count = inside
    if first:
        lanes.fill(w, "line", first)
    lanes.copy(w, total("line", str(first)), source, count)
    if first + count < line:
        lanes.fill(w, total("line", str(first + count)), line - first - count)


def _blocks(w: Writer, windows: Windows, lanes: IntegerVectors, tile: Tile, strip: int, source: str) -> None:
    for block, times in _divided(windows, lanes):
        with w.loop("block", times):
            with w.loop("y", "rows", trips=strip):
                w(f"const {lanes.input_type} *across = {source} + {product('y', windows.row_step * windows.line)};")
                row = product("y", windows.columns * windows.filters)
                _outputs(w, lanes, ("place", "place_beside"), ("to", "beside"), row)
                _row(w, windows, lanes, block, tile)
            w(f"taps += {_steps(windows, lanes) * block.vectors * lanes.lanes * lanes.depth};")
            dot.next_block(w, lanes, block)
            w(f"to += {block.channels};")
            if lanes.added:
                w(f"beside += {block.channels};")


def _divided(windows: Windows, lanes: IntegerVectors) -> list[tuple[Block, int]]:
    """Blocks of output channels, and how many of each."""
    if lanes.places > 1:
        return [(Block(1, lanes.places * windows.filters), 1)]
    return dot.divide(windows.filters // windows.groups, lanes).classes()


def _steps(windows: Windows, lanes: IntegerVectors) -> int:
    lines, runs, inputs = windows.runs
    return lines * runs * -(-inputs // lanes.depth)


def _row(w: Writer, windows: Windows, lanes: IntegerVectors, block: Block, tile: Tile) -> None:
    """One block of output channels along one output row."""
    count = tile.outputs
    if windows.columns <= count:
        _tile(w, windows, lanes, block, tile, "across", ("place", "place_beside"))
        return
    last = windows.columns - count
    with w.loop("tile", windows.columns, step=count):
        even = windows.columns % count == 0
        w(f"const int32_t x = {'tile' if even else f'tile < {last} ? tile : {last}'};")
        step = windows.pool[1] * windows.strides[1] * windows.channels
        w(f"const {lanes.input_type} *window = across + {product('x', step)};")
        _outputs(w, lanes, ("at", "at_beside"), ("place", "place_beside"), product("x", windows.filters))
        _tile(w, windows, lanes, block, tile, "window", ("at", "at_beside"))


def _tile(w: Writer, windows: Windows, lanes: IntegerVectors, block: Block, tile: Tile, window: str, to: Pair) -> None:
    positions = windows.positions(tile.count, tile.places)
    dot.start(w, lanes, len(positions), block)
    lines, runs, inputs = windows.runs
    steps = -(-inputs // lanes.depth)
    w(f"const {lanes.weight_type} *k = taps;")
    line, run = windows.dilation[0] * windows.line, windows.dilation[1] * windows.channels
    if lines * runs * steps <= UNROLLED:
        for index in range(lines * runs * steps):
            ky, (kx, i) = index // (runs * steps), divmod(index % (runs * steps), steps)
            at = ky * line + kx * run + i * lanes.depth
            with w.block(""):
                _step(w, lanes, block, [total(window, str(at + p)) for p in positions], index)
    else:
        with w.loop("ky", lines):
            w(f"const {lanes.input_type} *row = {total(window, product('ky', line))};")
            if runs > 1:
                with w.loop("kx", runs):
                    _along(w, lanes, block, positions, steps)
                    w(f"row += {run - steps * lanes.depth};")
            else:
                _along(w, lanes, block, positions, steps)
    _finish(w, windows, lanes, block, tile, to)


def _along(w: Writer, lanes: IntegerVectors, block: Block, positions: list[int], steps: int) -> None:
    """A run of taps."""
    with w.loop("i", steps):
        _step(w, lanes, block, [total("row", str(p)) for p in positions], 0)
        w(f"row += {lanes.depth};")
        w(f"k += {block.vectors * lanes.lanes * lanes.depth};")


def _step(w: Writer, lanes: IntegerVectors, block: Block, inputs: list[str], index: int) -> None:
    dot.multiply(w, lanes, block, inputs, total("k", str(index * block.vectors * lanes.lanes * lanes.depth)))


def _finish(w: Writer, windows: Windows, lanes: IntegerVectors, block: Block, tile: Tile, to: Pair) -> None:
    """The largest of each pool's sums, as outputs."""
    group = windows.pool[0] * windows.pool[1]
    for vector in range(block.vectors):
        channel = vector * lanes.lanes
        real = min(lanes.lanes, block.channels - channel)
        with w.block(""):
            lanes.prepare(w, str(channel))
            for output in range(tile.count):
                best = f"sum{output * group}{vector}"
                for other in range(1, group):
                    lanes.larger(w, best, f"sum{output * group + other}{vector}")
                place, beside = (
                    total(pointer, str(output * tile.places * windows.filters + channel)) for pointer in to
                )
                if lanes.added:
                    lanes.store_sum(w, best, place, beside, real)
                else:
                    lanes.store(w, best, place, str(channel), real)

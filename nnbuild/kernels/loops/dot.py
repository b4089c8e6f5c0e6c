"""The core of every convolution and dense layer: the dot products of a tile of positions by output channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Names
from nnbuild.kernels.loops.window import Window
from nnbuild.kernels.loops.window_loops import with_last
from nnbuild.model.graph import Array

UNROLLED_BY_COMPILERS = 8
"""Iterations up to which compilers may unroll a loop and hoist all its loads."""


@dataclass(frozen=True)
class Block:
    """Output channels computed together: `vectors` accumulators, `channels` of whose lanes are used."""

    vectors: int
    channels: int


@dataclass(frozen=True)
class Blocks:
    """The output channels of a group as `count` full blocks and perhaps a smaller last one."""

    full: Block
    count: int
    last: Block | None

    @property
    def number(self) -> int:
        return self.count + (self.last is not None)

    def classes(self) -> list[tuple[Block, int]]:
        """(block, count), in order."""
        return [(self.full, self.count)] * (self.count > 0) + ([(self.last, 1)] if self.last else [])


def divide(channels: int, lanes: Lanes) -> Blocks:
    width = lanes.lanes * lanes.vectors
    count, rest = divmod(channels, width)
    tail = Block(-(-rest // lanes.lanes), rest) if rest else None
    return Blocks(Block(lanes.vectors, width), count, tail)


def by_size(w: Writer, blocks: Blocks, body: Callable[[Block], None]) -> None:
    """Prints the body for the block with the number `block`, full or last."""
    first, *last = (block for block, _ in blocks.classes())
    with_last(w, "block", blocks.count, partial(body, first), partial(body, last[0]) if last else None)


def filled(kernel: Array, window: Window, depth: int) -> Array:
    """A kernel as [taps, out], each run padded to whole steps of `depth` inputs."""
    runs = kernel.reshape(-1, window.run, window.filters)
    whole: Array = np.pad(runs, ((0, 0), (0, -window.run % depth), (0, 0)))
    return whole.reshape(-1, window.filters)


def pack(weights: Array, lanes: Lanes) -> Array:
    """[taps, out] -> blocks of [taps / depth][lane][depth], the order in which a tile reads them."""
    blocks = divide(weights.shape[1], lanes)
    parts, at = [], 0
    for block, count in blocks.classes():
        for _ in range(count):
            parts.append(_pack_block(weights[:, at : at + block.channels], block.vectors * lanes.lanes, lanes.depth))
            at += block.channels
    return np.concatenate(parts)


def _pack_block(weights: Array, width: int, depth: int) -> Array:
    taps = -(-weights.shape[0] // depth) * depth
    whole = np.zeros((taps, width), weights.dtype)
    whole[: weights.shape[0], : weights.shape[1]] = weights
    ordered: Array = whole.reshape(taps // depth, depth, width).transpose(0, 2, 1)
    return ordered.reshape(-1)


def pack_channels(values: Array, lanes: Lanes) -> Array:
    """[out], padded with zeros to whole blocks."""
    blocks = divide(len(values), lanes)
    whole = np.zeros(sum(block.vectors * lanes.lanes * count for block, count in blocks.classes()), values.dtype)
    whole[: len(values)] = values
    return whole


def packed(weights: Array, lanes: Lanes, groups: int = 1) -> dict[str, Array]:
    """The weights [taps, out] and the lanes' channel constants, group by group."""
    share = weights.shape[1] // groups
    parts = [slice(group * share, (group + 1) * share) for group in range(groups)]
    result = {"kernel": np.concatenate([pack(weights[:, part], lanes) for part in parts])}
    for name, values in lanes.channels.items():
        result[name] = np.concatenate([pack_channels(values[part], lanes) for part in parts])
    return result


def declare_channels(w: Writer, lanes: Lanes, names: Mapping[str, str], start: str = "") -> None:
    """Declares a pointer to each channel constant of the lanes: the first block's, or the one at `start`."""
    for name, values in lanes.channels.items():
        w(f"const {C_TYPES[values.dtype.name]} *{name} = {names[name]}{start};")


def next_block(w: Writer, lanes: Lanes, block: Block) -> None:
    """Advances these pointers to the next block."""
    for name in lanes.channels:
        w(f"{name} += {block.vectors * lanes.lanes};")


def each_block(w: Writer, lanes: Lanes, names: Names, outputs: int, block: Callable[[Block], None]) -> None:
    """The work items of a row of bytes, each a block of channels, with pointers to its constants and its outputs."""
    blocks, width = divide(outputs, lanes), lanes.vectors
    declare_channels(w, lanes, names.packed, f" + begin * {width}")
    w(f"{lanes.output_type} *to = {names.outputs[0]} + begin * {width};")
    with w.loop("block", "end", start="begin", trips=blocks.number):
        by_size(w, blocks, block)
        next_block(w, lanes, blocks.full)
        w(f"to += {width};")
        w.bill(2 + len(lanes.channels))


def tile(pixels: int, block: Block) -> list[tuple[int, int]]:
    return [(pixel, vector) for pixel in range(pixels) for vector in range(block.vectors)]


def start(w: Writer, lanes: Lanes, pixels: int, block: Block) -> None:
    for pixel, vector in tile(pixels, block):
        lanes.start(w, f"sum{pixel}{vector}", str(vector * lanes.lanes))


def multiply(w: Writer, lanes: Lanes, block: Block, inputs: Sequence[str], weights: str, steps: int = 1) -> None:
    """Steps of the dot product; `inputs` are pointers to each position's next values, `weights` to the block's."""
    size = lanes.lanes * lanes.depth
    for step in range(steps):
        names = [f"w{step * block.vectors + vector}" for vector in range(block.vectors)]
        for vector, name in enumerate(names):
            lanes.weights(w, name, f"{weights} + {(step * block.vectors + vector) * size}")
        for pixel, pointer in enumerate(inputs):
            if step == 0:
                lanes.inputs(w, f"x{pixel}", pointer)
            if lanes.paired:
                if pixel % 2:
                    _multiply_both(w, lanes, pixel, step, names)
                continue
            for vector, name in enumerate(names):
                lanes.multiply_by(w, f"sum{pixel}{vector}", f"x{pixel}", step, name)


def _multiply_both(w: Writer, lanes: Lanes, pixel: int, step: int, weights: Sequence[str]) -> None:
    """A position together with the one before it."""
    joined = f"both{pixel}_{step}"
    lanes.join(w, joined, (f"x{pixel - 1}", f"x{pixel}"), step)
    for vector, name in enumerate(weights):
        lanes.multiply_both(w, (f"sum{pixel - 1}{vector}", f"sum{pixel}{vector}"), joined, name)


def settle(w: Writer, v: Vectors, row: str, outputs: int, block: Block) -> None:
    """Ends the products of all sums before the first is stored, where registers are few and cannot be saved: weights
    would wait for the other sums there."""
    if v.sparing and row in v.spellings:
        for name in (f"sum{i}{j}" for i in range(outputs) for j in range(block.vectors)):
            w(f"{name} = {v.call(w, row, name)};")


def carry(w: Writer, lanes: Lanes, pixels: int, block: Block) -> None:
    """Makes room in all sums, where the lanes need that."""
    for pixel, vector in tile(pixels, block):
        lanes.carry(w, f"sum{pixel}{vector}")


def exchange(w: Writer, lanes: Lanes, pixels: int, block: Block) -> None:
    """Exchanges sums between pairs of positions, before accumulating or before storing."""
    if lanes.paired:
        for pixel, vector in tile(pixels, block):
            if pixel % 2:
                lanes.exchange(w, (f"sum{pixel - 1}{vector}", f"sum{pixel}{vector}"))


def along(w: Writer, lanes: Lanes, block: Block, steps: int, inputs: Callable[[str], list[str]]) -> None:
    """The loop `k` over the steps of a run; `inputs` gives each position's inputs from an element on."""
    width = block.vectors * lanes.lanes * lanes.depth
    whole, rest = divmod(steps, lanes.loaded)
    if whole:
        with w.loop("i", whole * lanes.loaded * lanes.depth, step=lanes.loaded * lanes.depth):
            if 1 < whole <= UNROLLED_BY_COMPILERS and (moved := lanes.late_pointer(w, "k")) != "k":
                w(f"k = {moved};")
            multiply(w, lanes, block, inputs("i"), "k", lanes.loaded)
            w(f"k += {lanes.loaded * width};")
    if rest:
        with w.block(""):
            multiply(w, lanes, block, inputs(str(whole * lanes.loaded * lanes.depth)), "k", rest)
            w(f"k += {rest * width};")


def store(w: Writer, lanes: Lanes, block: Block, outputs: Sequence[str]) -> None:
    """Stores a block; `outputs` are pointers to each position's first channel of it."""
    for pixel, pointer in enumerate(outputs):
        for vector in range(block.vectors):
            real = min(lanes.lanes, block.channels - vector * lanes.lanes)
            channel = vector * lanes.lanes
            lanes.store(w, f"sum{pixel}{vector}", f"{pointer} + {channel}", str(channel), real)

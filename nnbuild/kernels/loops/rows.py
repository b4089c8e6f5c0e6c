"""A dense layer as dot products, for any ISA's lanes.

With one row of inputs the work divides by blocks of outputs; with several, by rows, and a tile of rows shares
every weight it loads.
"""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.window_loops import product, total
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site


def demand(site: Site[Dense], lanes: Lanes) -> Demand:
    packed = dot.packed(site.constant("kernel"), lanes)
    rows = prod(site.shape()[:-1])
    blocks = dot.divide(site.output_shape()[-1], lanes)
    return Demand(extent=rows if rows > 1 else blocks.count + (blocks.tail is not None), packed=packed)


def emit(w: Writer, site: Site[Dense], names: Names, lanes: Lanes) -> None:
    depth = site.shape()[-1]
    rows = prod(site.shape()[:-1])
    if rows > 1:
        _by_rows(w, site, names, lanes, rows, depth)
    else:
        _by_blocks(w, site, names, lanes, depth)


def _by_blocks(w: Writer, site: Site[Dense], names: Names, lanes: Lanes, depth: int) -> None:
    blocks = dot.divide(site.output_shape()[-1], lanes)
    width = blocks.full.vectors * lanes.lanes
    with w.loop("block", "end", start="begin", trips=blocks.count + (blocks.tail is not None)):
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {product('block', depth * width)};")
        dot.declare_channels(w, lanes, names.packed, f" + {product('block', width)}")
        w(f"const {lanes.input_type} *from = {names.inputs[0]};")
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('block', width)};")
        if blocks.tail is None or blocks.count == 0:
            _tile(w, lanes, blocks.tail or blocks.full, names, depth, 1, 0)
            return
        with w.block(f"if (block < {blocks.count})"):
            _tile(w, lanes, blocks.full, names, depth, 1, 0)
        with w.block("else"), w.trips(1 / (blocks.count + 1)):
            _tile(w, lanes, blocks.tail, names, depth, 1, 0)


def _by_rows(w: Writer, site: Site[Dense], names: Names, lanes: Lanes, rows: int, depth: int) -> None:
    width = site.output_shape()[-1]
    pixels = min(lanes.pixels, rows)
    with w.block("for (int32_t row = begin; row < end;)"):
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']};")
        dot.declare_channels(w, lanes, names.packed)
        w(f"const {lanes.input_type} *from = {names.inputs[0]} + {product('row', depth)};")
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('row', width)};")
        if pixels > 1:
            with w.block(f"if (end - row >= {pixels})"), w.trips(rows // pixels):
                _all_blocks(w, lanes, names, depth, width, pixels)
            with w.block("else"), w.trips(rows % pixels):
                _all_blocks(w, lanes, names, depth, width, 1)
        else:
            with w.trips(rows):
                _all_blocks(w, lanes, names, depth, width, 1)


def _all_blocks(w: Writer, lanes: Lanes, names: Names, depth: int, width: int, pixels: int) -> None:
    for block, count in dot.divide(width, lanes).classes():
        with w.loop("block", count):
            _tile(w, lanes, block, names, depth, pixels, width)
            dot.next_block(w, lanes, block)
            w(f"to += {block.channels};")
    w(f"row += {pixels};")


def _tile(w: Writer, lanes: Lanes, block: Block, names: Names, depth: int, pixels: int, width: int) -> None:
    dot.start(w, lanes, pixels, block)
    with w.loop("i", depth):
        dot.multiply(w, lanes, block, [f"from + {total(str(p * depth), 'i')}" for p in range(pixels)], "k")
        w(f"k += {block.vectors * lanes.lanes};")
    dot.store(w, lanes, block, [f"to + {p * width}" if p else "to" for p in range(pixels)])

"""One row of a dense layer as dot products over a copy of its inputs, the sums of each output split over several.

A single row gives few sums to work on at a time, and each must wait for its last addition; so neighbouring steps add
to sums of their own, which are joined at the end. The work divides by blocks of outputs.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import IntegerVectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

SLACK = 64
SUMS = 8
"""Vectors of sums that keep the multiplications busy."""


def demand(site: Site[Dense], lanes: IntegerVectors) -> Demand:
    inputs, outputs = site.constant("kernel").shape
    lanes.vectors = min(SUMS, -(-outputs // lanes.lanes))
    blocks = dot.divide(outputs, lanes)
    return Demand(
        extent=blocks.count + (blocks.tail is not None),
        scratch=inputs * np.dtype(lanes.scratch_type).itemsize + SLACK,
        scratch_type=lanes.scratch_type,
        packed=_packed(site, lanes),
    )


def _packed(site: Site[Dense], lanes: IntegerVectors) -> dict[str, Array]:
    packed = dot.packed(site.constant("kernel"), lanes)
    return {name: lanes.arranged(name, values) for name, values in packed.items()}


def emit(w: Writer, site: Site[Dense], names: Names, lanes: IntegerVectors) -> None:
    inputs, outputs = site.constant("kernel").shape
    lanes.vectors = min(SUMS, -(-outputs // lanes.lanes))
    blocks = dot.divide(outputs, lanes)
    width, steps = lanes.vectors * lanes.lanes, -(-inputs // lanes.depth)
    lanes.copy(w, names.scratch, names.inputs[0], inputs)
    with w.loop("block", "end", start="begin", trips=blocks.count + (blocks.tail is not None)):
        taps = product("block", steps * width * lanes.depth)
        w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {taps};")
        dot.declare_channels(w, lanes, names.packed, f" + {product('block', width)}")
        w(f"const {lanes.input_type} *from = {names.scratch};")
        w(f"{lanes.output_type} *to = {names.outputs[0]} + {product('block', width)};")
        if blocks.tail is None or blocks.count == 0:
            _block(w, lanes, blocks.tail or blocks.full, steps)
            return
        with w.block(f"if (block < {blocks.count})"), w.trips(blocks.count / (blocks.count + 1)):
            _block(w, lanes, blocks.full, steps)
        with w.block("else"), w.trips(1 / (blocks.count + 1)):
            _block(w, lanes, blocks.tail, steps)


def _block(w: Writer, lanes: IntegerVectors, block: Block, steps: int) -> None:
    parts = max(1, min(SUMS // block.vectors, steps))
    rounds, rest = divmod(steps, parts)
    for vector in range(block.vectors):
        lanes.start(w, f"sum0{vector}", str(vector * lanes.lanes))
        for part in range(1, parts):
            lanes.zero(w, f"sum{part}{vector}")
    with w.loop("i", rounds):
        _steps(w, lanes, block, parts)
        w(f"from += {parts * lanes.depth};")
        w(f"k += {parts * block.vectors * lanes.lanes * lanes.depth};")
    if rest:
        with w.block(""):
            _steps(w, lanes, block, rest)
    for vector in range(block.vectors):
        for part in range(1, parts):
            lanes.add(w, f"sum0{vector}", f"sum{part}{vector}")
        channel = vector * lanes.lanes
        with w.block(""):
            lanes.prepare(w, str(channel))
            real = min(lanes.lanes, block.channels - channel)
            lanes.store(w, f"sum0{vector}", total("to", str(channel)), str(channel), real)


def _steps(w: Writer, lanes: IntegerVectors, block: Block, parts: int) -> None:
    """One step of each part, next to each other."""
    width = lanes.lanes * lanes.depth
    for part in range(parts):
        lanes.inputs(w, f"x{part}", total("from", str(part * lanes.depth)))
        for vector in range(block.vectors):
            name = f"w{part}{vector}"
            lanes.weights(w, name, total("k", str((part * block.vectors + vector) * width)))
            lanes.multiply(w, f"sum{part}{vector}", f"x{part}", name)

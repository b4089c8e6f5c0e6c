"""A dense layer in vectors of floats: a kernel for each width of x86 and each number of inputs a lane sums up.

Several rows of inputs are the positions of a convolution of one tap. One row alone is bound by the weights it reads
and by the latency of sums, so every sum is split into several that take turns.
"""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import vector_softmax
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops import dot, tiled
from nnbuild.kernels.loops.direct import Geometry
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import best_vectors, stall
from nnbuild.kernels.vector_tail import POINTWISE, beside_name, refusal, tail_of
from nnbuild.kernels.window_loops import Axis, product, total
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

KINDS = POINTWISE | {"softmax"}
ALONE = Axis(1, 1, 1, 1, 1, 0)
SUMS = 8
"""So many sums at once keep a core from waiting for them."""


def _lanes(site: Site[Dense], floats: Vectors, depth: int) -> VectorLanes:
    attributes = site.attributes
    lanes = VectorLanes(site, floats, attributes.clamp, depth, tail_of(site).finish)
    needed = -(-site.output_shape()[-1] // lanes.lanes)
    rows = prod(site.shape()[:-1])
    if rows > 1:
        lanes.vectors = best_vectors(rows, [needed], site.shape()[-1], floats.registers - floats.temporaries)
    else:
        lanes.vectors = -(-needed // -(-needed // SUMS))
    return lanes


def _layout(site: Site[Dense], floats: Vectors) -> tiled.Layout:
    """Many rows as a convolution."""
    depth, filters = site.constant("kernel").shape
    rows = Axis(prod(site.shape()[:-1]), prod(site.shape()[:-1]), 1, 1, 1, 0)
    shape = Geometry(ALONE, rows, depth, depth, filters, 1, _lanes(site, floats, 1))
    return tiled.Layout(shape, (1, 1), True, False, False, floats.registers - floats.temporaries)


def _variant(floats: Vectors, depth: int) -> Variant:
    def accepts(site: Site[Dense]) -> str | None:
        reason = only_float(site) or refusal(site, KINDS) or _softmax_refusal(site, floats, depth)
        if reason is None and depth > 1 and prod(site.shape()[:-1]) > 1:
            reason = "it computes one row of inputs"
        if reason is None and 1 < depth < floats.lanes and site.shape()[-1] % depth:
            reason = f"its {site.shape()[-1]} inputs do not divide by {depth}"
        return reason

    def demand(site: Site[Dense]) -> Demand:
        if prod(site.shape()[:-1]) > 1:
            return tiled.demand(site, _layout(site, floats))
        lanes = _lanes(site, floats, depth)
        extent = sum(count for _, count in dot.divide(site.output_shape()[-1], lanes).classes())
        return Demand(extent=extent, packed=dot.packed(site.constant("kernel"), lanes))

    def emit(w: Writer, site: Site[Dense], names: Names) -> None:
        if prod(site.shape()[:-1]) > 1:
            tiled.emit(w, names, _layout(site, floats))
        else:
            _by_blocks(w, site, names, _lanes(site, floats, depth))

    name = floats.name if depth == 1 else f"{floats.name}_by_{depth}"
    return Variant(name, frozenset({floats.name}), accepts, demand, emit, KINDS)


def _softmax_refusal(site: Site[Dense], floats: Vectors, depth: int) -> str | None:
    """A softmax needs all outputs of its row in registers at once."""
    if not tail_of(site).softmax:
        return None
    last = site.tail[-1].attributes
    blocks = dot.divide(site.output_shape()[-1], _lanes(site, floats, depth))
    whole = prod(site.shape()[:-1]) == 1 and sum(count for _, count in blocks.classes()) == 1
    over_all = isinstance(last, Softmax) and last.axis + last.count == len(site.output_shape())
    return None if whole and over_all else "it cannot hold a row of the softmax at once"


def _by_blocks(w: Writer, site: Site[Dense], names: Names, lanes: VectorLanes) -> None:
    steps = -(-site.shape()[-1] // lanes.depth) * lanes.depth
    blocks = dot.divide(site.output_shape()[-1], lanes)
    width = blocks.full.vectors * lanes.lanes
    with w.loop("block", "end", start="begin", trips=sum(count for _, count in blocks.classes())):
        w(f"const float *k = {names.packed['kernel']} + {product('block', steps * width)};")
        dot.declare_channels(w, lanes, names.packed, f" + {product('block', width)}")
        w(f"float *to = {names.outputs[0]} + {product('block', width)};")
        for operand in range(1, len(names.inputs)):
            w(f"const float *{beside_name(operand)} = {names.inputs[operand]} + {product('block', width)};")
        if blocks.tail is None or blocks.count == 0:
            _block(w, site, names, lanes, blocks.tail or blocks.full)
            return
        share = 1 / (blocks.count + 1)
        with w.block(f"if (block < {blocks.count})"), w.trips(1 - share):
            _block(w, site, names, lanes, blocks.full)
        with w.block("else"), w.trips(share):
            _block(w, site, names, lanes, blocks.tail)


def _block(w: Writer, site: Site[Dense], names: Names, lanes: VectorLanes, block: Block) -> None:
    """Sum `split` of a vector takes every splits-th step; the first ones begin with the bias."""
    inputs = site.shape()[-1]
    whole, rest = divmod(inputs, lanes.depth)
    splits = max(1, min(SUMS // block.vectors, whole))
    for split in range(splits):
        for vector in range(block.vectors):
            if split == 0:
                lanes.start(w, f"sum0{vector}", str(vector * lanes.lanes))
            else:
                lanes.floats.declare(w, f"sum{split}{vector}", lanes.floats.each(w, 0.0))
    rounds, left = divmod(whole, splits)
    with w.loop("i", rounds * splits * lanes.depth, step=splits * lanes.depth):
        _steps(w, names, lanes, block, splits, "i")
    _steps(w, names, lanes, block, left, str(rounds * splits * lanes.depth))
    if rest:
        with w.block(""):
            at = dot.offset(names.inputs[0], whole * lanes.depth)
            lanes.floats.declare(w, "x", lanes.floats.load(w, at, rest))
            for vector in range(block.vectors):
                lanes.weights(w, f"w{vector}", dot.offset("k", vector * lanes.floats.lanes))
                lanes.multiply(w, f"sum0{vector}", "x", f"w{vector}")
    _finish(w, lanes, block, splits, tail_of(site).softmax)


def _finish(w: Writer, lanes: VectorLanes, block: Block, splits: int, softmax: bool) -> None:
    channels = range(0, block.vectors * lanes.lanes, lanes.lanes)
    counts = [min(lanes.lanes, block.channels - channel) for channel in channels]
    sums = [f"sum0{vector}" for vector in range(block.vectors)]
    for vector, (channel, count) in enumerate(zip(channels, counts, strict=True)):
        _join(w, lanes, [f"sum{split}{vector}" for split in range(splits)])
        lanes.gather(w, sums[vector], str(channel))
        lanes.complete(w, sums[vector], dot.offset("to", channel), count)
    if softmax:
        vector_softmax.row(w, lanes.floats, sums, counts)
    for name, channel, count in zip(sums, channels, counts, strict=True):
        lanes.floats.store(w, dot.offset("to", channel), name, count)


def _steps(w: Writer, names: Names, lanes: VectorLanes, block: Block, count: int, first: str) -> None:
    """One step of each of the first sums."""
    for split in range(count):
        with w.block(""):
            lanes.inputs(w, "x", f"{names.inputs[0]} + {total(first, str(split * lanes.depth))}")
            for vector in range(block.vectors):
                at = (split * block.vectors + vector) * lanes.floats.lanes
                lanes.weights(w, f"w{vector}", dot.offset("k", at))
                lanes.multiply(w, f"sum{split}{vector}", "x", f"w{vector}")
    if count:
        w.bill(stall(1, block.vectors * count))
        w(f"k += {count * block.vectors * lanes.floats.lanes};")


def _join(w: Writer, lanes: VectorLanes, sums: list[str]) -> None:
    """Adds up the sums of one vector in pairs, into the first."""
    while len(sums) > 1:
        half = (len(sums) + 1) // 2
        for first, second in zip(sums, sums[half:], strict=False):
            w(f"{first} = {lanes.floats.use(w, 'add', first, second)};")
        sums = sums[:half]


VARIANTS = tuple(_variant(floats, depth) for floats in SETS for depth in floats.repeats)

"""The kernels of dense layers: combinations of lanes and loops, and what they refuse.

Several rows of inputs are the positions of a convolution of one tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nnbuild.isa.arm import FEATURES, FPU
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed import (
    n_of_m,
    narrow_dsp_rows,
    sparse_dsp_rows,
    sparse_rows,
    sparse_windows,
    unpacked_rows,
    weight_buckets,
)
from nnbuild.kernels.compressed.narrow_floats import narrow
from nnbuild.kernels.compressed.unpacked import unpacked
from nnbuild.kernels.contract import Kernel, Nest, OnEach, any_layer, by_depth, bytes_layer, of_set, only_float, variant
from nnbuild.kernels.cross_lane import window_layouts
from nnbuild.kernels.dsp import in_place, patches, shared_tile_layers
from nnbuild.kernels.lanes import integer_layers, word_lanes
from nnbuild.kernels.lanes.byte_lanes import ByteLanes, NoMacByteLanes
from nnbuild.kernels.lanes.layer_sums import float_lanes, scalar_lanes
from nnbuild.kernels.lanes.vector_epilogue import POINTWISE, epilogue_of, fusible, refusal
from nnbuild.kernels.lanes.word_lanes import ShortWordLanes, WordLanes
from nnbuild.kernels.loops import dot, long_rows, skip_zero_inputs, summed_tiles
from nnbuild.kernels.loops.dense_row import SingleRow, SplitFloats, UnrolledRow, float_accumulators_of, split_integers
from nnbuild.kernels.loops.edge_tiles import FEW_REGISTERS, MANY_REGISTERS, REGISTERS, EdgeTiles
from nnbuild.kernels.loops.padded_tiles import padded
from nnbuild.kernels.loops.tiling import best_vectors
from nnbuild.kernels.loops.vector_tiles import tiled
from nnbuild.kernels.loops.window import window_of
from nnbuild.kernels.paired_products import single_row, two_by_two_words, two_channels
from nnbuild.kernels.parts import device_arithmetic
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

KINDS = POINTWISE | {"softmax"}
ROW_CHANNELS = 12
"""Channels of a tile of one row on an FPU: each sum needs a separate weight."""


def _rows(site: Site[Dense]) -> int:
    return window_of(site).rows.places


def _scalar(site: Site[Dense]) -> Nest:
    lanes = scalar_lanes(site)
    return SingleRow(site, lanes) if _rows(site) == 1 else EdgeTiles(site, lanes, REGISTERS)


def _words(lanes: type[WordLanes], site: Site[Dense]) -> Nest:
    registers = FEW_REGISTERS if lanes is ShortWordLanes else REGISTERS
    return SingleRow(site, lanes(site)) if _rows(site) == 1 else EdgeTiles(site, lanes(site), registers)


def _bytes(lanes: type[ByteLanes], registers: int, site: Site[Dense]) -> Nest:
    if _rows(site) == 1:
        return UnrolledRow(site, lanes(site))
    return EdgeTiles(site, lanes(site), registers, whole=True)


def _refused_bytes(site: Site[Dense]) -> str | None:
    return bytes_layer(site) or integer_layers.refused_weights(site)


def _fpu(site: Site[Dense]) -> Nest:
    lanes = float_lanes(FPU, site)
    if _rows(site) == 1:
        return SingleRow(site, lanes.holding(min(ROW_CHANNELS, site.output_shape()[-1])))
    return EdgeTiles(site, lanes.holding(4), FPU.registers)


def _vector_lanes(floats: Vectors, depth: int, site: Site[Dense]) -> VectorLanes:
    lanes = float_lanes(floats, site, depth)
    needed = -(-site.output_shape()[-1] // lanes.lanes)
    if _rows(site) > 1:
        return lanes.holding(best_vectors(_rows(site), [needed], site.shape()[-1], floats.tile_registers))
    return lanes.holding(-(-needed // -(-needed // float_accumulators_of(floats))))


def _floats(depth: int, floats: Vectors, site: Site[Dense]) -> Nest:
    lanes = _vector_lanes(floats, depth, site)
    return tiled(site, lanes, floats.tile_registers) if _rows(site) > 1 else SplitFloats(site, lanes)


def _refused_floats(depth: int, floats: Vectors, site: Site[Dense]) -> str | None:
    reason = only_float(site) or refusal(site, fusible(floats, KINDS)) or _refused_softmax(floats, depth, site)
    if reason is None and depth > 1 and _rows(site) > 1:
        reason = "it computes one row only"
    if reason is None and 1 < depth < floats.lanes and site.shape()[-1] % depth:
        reason = f"its {site.shape()[-1]} inputs do not divide by {depth}"
    return reason


def _refused_softmax(floats: Vectors, depth: int, site: Site[Dense]) -> str | None:
    """A softmax needs all outputs of its row in registers at once."""
    if not epilogue_of(site).softmax:
        return None
    last = site.tail[-1].attributes
    whole = _rows(site) == 1 and dot.divide(site.output_shape()[-1], _vector_lanes(floats, depth, site)).number == 1
    over_all = isinstance(last, Softmax) and last.axis + last.count == len(site.output_shape())
    return None if whole and over_all else "it cannot hold a row of the softmax in registers"


def _integers(chosen: Vectors, site: Site[Dense]) -> Nest:
    lanes = integer_layers.lanes_of(chosen, site)
    return split_integers(site, lanes) if _rows(site) == 1 else padded(site, lanes)


def _on_floats(floats: Vectors, depths: Sequence[int] = ()) -> list[Kernel[Dense]]:
    fused = fusible(floats, KINDS)
    return [
        of_set(floats, by_depth(depth), partial(_refused_floats, depth), partial(_floats, depth), fused)
        for depth in depths or floats.repeats
    ]


_SCALAR = variant("scalar", frozenset(), any_layer, _scalar)
_FPU: Kernel[Dense] = variant("fpu", FEATURES, only_float, _fpu)
VARIANTS = (
    _SCALAR,
    *unpacked(_SCALAR),
    *word_lanes.kernels("words", _words),
    variant("bytes", frozenset({"bytes"}), _refused_bytes, partial(_bytes, ByteLanes, REGISTERS)),
    variant("bytes_many", frozenset({"rv32im"}), _refused_bytes, partial(_bytes, NoMacByteLanes, MANY_REGISTERS)),
    *unpacked_rows.VARIANTS,
    _FPU,
    *shared_tile_layers.VARIANTS,
    *patches.variants(frozenset()),
    *in_place.variants(frozenset()),
    *single_row.VARIANTS,
    *two_channels.VARIANTS,
    *two_by_two_words.VARIANTS,
    *weight_buckets.VARIANTS,
    OnEach("float_sums", _on_floats),
    *narrow((_SCALAR, _FPU, OnEach("float_sums", partial(_on_floats, depths=(1,))))),
    OnEach("sums", lambda v: [of_set(v, "_integers", integer_layers.refused_long, _integers)]),
    *sparse_rows.VARIANTS,
    *n_of_m.VARIANTS,
    *sparse_dsp_rows.VARIANTS,
    *skip_zero_inputs.VARIANTS,
    *narrow_dsp_rows.VARIANTS,
    OnEach("sums", sparse_rows.on_set),
    *sparse_windows.VARIANTS,
    summed_tiles.VARIANTS,
    OnEach("across", window_layouts.on_set),
    *long_rows.variants(),
    device_arithmetic.WEIGHTS,
)

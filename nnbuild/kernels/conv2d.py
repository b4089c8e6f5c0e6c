"""The kernels of convolutions: combinations of lanes and loops, and what they refuse."""

from __future__ import annotations

from functools import partial
from itertools import chain

from nnbuild.isa.arm import FEATURES, FPU
from nnbuild.isa.integer_kinds import RealVectors
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed.narrow_floats import narrow
from nnbuild.kernels.compressed.unpacked import unpacked
from nnbuild.kernels.contract import (
    Kernel,
    OnEach,
    any_layer,
    by_depth,
    bytes_layer,
    integer_layer,
    of_set,
    only_float,
    variant,
)
from nnbuild.kernels.cross_lane import window_layouts
from nnbuild.kernels.dsp import first_layer, in_place, patches, shared_tile_layers
from nnbuild.kernels.lanes import integer_layers, word_lanes
from nnbuild.kernels.lanes.byte_lanes import ByteLanes, M0ByteLanes, NoMacByteLanes
from nnbuild.kernels.lanes.layer_sums import float_lanes, integer_lanes, scalar_lanes
from nnbuild.kernels.lanes.vector_epilogue import KINDS, POINTWISE, fusible, refusal
from nnbuild.kernels.lanes.word_lanes import WordLanes
from nnbuild.kernels.loops import long_rows, summed_tiles
from nnbuild.kernels.loops.edge_tiles import FEW_REGISTERS, MANY_REGISTERS, REGISTERS, EdgeTiles, Positions
from nnbuild.kernels.loops.fine_ranges import FinePaddedTiles, FineVectorTiles
from nnbuild.kernels.loops.fine_ranges import refused as fine_refused
from nnbuild.kernels.loops.padded_tiles import PaddedTiles, padded
from nnbuild.kernels.loops.tiling import best_vectors
from nnbuild.kernels.loops.vector_tiles import VectorTiles, tiled
from nnbuild.kernels.loops.window import window_of
from nnbuild.kernels.paired_products import single_row, two_by_two_words, two_channels, two_positions
from nnbuild.kernels.parts import device_arithmetic
from nnbuild.kernels.parts.residual import FUSES
from nnbuild.kernels.parts.turned import turned
from nnbuild.kernels.winograd import scalar_groups as scalar_winograd_groups
from nnbuild.kernels.winograd import scalar_tiles as scalar_winograd
from nnbuild.kernels.winograd.float_vectors import refused as winograd_refused
from nnbuild.kernels.winograd.float_vectors import vector_winograd
from nnbuild.kernels.winograd.integer_vectors import ExactWinograd, exact_winograd
from nnbuild.kernels.winograd.integer_vectors import refused as exact_refused
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

OF_ROWS = 4
"""Registers of MANY_REGISTERS that a loop over rows of taps takes."""


def _scalar(site: Site[Conv2D]) -> EdgeTiles:
    zero = quant_of(site.inputs[0]).zero_point if site.inputs[0].quant else 0
    return EdgeTiles(site, scalar_lanes(site), REGISTERS, blank=str(zero))


def _one(site: Site[Conv2D]) -> EdgeTiles:
    return EdgeTiles(site, integer_lanes(site, 1), 1, blank=str(quant_of(site.inputs[0]).zero_point))


def _words(lanes: type[WordLanes], site: Site[Conv2D], registers: int) -> EdgeTiles:
    return EdgeTiles(site, lanes(site), registers)


def _fpu(site: Site[Conv2D]) -> EdgeTiles:
    return EdgeTiles(site, float_lanes(FPU, site).holding(4), FPU.registers)


def _bytes(lanes: type[ByteLanes], registers: int, site: Site[Conv2D], flat: bool = False) -> EdgeTiles:
    weights = M0ByteLanes.stored(site.constant("kernel")) if lanes is M0ByteLanes else None
    nest = Positions if flat else EdgeTiles
    if registers == MANY_REGISTERS and window_of(site).rows.kernel > 1:
        registers -= OF_ROWS
    return nest(site, lanes(site), registers, weights, str(quant_of(site.inputs[0]).zero_point), whole=True)


def _refused_positions(site: Site[Conv2D]) -> str | None:
    return bytes_layer(site) or (None if window_of(site).flat else "its outputs share inputs")


def _floats(depth: int, floats: Vectors, site: Site[Conv2D], nest: type[VectorTiles] = VectorTiles) -> VectorTiles:
    registers, window = floats.tile_registers, window_of(site)
    lanes = float_lanes(floats, site, depth).by_lane()
    if depth > 1 and window.filters <= lanes.lanes and window.groups == 1:
        lanes = lanes.joining(window.filters)
    draft = tiled(site, lanes, registers)
    vectors = -(-window.share // lanes.lanes)
    best = best_vectors(draft.places, [vectors], draft.steps, registers, window.area, lanes.loaded)
    return tiled(site, lanes.holding(best), registers, nest)


def _refused_floats(depth: int, floats: Vectors, site: Site[Conv2D]) -> str | None:
    reason = only_float(site) or refusal(site, fusible(floats, KINDS))
    if reason is None and depth > 1 and site.output_shape()[2] > floats.lanes:
        reason = "its channels fill the lanes already"
    return reason


def _refused_cut(floats: Vectors, site: Site[Conv2D]) -> str | None:
    return _refused_floats(1, floats, site) or fine_refused(window_of(site), floats.lanes)


def _integers(chosen: Vectors, site: Site[Conv2D], nest: type[PaddedTiles] = PaddedTiles) -> PaddedTiles:
    return padded(site, integer_layers.lanes_of(chosen, site), nest)


def _refused_cut_integers(chosen: Vectors, site: Site[Conv2D]) -> str | None:
    window = window_of(site)
    reason = _refused_integers(chosen, site) or fine_refused(window, chosen.lanes)
    return reason or ("it fuses no pool" if window.pool != (1, 1) else None)


def _exact(chosen: Vectors, site: Site[Conv2D]) -> ExactWinograd:
    return exact_winograd(site, integer_layers.lanes_of(chosen, site))


def _refused_exact(chosen: Vectors, site: Site[Conv2D]) -> str | None:
    reason = bytes_layer(site) or exact_refused(chosen, window_of(site)) or _refused_integers(chosen, site)
    lanes = None if reason else integer_layers.lanes_of(chosen, site)
    fits = isinstance(lanes, RealVectors) or (lanes is not None and lanes.rounded)
    return reason or (None if fits else "its sums may leave 32 bits")


def _refused_integers(chosen: Vectors, site: Site[Conv2D]) -> str | None:
    return integer_layers.refused_tail(site) or integer_layers.refused_long(chosen, site)


def _tiles(floats: Vectors) -> list[Kernel[Conv2D]]:
    """Floats in tiles, which take the weights one channel after the other."""
    fused = fusible(floats, KINDS)
    cut = of_set(floats, "_cut", _refused_cut, partial(_floats, 1, nest=FineVectorTiles), fused)
    return [of_set(floats, "", partial(_refused_floats, 1), partial(_floats, 1), fused), cut]


def _on_floats(floats: Vectors) -> list[Kernel[Conv2D]]:
    fused = fusible(floats, KINDS)
    found = [
        of_set(floats, by_depth(depth), partial(_refused_floats, depth), partial(_floats, depth), fused)
        for depth in floats.repeats
        if 1 < depth < floats.lanes
    ]
    return [*_tiles(floats), *found, of_set(floats, "_winograd", winograd_refused, vector_winograd, POINTWISE)]


def _on_integers(chosen: Vectors) -> list[Kernel[Conv2D]]:
    cut = partial(_integers, nest=FinePaddedTiles)
    found = [
        of_set(chosen, "_integers", _refused_integers, _integers, frozenset({"pool2d", "binary"})),
        of_set(chosen, "_integers_cut", _refused_cut_integers, cut, FUSES),
    ]
    if not {"h_mac_of", "h_mac"} & chosen.spellings.keys():
        return found
    return [*found, of_set(chosen, "_exact_winograd", _refused_exact, _exact, FUSES)]


_many_words = partial(_words, WordLanes, registers=MANY_REGISTERS - OF_ROWS)
_many = partial(_bytes, NoMacByteLanes, MANY_REGISTERS)
_PLAIN: tuple[Kernel[Conv2D], ...] = (
    variant("scalar", frozenset(), any_layer, _scalar),
    variant("scalar_one", frozenset(), integer_layer, _one),
    variant("bytes", frozenset({"bytes"}), bytes_layer, partial(_bytes, ByteLanes, REGISTERS)),
    variant("bytes_many", frozenset({"rv32im"}), bytes_layer, _many),
    variant("bytes_short", frozenset({"armv6m"}), bytes_layer, partial(_bytes, M0ByteLanes, FEW_REGISTERS)),
    *word_lanes.kernels("words", partial(_words, registers=FEW_REGISTERS)),
    variant(
        "words_many",
        frozenset({"rv32im"}),
        word_lanes.refused,
        partial(_words, WordLanes, registers=MANY_REGISTERS - OF_ROWS),
    ),
)
FLOATS: tuple[Kernel[Conv2D] | OnEach[Conv2D], ...] = (
    _PLAIN[0],
    variant("fpu", FEATURES, only_float, _fpu),
    OnEach("float_sums", _on_floats),
)
"""All kernels that compute floats."""
VARIANTS = (
    *_PLAIN,
    *chain.from_iterable(map(unpacked, _PLAIN)),
    FLOATS[1],
    variant("positions_many", frozenset({"rv32im"}), _refused_positions, partial(_many, flat=True)),
    *shared_tile_layers.CONVOLUTIONS,
    *patches.variants(FUSES),
    *in_place.variants(FUSES),
    *first_layer.variants(FUSES),
    *two_channels.VARIANTS,
    *two_by_two_words.VARIANTS,
    *single_row.VARIANTS,
    *scalar_winograd.VARIANTS,
    *scalar_winograd_groups.VARIANTS,
    *two_positions.VARIANTS,
    FLOATS[2],
    *narrow((*FLOATS[:2], OnEach("float_sums", _tiles))),
    OnEach("sums", _on_integers),
    *turned((FLOATS[1], *two_positions.VARIANTS, OnEach("float_sums", _tiles), OnEach("sums", _on_integers))),
    OnEach("sums", lambda chosen: list(unpacked(_on_integers(chosen)[0]))),
    summed_tiles.VARIANTS,
    OnEach("across", window_layouts.on_set),
    *long_rows.variants(),
    device_arithmetic.WEIGHTS,
)

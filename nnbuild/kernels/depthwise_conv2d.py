"""The kernels of depthwise convolutions: combinations of lanes and loops, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from nnbuild.isa.arm import FEATURES, FPU
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed.narrow_floats import narrow
from nnbuild.kernels.compressed.unpacked import unpacked
from nnbuild.kernels.contract import Kernel, OnEach, any_layer, bytes_layer, of_set, on_nests, only_float, variant
from nnbuild.kernels.depthwise import dsp_planes, single_window, tap_gather
from nnbuild.kernels.depthwise.padded_rows import Interleaved
from nnbuild.kernels.depthwise.tiles import Sliding, Taps
from nnbuild.kernels.lanes import integer_layers, word_lanes
from nnbuild.kernels.lanes.byte_lanes import ByteLanes, CentredByteLanes, M0CentredByteLanes, NoMacCentredByteLanes
from nnbuild.kernels.lanes.layer_sums import float_lanes, scalar_lanes
from nnbuild.kernels.lanes.tap_vectors import tap_vectors
from nnbuild.kernels.lanes.vector_epilogue import POINTWISE, refusal
from nnbuild.kernels.lanes.word_lanes import ShortSlidingLanes, WordLanes
from nnbuild.kernels.parts import device_arithmetic
from nnbuild.kernels.parts.turned import turned
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

LONGEST = 8
"""Positions of a tile of vectors, if registers suffice."""


def _scalar(site: Site[DepthwiseConv2D]) -> Taps:
    return Taps(site, scalar_lanes(site))


def _fpu(site: Site[DepthwiseConv2D]) -> Sliding:
    return Sliding(site, float_lanes(FPU, site), 6)


def _bytes(lanes: type[ByteLanes], positions: int, site: Site[DepthwiseConv2D]) -> Sliding:
    return Sliding(site, lanes(site), positions)


def _words(lanes: type[WordLanes], site: Site[DepthwiseConv2D]) -> Sliding:
    return Sliding(site, lanes(site), 4)


def _word_vectors(v: Vectors, site: Site[DepthwiseConv2D]) -> Sliding:
    spare = v.registers - site.constant("kernel").shape[1] - 1
    return Sliding(site, word_lanes.word_vectors(v, site), max(1, min(LONGEST, spare)))


def _floats(floats: Vectors, site: Site[DepthwiseConv2D]) -> Sliding:
    spare = floats.registers - floats.temporaries - site.constant("kernel").shape[1] - 1
    lanes = replace(float_lanes(floats, site), times=site.constant("kernel").shape[3])
    return Sliding(site, lanes, max(1, min(LONGEST, spare)))


def _refused_floats(site: Site[DepthwiseConv2D]) -> str | None:
    return only_float(site) or refusal(site, POINTWISE)


def _integers(chosen: Vectors, site: Site[DepthwiseConv2D]) -> Interleaved:
    return Interleaved(site, tap_vectors(chosen, site))


_SCALAR = variant("scalar", frozenset(), any_layer, _scalar)
FLOATS: tuple[Kernel[DepthwiseConv2D] | OnEach[DepthwiseConv2D], ...] = (
    _SCALAR,
    variant("fpu", FEATURES, only_float, _fpu),
    on_nests("float", "", _refused_floats, _floats, POINTWISE),
)
"""All kernels that compute floats."""
WORDS: tuple[Kernel[DepthwiseConv2D] | OnEach[DepthwiseConv2D], ...] = (
    *word_lanes.kernels("sliding_words", _words, ShortSlidingLanes),
    OnEach("sums", lambda v: [of_set(v, "_integers", integer_layers.refused, _integers)]),
    OnEach("across", lambda v: [of_set(v, "_words", word_lanes.refused_vectors, _word_vectors)]),
)
"""All that compute words, beside the portable one."""
BYTES: tuple[Kernel[DepthwiseConv2D], ...] = (
    variant("sliding", frozenset({"bytes"}), bytes_layer, partial(_bytes, CentredByteLanes, 4)),
    variant("sliding_many", frozenset({"rv32im"}), bytes_layer, partial(_bytes, NoMacCentredByteLanes, 8)),
    variant("sliding_short", frozenset({"armv6m"}), bytes_layer, partial(_bytes, M0CentredByteLanes, 2)),
)
"""Bytes, one channel after the other."""
GATHERED: OnEach[DepthwiseConv2D] = OnEach(
    "across", lambda v: [of_set(v, "_gathered", tap_gather.refused, tap_gather.nest)]
)
VARIANTS = (
    _SCALAR,
    *unpacked(_SCALAR),
    FLOATS[1],
    *BYTES,
    *WORDS[:2],
    *dsp_planes.VARIANTS,
    *single_window.VARIANTS,
    FLOATS[2],
    *narrow(FLOATS),
    WORDS[2],
    GATHERED,
    WORDS[3],
    *turned((*FLOATS[1:], *BYTES, GATHERED, *WORDS)),
    device_arithmetic.WEIGHTS,
)

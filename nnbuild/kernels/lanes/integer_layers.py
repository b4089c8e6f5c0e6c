"""Integer layers in vectors: which of them have an exact scaling, and the lanes for them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nnbuild.isa.float_results import FloatResults
from nnbuild.isa.integer_channels import as_kind, integer_vectors
from nnbuild.isa.integer_kinds import RealVectors, carried
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import integer_layer, reason_of
from nnbuild.kernels.lanes.layer_sums import centred_start, general_of, layer_of, results_of, sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.kernels.parts import residual
from nnbuild.kernels.parts.residual import Residual
from nnbuild.numeric.requant import General
from nnbuild.numeric.requant_line import Lines, lines
from nnbuild.numeric.requant_product import LONG, Products, products
from nnbuild.numeric.requant_twice import Twice, twice
from nnbuild.numeric.rounding import INT32
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import bounds, gives_floats, quant_of
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING


@lru_cache(maxsize=256)
def lines_of(site: Site[Weighted]) -> Lines | None:
    """The lines that scale sums to outputs, if any are exact."""
    return lines(layer_of(site))


@lru_cache(maxsize=256)
def _products_of(site: Site[Weighted]) -> Products | None:
    """Multipliers with lower halves that do the same, if there are any."""
    layer = layer_of(site)
    return products(layer, LONG, np.zeros_like(layer.low), np.full_like(layer.low, INT32[1]))


def _rule(vectors: Vectors, site: Site[Weighted]) -> Lines | Twice | Products | General | FloatResults:
    """The set's own rounding instructions where possible, else lines or longer multipliers, or else one by one."""
    if results := results_of(site):
        return results
    found = twice(layer_of(site)) if vectors.rounds and site.inputs[0].dtype == "int8" else None
    return found or lines_of(site) or _products_of(site) or general_of(site)


def refused_sums(site: Site[Weighted]) -> str | None:
    """Why sums cannot be computed in 32 bits."""
    if not gives_floats(site) and isinstance(lines_of(site), Lines):
        return None
    sums = sums_of(site)
    fits = sums.low.min() >= INT32[0] and sums.high.max() <= INT32[1]
    return None if fits else "its sums may need more than 32 bits"


def refused_weights(site: Site[Weighted]) -> str | None:
    kernel = site.constants["kernel"]
    if kernel.data.dtype != "int8" and site.inputs[0].dtype != "int8":
        return "its weights have more than 8 bits"
    return "its weights have a zero point" if quant_of(kernel).zero_point != 0 else None


def refused(chosen: Vectors, site: Site[Weighted]) -> str | None:
    return refused_long(chosen, site) or refused_sums(site)


def refused_long(chosen: Vectors, site: Site[Weighted]) -> str | None:
    """The same for loops that carry sums of more than 32 bits."""
    return integer_layer(site) or refused_weights(site) or (refused_sums(site) if site.tail else None)


def lanes_of(vectors: Vectors, site: Site[Weighted]) -> IntegerVectors:
    """The lanes, with the fused pool or residual add of the tail."""
    found, out, x = _rule(vectors, site), site.outputs[0], site.inputs[0]
    low, high = (0, 0) if isinstance(found, FloatResults) else bounds(site.attributes.clamp, out)
    if site.tail and isinstance(pool := site.tail[0].attributes, Pool2D):
        least, most = bounds(pool.clamp, site.tail[0].outputs[0])
        low, high = min(max(low, least), most), min(max(high, least), most)
    weights = site.constant("kernel").reshape(-1, site.output_shape()[-1])
    centre = found.of("centre") if isinstance(found, Lines | Products) else np.zeros(weights.shape[1], np.int64)
    bias = centred_start(site, centre)
    added = _added(site)
    lanes = integer_vectors(vectors, x.dtype, quant_of(x).zero_point, (low, high), weights, bias, found)
    if isinstance(found, FloatResults):
        return as_kind(RealVectors, lanes, results=found, output_type="float")
    lanes = replace(lanes, output_zero=quant_of(out).zero_point)
    if isinstance(found, General) and refused_sums(site):
        return carried(lanes, bias)
    return lanes if added is None or isinstance(added, str) else replace(lanes, added=added)


@lru_cache(maxsize=256)
def _added(site: Site[Weighted]) -> Residual | str | None:
    """The residual add, with this layer's outputs on the left."""
    if not site.tail or not isinstance(site.tail[0].attributes, Binary):
        return None
    return residual.refusal(site) or residual.residual_of(site)


def refused_tail(site: Site[Conv2D]) -> str | None:
    """Why a convolution cannot fuse the operations that follow."""
    if not site.tail:
        return None
    if len(site.tail) > 1:
        return "it fuses one pool or one sum only"
    pool = site.tail[0].attributes
    if isinstance(pool, Pool2D):
        plain = pool.function == "max" and pool.strides == pool.window and pool.padding == NO_PADDING
        return None if plain else "it fuses only a maximum pool whose windows neither overlap nor reach beyond the rows"
    return reason_of(_added(site))

"""The weighted sums of a layer: integer weights, accumulator ranges, the requantization rule, and scalar lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.isa.c99 import SINGLE, IntegerLanes
from nnbuild.isa.float_results import FloatResults
from nnbuild.isa.vector_lanes import VectorLanes, vector_lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.lanes.narrow_float_lanes import FACTOR, NarrowFloatLanes
from nnbuild.kernels.lanes.vector_epilogue import epilogue_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import General, Layer, RuleName
from nnbuild.numeric.rounding import Ints, ints, limits
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.dense import Dense, rounds_once
from nnbuild.ops.integer import bounds, float_line, gives_floats, quant_of, real_scales
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Sums:
    """Weights [taps, channels], the starts of sums, and each channel's accumulator range.

    Inputs keep their zero point, which the start accounts for; padding has the value of the zero point.
    """

    weights: Ints
    start: Ints
    low: Ints
    high: Ints

    @property
    def largest_weight(self) -> Ints:
        found: Ints = np.abs(self.weights).max(axis=0)
        return found


@lru_cache(maxsize=256)
def sums_of(site: Site) -> Sums:
    kernel, x = site.constants["kernel"], site.inputs[0]
    taps = np.moveaxis(kernel.data, 2, 3) if site.op.kind == "conv2d_transpose" else kernel.data
    weights = ints(taps).reshape(-1, site.output_shape()[-1]) - quant_of(kernel).zero_point
    start = _start(site, weights.shape[1]) - quant_of(x).zero_point * weights.sum(axis=0)
    smallest, largest = limits(x.dtype)
    low = np.minimum(weights * smallest, weights * largest).sum(axis=0)
    high = np.maximum(weights * smallest, weights * largest).sum(axis=0)
    return Sums(weights, start, start + low, start + high)


@lru_cache(maxsize=256)
def layer_of(site: Site[Weighted]) -> Layer:
    """The requantization of these sums; a product of two tensors has one for all columns."""
    attributes, out = site.attributes, site.outputs[0]
    rule: RuleName = "wide" if out.dtype == "int16" else "twice"
    if isinstance(attributes, MatMul):
        ends = attributes.accumulator_range(site)
        rule = "once" if attributes.once else rule
        scales = np.array([attributes.real(site)])
        return Layer(rule, scales, quant_of(out).zero_point, limits(out.dtype), ints([ends[0]]), ints([ends[1]]))
    sums = sums_of(site)
    once = (
        rounds_once(site) if isinstance(attributes, Dense) else isinstance(attributes, Convolution) and attributes.once
    )
    if once:
        rule = "once"
    scales = np.broadcast_to(real_scales(site), sums.start.shape)
    return Layer(rule, scales, quant_of(out).zero_point, bounds(attributes.clamp, out), sums.low, sums.high)


def general_of(site: Site) -> General:
    """The vendored function that scales these sums, and those of a transposed convolution; always exact."""
    return layer_of(site).general(limits(site.outputs[0].dtype))


def centred_start(site: Site, centre: Ints) -> Array:
    """The start of sums of inputs less their zero point: the bias minus the centre of the scaling."""
    return _start(site, len(centre)) - centre


def _start(site: Site, channels: int) -> Ints:
    """The bias in steps of the sums; one in floats is added to the results."""
    added = "bias" in site.constants and not gives_floats(site)
    return ints(site.constant("bias")) if added else np.zeros(channels, np.int64)


@lru_cache(maxsize=256)
def results_of(site: Site[Weighted]) -> FloatResults | None:
    """How sums become floats, if they do."""
    if not gives_floats(site):
        return None
    factor, summand = float_line(site, sums_of(site).start.size)
    found = {"factor": (factor, 1), "summand": (summand, 0)}
    constants = {name: values for name, (values, neutral) in found.items() if (values != neutral).any()}
    return FloatResults(constants, site.attributes.clamp)


def bias_of(site: Site) -> dict[str, Array]:
    return {"bias": site.constant("bias")} if "bias" in site.constants else {}


def float_lanes(floats: Vectors, site: Site[Weighted], depth: int = 1) -> VectorLanes:
    """Lanes for a site's sums, with its epilogue."""
    channels, kind = bias_of(site), VectorLanes
    if FACTOR in site.constants:
        channels, kind = channels | {FACTOR: site.constant(FACTOR)}, NarrowFloatLanes
    return vector_lanes(floats, channels, site.attributes.clamp, depth, epilogue_of(site).finish, kind)


def integer_lanes(site: Site[Weighted], vectors: int, start: Ints | None = None) -> IntegerLanes:
    """Integer lanes for `vectors` outputs at once; with a `start`, inputs keep their zero point."""
    lanes = scalar_lanes(site)
    assert isinstance(lanes, IntegerLanes)
    if start is None:
        return replace(lanes, vectors=vectors)
    channels = {**lanes.channels, "bias": start.astype(np.int32)}
    return replace(lanes, channels=channels, input_zero=0, vectors=vectors)


def scalar_lanes(site: Site[Weighted]) -> VectorLanes | IntegerLanes:
    """The lanes of portable C."""
    if site.dtypes == {"float32"}:
        return float_lanes(SINGLE, site).holding(4)
    x, out, kernel, results = site.inputs[0], site.outputs[0], site.constants["kernel"], results_of(site)
    scaling = results or general_of(site)
    return IntegerLanes(
        channels=({} if results else bias_of(site)) | dict(scaling.constants),
        input_type=C_TYPES[x.dtype],
        weight_type=C_TYPES[kernel.data.dtype.name],
        output_type=C_TYPES[out.dtype],
        input_zero=quant_of(x).zero_point,
        weight_zero=quant_of(kernel).zero_point,
        output_zero=0 if results else quant_of(out).zero_point,
        bounds=(0, 0) if results else bounds(site.attributes.clamp, out),
        scaling=scaling,
    )

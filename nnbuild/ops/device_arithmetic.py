"""Operations in the arithmetic of a device: their operator names, scales and results."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array, Op
from nnbuild.numeric.arithmetic import EXACT, TFLITE, Arithmetic, added, mean, requant, scaling, scalings
from nnbuild.numeric.elementwise import add_scales
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.integer import quant_of, real_scales
from nnbuild.ops.site import Site

KINDS = {kind: kind for kind in ("conv2d", "depthwise_conv2d", "dense", "concatenate")}


def operator_name(op: Op) -> str | None:
    """The operator's name on devices; None for operations that no device has."""
    function = getattr(op.attributes, "function", "")
    if op.kind == "pool2d" and not getattr(op.attributes, "upward", False):
        return f"{function}_pool"
    if op.kind == "binary" and function == "add" and len(op.inputs) == 2:
        return "add"
    return KINDS.get(op.kind)


def usual(operator: str, spec: Arithmetic) -> bool:
    """Whether the operator's results equal TFLite's."""
    if operator == "average_pool":
        return spec.mean == TFLITE.mean
    if operator in ("max_pool", "concatenate"):
        return True
    like = EXACT if operator == "dense" else TFLITE
    spare = operator != "add" or spec.spare == like.spare
    return spare and (spec.scale, spec.rounding) == (like.scale, like.rounding)


def device_arithmetic_of(op: Op) -> Arithmetic | None:
    """The device arithmetic of an operation, if its results differ from TFLite's."""
    spec, operator = op.arithmetic, operator_name(op)
    return spec if spec is not None and operator is not None and not usual(operator, spec) else None


def channel_scales(site: Site, spec: Arithmetic, channels: int) -> tuple[Ints, Ints]:
    """Multipliers and shifts of a layer with weights, for every output channel."""
    return scalings(np.broadcast_to(real_scales(site), (channels,)), spec)


def scaled_sums(site: Site, sums: Array, spec: Arithmetic) -> Ints:
    """The scaled sums plus the zero point, not clamped yet; `sums` has the channels last."""
    scaled = requant(sums, spec, *channel_scales(site, spec, sums.shape[-1]))
    return np.asarray(scaled + quant_of(site.outputs[0]).zero_point)


def operand_scales(site: Site, spec: Arithmetic) -> tuple[tuple[int, int], ...]:
    """The scales of both operands of an addition, and of its result."""
    first, second, out = (quant_of(tensor).scale for tensor in (*site.inputs, site.outputs[0]))
    twice = 2.0 * max(first, second)
    if spec.spare == TFLITE.spare and spec.scale == TFLITE.scale:
        known = add_scales(first, second, out, 8)
        return tuple((scale.multiplier, scale.shift) for scale in (known.first, known.second, known.output))
    return tuple(scaling(real, spec) for real in (first / twice, second / twice, twice / ((1 << spec.spare) * out)))


def sum_of_two(site: Site, left: Array, right: Array, spec: Arithmetic) -> Ints:
    zeros = [quant_of(tensor).zero_point for tensor in (*site.inputs, site.outputs[0])]
    total = added(ints(left) - zeros[0], ints(right) - zeros[1], spec, operand_scales(site, spec))
    return np.asarray(total + zeros[2])


def averaged(total: Array, count: Array, spec: Arithmetic) -> Ints:
    return mean(total, count, spec.mean)

"""Results too far beyond the output's format: scaled to its steps they leave 32 bits, and wrap instead of being
bounded."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array, Constant, Tensor
from nnbuild.numeric.multiplier import SUM_SCALE_LIMIT, Multiplier
from nnbuild.numeric.rounding import limits
from nnbuild.numeric.softmax import softmax16_multiplier
from nnbuild.ops.activation import Activation
from nnbuild.ops.activation_rules import Rescale, Slopes, straight_rule
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.constants import channels_last
from nnbuild.quantize.formats import weight_scales

MOST_STEPS = 2.0**30
"""What is multiplied by one half or more, after a shift to the left, keeps 32 bits below that."""


def leaves_32_bits(site: Site[Attributes], weight_bits: int) -> bool:
    """Whether a result may, before it is bounded; constants are floats, and tensors have formats. Dense layers with
    8-bit weights bound it before."""
    out = site.outputs[0]
    if isinstance(site.attributes, Dense) and weight_bits == 8:
        return False
    if out.is_whole or not site.inputs or any(tensor.is_whole for tensor in site.inputs):
        return False
    return _most_steps(site, out) >= MOST_STEPS


def is_too_coarse(site: Site[Attributes]) -> bool:
    """Whether a step of some product is so large beside the output's that sums of them cannot be scaled."""
    bias: Array | None
    match site.attributes:
        case Affine():
            weights, bias = site.constant("scale")[None], site.constant("shift")
        case Convolution():
            weights = channels_last(site, site.constant("kernel"))
            bias = site.constant("bias") if "bias" in site.constants else None
        case MatMul():
            return _products(site, quant_of(site.inputs[1]).scale)
        case _:
            return False
    return _products(site, float(weight_scales(weights, bias, quant_of(site.inputs[0]).scale).max()))


def _products(site: Site[Attributes], scale: float) -> bool:
    """Whether those of the first input with another scale are too coarse."""
    return quant_of(site.inputs[0]).scale * scale >= SUM_SCALE_LIMIT * quant_of(site.outputs[0]).scale


def _most_steps(site: Site[Attributes], out: Tensor) -> float:
    """The largest result, in steps of what it is scaled to."""
    match site.attributes:
        case Activation(function, parameters):
            return _most_of_line(straight_rule(function, parameters, site.inputs[0], out), site.inputs[0])
        case Softmax() if out.dtype == "int16":
            low, high = limits(out.dtype)
            return (high - low) * _real(softmax16_multiplier(quant_of(site.inputs[0]).scale))
    return _reach(site) / quant_of(out).scale


def _most_of_line(rule: object, x: Tensor) -> float:
    reach = _largest(x) / quant_of(x).scale
    match rule:
        case Rescale(scale=scale):
            return reach * _real(scale)
        case Slopes(scales=scales, threshold=threshold):
            return max(reach * _real(scales.positive), (reach + abs(threshold)) * _real(scales.negative))
    return 0.0


def _reach(site: Site[Attributes]) -> float:
    """The largest size of a result; 0 for operations whose results are held in their range."""
    size = _largest(site.inputs[0])
    match site.attributes:
        case Binary(function) if function != "divide":
            left, right = operands([*map(_largest, site.inputs)], {at: _ends(c) for at, c in site.constants.items()})
            joined = {"multiply": left * right, "squared_difference": (left + right) ** 2}
            return joined.get(function, left + right)
        case Affine():
            scale, shift = (np.abs(site.constant(role)).astype(np.float64) for role in ("scale", "shift"))
            return float((size * scale + shift).max())
        case PReLU():
            return size * max(1.0, _ends(site.constants["slope"]))
        case Reduce("sum") as reduce:
            return size * reduce.size(site)
        case Reduce("mean"):
            return size
        case MatMul():
            return size * _largest(site.inputs[1]) * site.shape()[-1]
        case Convolution() | Dense():
            return _sums(site, size)
    return 0.0


def _sums(site: Site[Attributes], size: float) -> float:
    """Of products with a kernel, and a bias."""
    weights = np.abs(channels_last(site, site.constant("kernel"))).sum(axis=0, dtype=np.float64)
    bias = np.abs(site.constant("bias")) if "bias" in site.constants else np.zeros(1)
    return float((size * weights + bias).max(initial=0.0))


def _largest(tensor: Tensor) -> float:
    quant = quant_of(tensor)
    return max(abs(end - quant.zero_point) for end in limits(tensor.dtype)) * quant.scale


def _ends(constant: Constant) -> float:
    return float(np.abs(constant.data).max(initial=0.0))


def _real(scale: Multiplier) -> float:
    return abs(scale.multiplier) * 2.0 ** (scale.shift - 31)

"""Quantizes the constants of an operation, given its tensors' formats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nnbuild.model.graph import Array, Constant, Quant, Tensor
from nnbuild.numeric.layer_norm import UNIT, summand_scale
from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import limits
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import EQUALITIES, Compare
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gather import Gather
from nnbuild.ops.integer import quant_of
from nnbuild.ops.known import Known
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pad import Pad
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.select import Select
from nnbuild.ops.site import Site
from nnbuild.quantize.formats import SMALLEST, device_scales, quantized_values, quantized_weights, weight_scales
from nnbuild.quantize.recurrent import recurrent_constants

"""They hold for a value's own integer alone, as for the mark of a masked step."""
WIDER = {"int8": "int16", "int16": "int32"}
BOUNDS = ("maximum", "minimum")
"""What lies beyond the format of the output bounds like its ends, however large it is."""
SUMS = (Conv2D, Conv2DTranspose, Dense, DepthwiseConv2D)
BIAS_TYPES = {"int8": "int32", "int16": "int64"}
LARGEST_SUM = 2.0**45
"""Limit of sums of 16-bit inputs and 16-bit weights; the bias may be half of it."""
LARGEST_SUMMAND = 2.0**30
"""Of a normalization, in its steps: factors that are tiny beside it have coarser ones."""
SMALLEST_RATIO = 2.0**-31
"""Of a 16-bit layer's products to its outputs: what is smaller counts as zero, and with it the bias of a dead channel,
which has 44 bits."""


def integer_constants(site: Site, means: tuple[float, ...] = (), weight_bits: int = 8) -> Mapping[str, Constant]:
    """The integer constants of a site whose tensors already have formats.

    `means` of the input, where known, let a bias compensate the average effect of rounding the weights. `weight_bits`
    apply to recurrent and dense layers; all others have 8.
    """
    attributes = site.attributes
    if isinstance(attributes, Recurrent):
        return recurrent_constants(site.of(Recurrent), weight_bits)
    if isinstance(attributes, SUMS):
        return _weights_and_bias(site, means, weight_bits)
    if isinstance(attributes, Affine):
        return _affine_constants(site)
    if isinstance(attributes, LayerNorm):
        return _norm_constants(site)
    dtype = site.inputs[0].dtype
    if isinstance(attributes, Gather | Known | Pad | Select):
        return {role: _in_format(constant, site.outputs[0]) for role, constant in site.constants.items()}
    if site.inputs[0].is_whole:
        return dict(site.constants)
    if isinstance(attributes, Compare) and attributes.function in EQUALITIES:
        return {role: _mark(constant, site.inputs[0]) for role, constant in site.constants.items()}
    if isinstance(attributes, Compare):
        return {role: _limit(constant, site.inputs[0]) for role, constant in site.constants.items()}
    if isinstance(attributes, Binary) and attributes.function in BOUNDS:
        return {role: _in_format(constant, site.outputs[0]) for role, constant in site.constants.items()}
    if isinstance(attributes, Binary | PReLU):
        return {role: quantized_values(c.name, c.data, dtype) for role, c in site.constants.items()}
    return dict(site.constants)


def _limit(constant: Constant, like: Tensor) -> Constant:
    """What quantized numbers are compared with, in their own steps, but not within their limits."""
    quant, dtype = quant_of(like), WIDER[like.dtype]
    with np.errstate(over="ignore"):
        steps = constant.data.astype(np.float32) / np.float32(quant.scale)
    whole = round_half_away(np.clip(steps, *limits(dtype))) + quant.zero_point
    return Constant(constant.name, np.clip(whole, *limits(dtype)).astype(dtype), quant)


def _mark(constant: Constant, like: Tensor) -> Constant:
    """A number whose equals are looked for; one beyond the format, more than its rounding, has none there."""
    limit, held = _limit(constant, like), _in_format(constant, like)
    low, high = limits(like.dtype)
    beyond = (limit.data < low - 1) | (limit.data > high + 1)
    return Constant(held.name, np.where(beyond, limit.data, held.data), held.quant) if beyond.any() else held


def _in_format(constant: Constant, like: Tensor) -> Constant:
    """A constant that is moved, in the format of its destination."""
    if like.is_whole:
        return constant
    quant = quant_of(like)
    steps = np.round(constant.data.astype(np.float64) / quant.scale) + quant.zero_point
    return Constant(constant.name, np.clip(steps, *limits(like.dtype)).astype(like.dtype), quant)


def _weights_and_bias(site: Site, means: tuple[float, ...], bits: int) -> dict[str, Constant]:
    kernel, x = site.constants["kernel"], site.inputs[0]
    by_channel = channels_last(site, kernel.data)
    bias = site.constant("bias").astype(np.float64) if "bias" in site.constants else None
    input_scale = quant_of(x).scale
    scales = weight_scales(by_channel, bias, input_scale, bits, bias_bits=30 if bits == 8 else 44)
    if bits == 16:
        scales = np.maximum(scales, np.abs(by_channel).sum(axis=0) * 2.0**15 / LARGEST_SUM)
    if x.dtype == "int16":
        scales = np.maximum(scales, SMALLEST_RATIO * quant_of(site.outputs[0]).scale / input_scale)
    if site.op.arithmetic is not None:
        scales = device_scales(scales, by_channel, bias, quant_of(x), site.op.arithmetic)
    flat = quantized_weights(kernel.name, by_channel, scales, bits)
    data = channels_back(site, flat.data, kernel.data.shape)
    constants = {"kernel": Constant(kernel.name, data, flat.quant)}
    if bias is not None:
        bias = bias + _average_error(site, by_channel - flat.data * scales, means)
        constants["bias"] = _rounded(site.constants["bias"].name, bias, input_scale * scales, BIAS_TYPES[x.dtype])
    return constants


def _rounded(name: str, values: Array, scales: Array | float, dtype: str) -> Constant:
    return Constant(name, np.round(values.astype(np.float64) / scales).astype(dtype))


def _average_error(site: Site, errors: Array, means: tuple[float, ...]) -> Array:
    """What rounding the weights [taps, out] adds to each output for an average input."""
    x, out = np.asarray(means), errors.shape[1]
    attributes = site.attributes
    if len(x) != site.shape()[-1] or not np.isfinite(x).all():
        return np.zeros(out)
    if isinstance(attributes, DepthwiseConv2D):
        return np.asarray(_tap_shares(site) @ errors * np.repeat(x, out // len(x)))
    groups = attributes.groups if isinstance(attributes, Conv2D) else 1
    depth, share = len(x) // groups, out // groups
    by_input = np.tensordot(_tap_shares(site), errors.reshape(-1, depth, out), 1)
    parts = [x[g * depth : (g + 1) * depth] @ by_input[:, g * share : (g + 1) * share] for g in range(groups)]
    return np.concatenate(parts)


def _tap_shares(site: Site) -> Array:
    """The share of outputs for which each tap of a window lies on an input, not on padding: it is small in small
    images, and where a transposed convolution has strides."""
    attributes, sizes = site.attributes, (site.constants["kernel"].data.shape, site.shape(), site.output_shape())
    if isinstance(attributes, Conv2DTranspose):
        steps = attributes.strides, attributes.dilation, attributes.crop
        return np.outer(*(_shares_between(*axis) for axis in zip(*sizes, *steps, strict=False))).reshape(-1)
    if isinstance(attributes, Conv2D | DepthwiseConv2D):
        around = attributes.strides, attributes.dilation, attributes.padding
        return np.outer(*(_shares_along(*axis) for axis in zip(*sizes, *around, strict=False))).reshape(-1)
    return np.ones(1)


def _shares_along(taps: int, size: int, places: int, stride: int, dilation: int, padding: tuple[int, int]) -> Array:
    at = np.arange(places) * stride - padding[0] + np.arange(taps)[:, None] * dilation
    return np.asarray(((at >= 0) & (at < size)).mean(axis=1))


def _shares_between(taps: int, size: int, places: int, stride: int, dilation: int, crop: int) -> Array:
    at = np.arange(size) * stride - crop + np.arange(taps)[:, None] * dilation
    return np.asarray(((at >= 0) & (at < places)).sum(axis=1) / places)


def _affine_constants(site: Site) -> dict[str, Constant]:
    """Like a depthwise convolution with one weight per channel: each factor is the largest integer at its own scale."""
    factor, summand = site.constants["scale"], site.constants["shift"]
    x = site.inputs[0]
    scales = weight_scales(factor.data[None], summand.data, quant_of(x).scale)
    steps = quantized_weights(factor.name, factor.data, scales)
    return {
        "scale": steps,
        "shift": _rounded(summand.name, summand.data, quant_of(x).scale * scales, BIAS_TYPES[x.dtype]),
    }


def _norm_constants(site: Site) -> dict[str, Constant]:
    """16-bit factors with one scale; summands in steps of normalized values times factors."""
    constants = {}
    scale = 1.0 / UNIT
    if "scale" in site.constants:
        factors = site.constants["scale"]
        largest = max(float(np.abs(factors.data).max()), SMALLEST)
        summand = float(np.abs(site.constant("shift")).max()) if "shift" in site.constants else 0.0
        scale = float(np.float32(max(largest / 32767, summand / (summand_scale(1.0) * LARGEST_SUMMAND))))
        constants["scale"] = Constant(
            factors.name, np.round(factors.data.astype(np.float64) / scale).astype(np.int16), Quant((scale,))
        )
    if "shift" in site.constants:
        constants["shift"] = _rounded(
            site.constants["shift"].name, site.constant("shift"), summand_scale(scale), "int32"
        )
    return constants


def channels_last(site: Site, kernel: Array) -> Array:
    """The weights as [everything else, output channels]."""
    if isinstance(site.attributes, Conv2DTranspose):
        kernel = kernel.transpose(0, 1, 3, 2)
    return kernel.reshape(-1, site.output_shape()[-1])


def channels_back(site: Site, flat: Array, shape: tuple[int, ...]) -> Array:
    if isinstance(site.attributes, Conv2DTranspose):
        rows, columns, out, channels = shape
        return np.ascontiguousarray(flat.reshape(rows, columns, channels, out).transpose(0, 1, 3, 2))
    return flat.reshape(shape)

"""The constants of an operation as integers, given the formats of its tensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nnbuild.graph import Array, Constant
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site
from nnbuild.quantize.formats import quantized_values, quantized_weights, weight_scales
from nnbuild.quantize.recurrent import recurrent_constants

SUMS = (Conv2D, Conv2DTranspose, Dense, DepthwiseConv2D)
BIAS_TYPES = {"int8": "int32", "int16": "int64"}
LARGEST_SUM = 2.0**45
"""What sums of 16-bit inputs and 16-bit weights may reach; the bias may be half of it."""


def integer_constants(site: Site, weight_bits: int = 8) -> Mapping[str, Constant]:
    """The site's tensors have their formats already, its constants are floats still."""
    attributes = site.op.attributes
    if isinstance(attributes, Recurrent):
        return recurrent_constants(site, weight_bits)
    if isinstance(attributes, SUMS):
        return _weights_and_bias(site, weight_bits)
    dtype = site.inputs[0].dtype
    if isinstance(attributes, Binary | PReLU):
        return {role: quantized_values(c.name, c.data, dtype) for role, c in site.constants.items()}
    return dict(site.constants)


def _weights_and_bias(site: Site, bits: int) -> dict[str, Constant]:
    kernel, x = site.constants["kernel"], site.inputs[0]
    by_channel = channels_last(site, kernel.data)
    bias = site.constant("bias") if "bias" in site.constants else None
    input_scale = quant_of(x).scale
    scales = weight_scales(by_channel, bias, input_scale, bits, bias_bits=30 if bits == 8 else 44)
    if bits == 16:
        scales = np.maximum(scales, np.abs(by_channel).sum(axis=0) * 2.0**15 / LARGEST_SUM)
    flat = quantized_weights(kernel.name, by_channel, scales, bits)
    data = channels_back(site, flat.data, kernel.data.shape)
    constants = {"kernel": Constant(kernel.name, data, flat.quant)}
    if bias is not None:
        steps = np.round(bias.astype(np.float64) / (input_scale * scales))
        kind = BIAS_TYPES[x.dtype]
        constants["bias"] = Constant(site.constants["bias"].name, steps.astype(kind))
    return constants


def channels_last(site: Site, kernel: Array) -> Array:
    """The weights as [everything, output channels]."""
    if isinstance(site.op.attributes, Conv2DTranspose):
        kernel = kernel.transpose(0, 1, 3, 2)
    return kernel.reshape(-1, site.output_shape()[-1])


def channels_back(site: Site, flat: Array, shape: tuple[int, ...]) -> Array:
    if isinstance(site.op.attributes, Conv2DTranspose):
        rows, columns, out, channels = shape
        return np.ascontiguousarray(flat.reshape(rows, columns, channels, out).transpose(0, 1, 3, 2))
    return flat.reshape(shape)

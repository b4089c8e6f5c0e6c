"""DeformConv: samples of an image below each weight, moved by its offsets, and their products with the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.onnx.arithmetic import Operand, combined
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.convolution import padding, per_axis
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, part
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.frontend.onnx.sampling import either, sampled
from nnbuild.model.graph import Shape
from nnbuild.model.views import transposed
from nnbuild.ops.layout import Value
from nnbuild.ops.windows import windows_along


def deform_conv(call: Call) -> None:
    x, kernel = call.real(0), call.weights(1)
    call.expect(len(x.shape) == kernel.ndim == 4, "its input has not two spatial axes.", "Use images of two axes.")
    several, window = call.integer("offset_group", 1), kernel.shape[2:]
    if call.integer("group", 1) != 1:
        raise call.unsupported(f"its weights are in {call.integer('group')} groups")
    call.expect(not call.has("kernel_shape") or call.integers("kernel_shape") == window, "its kernel_shape is wrong.")
    (batch, channels, *sizes), taps = x.shape, prod(window)
    strides, dilation = (per_axis(call, name, 2) for name in ("strides", "dilations"))
    pads = padding(call, sizes, window, strides, dilation)
    places = tuple(map(windows_along, sizes, window, strides, dilation, pads))
    call.within_tables(taps * prod(places))
    fits = kernel.shape[1] == channels and several > 0 and channels % several == 0
    call.expect(fits, f"its weights {list(kernel.shape)} do not match {channels} channels in {several} groups.")
    offsets = _by_group(call, 2, (batch, several, taps, 2, *places))
    shares = _by_group(call, 4, (batch, several, taps, 1, *places)) if call.given(4) else None
    steps = [
        np.arange(k)[:, None] * d + np.arange(n) * s - p
        for k, d, n, s, (p, _) in zip(window, dilation, places, strides, pads, strict=True)
    ]
    begins = [
        np.broadcast_to(at, (*window, *places)).reshape(1, -1)
        for at in (steps[0][:, None, :, None], steps[1][None, :, None, :])
    ]
    found = []
    for group in range(several):
        own = part(call, x, [(0, 1, batch), (group * channels // several, 1, channels // several), *every(x.shape[2:])])
        rows, columns = (either(call, "add", _one(call, offsets, group, i), begins[i]) for i in (0, 1))
        samples = sampled(call, own, rows, columns, False, True)
        if shares is not None:
            share = _one(call, shares, group, 0)
            share = as_shape(call, share, (*share.shape, 1)) if isinstance(share, Value) else share[..., None]
            samples = combined(call, "multiply", samples, share)
        found.append(samples)
    samples = as_shape(call, joined(call, found, 2), (batch, taps, prod(places), channels))
    samples = replace(samples, view=transposed(samples.view, (0, 2, 1, 3)))
    samples = as_shape(call, samples, (batch, prod(places), taps * channels))
    turned = np.ascontiguousarray(kernel.transpose(2, 3, 1, 0).reshape(taps * channels, -1))
    bias = call.weights(3).reshape(-1) if call.given(3) else None
    call.expect(bias is None or bias.size == len(kernel), "its bias does not match its outputs.")
    made = dense(call, Mode((samples,), FLOAT, bias=bias), samples, turned)
    made = as_shape(call, made, (batch, *places, len(kernel)))
    call.put(replace(made, view=transposed(made.view, (0, 3, 1, 2))))


def _by_group(call: Call, index: int, shape: Shape) -> Operand:
    """An input for each group, weight and part, by place."""
    found = call.weights(index) if call.is_constant(index) else call.real(index)
    wanted = (shape[0], prod(shape[1:4]), *shape[4:])
    call.expect(found.shape == wanted, f"its input {call.name_of(index)!r} is {list(found.shape)}, not {list(wanted)}.")
    flat = (*shape[:4], prod(shape[4:]))
    return as_shape(call, found, flat) if isinstance(found, Value) else found.reshape(flat)


def _one(call: Call, values: Operand, group: int, index: int) -> Operand:
    """[batch, taps * places] of one group and part."""
    batch, _, taps, _, places = values.shape
    if not isinstance(values, Value):
        return np.asarray(values[:, group, :, index]).reshape(batch, -1)
    ranges = [(0, 1, batch), (group, 1, 1), (0, 1, taps), (index, 1, 1), (0, 1, places)]
    return as_shape(call, part(call, values, ranges), (batch, taps * places))


OPERATORS: dict[str, Callable[[Call], None]] = {"DeformConv": deform_conv}

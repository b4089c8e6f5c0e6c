"""Views an operation's weights as matrices, with the vectors that they multiply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Quant, Tensor
from nnbuild.ops import interpret
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING, sliding, spread

ROLES = {Conv2D: ("kernel",), Conv2DTranspose: ("kernel",), Dense: ("kernel",), DepthwiseConv2D: ("kernel",)}
"""Roles of weight matrices; recurrent operations have two."""


def roles(op: Op) -> tuple[str, ...]:
    if isinstance(op.attributes, Recurrent):
        return ("kernel", "recurrent")
    return ROLES.get(type(op.attributes), ())


def weight_roles(graph: Graph) -> Iterator[tuple[Op, str]]:
    """Every matrix of 8-bit weights: its operation and role."""
    for op in graph.ops:
        for role in roles(op):
            constant = graph.constants[op.constants[role]]
            if constant.data.dtype == np.int8 and constant.quant is not None and constant.quant.zero_point == 0:
                yield op, role


def groups_of(site: Site, role: str) -> int:
    if isinstance(site.attributes, DepthwiseConv2D):
        return int(site.constant(role).shape[2])
    return site.attributes.groups if isinstance(site.attributes, Conv2D) else 1


def matrices(site: Site, role: str, data: Array) -> Array:
    """A kernel in the operation's own axes as [groups, inputs, outputs]."""
    if isinstance(site.attributes, Conv2DTranspose):  # those of the convolution of `_spread_out`
        data = data[::-1, ::-1].transpose(0, 1, 3, 2)
    groups = groups_of(site, role)
    outputs = prod(data.shape[2:]) if isinstance(site.attributes, DepthwiseConv2D) else data.shape[-1]
    return data.reshape(-1, groups, outputs // groups).transpose(1, 0, 2)


def kernel_of(site: Site, role: str, blocks: Array) -> Array:
    """The inverse of `matrices`."""
    shape = site.constant(role).shape
    if isinstance(site.attributes, Conv2DTranspose):
        rows, columns, out, depth = shape
        return np.ascontiguousarray(blocks.reshape(rows, columns, depth, out)[::-1, ::-1].transpose(0, 1, 3, 2))
    return np.ascontiguousarray(blocks.transpose(1, 0, 2)).reshape(shape)


def scale_blocks(site: Site, role: str) -> Array:
    """[groups, 1, outputs]: the scale of every output's weights."""
    quant = site.constants[role].quant
    assert quant is not None
    groups = groups_of(site, role)
    outputs = matrices(site, role, site.constant(role)).shape[2]
    return np.broadcast_to(np.asarray(quant.scales), (groups * outputs,)).reshape(groups, 1, outputs)


def quant_like(site: Site, role: str, scales: Array) -> Quant:
    """The scales as stored in a constant: one per output channel."""
    return Quant(tuple(map(float, scales.reshape(-1))), 0, -1)


def vector_of(site: Site, role: str) -> Tensor:
    """The tensor that the weights multiply."""
    if role == "recurrent" and isinstance(site.attributes, Recurrent):
        return site.outputs[-site.attributes.states]
    return site.inputs[0]


def bias_of(site: Site, role: str) -> tuple[int, ...] | None:
    """The index of the addend in the operation's bias; None where there is none."""
    if "bias" not in site.constants:
        return None
    if isinstance(site.attributes, Recurrent):
        second = ("kernel", "recurrent").index(role)
        return (second,) if site.constant("bias").ndim == 2 else None if second else ()
    return ()


def input_rows(site: Site, role: str, inputs: Sequence[Array], most: int) -> Array:
    """The vectors that the weights multiply, in steps, as [rows, groups, inputs]; `most` rows, sampled uniformly."""
    zero = quant_of(vector_of(site, role)).zero_point
    joined = interpret.merged(site.op, list(inputs))
    x = joined[0]
    if role == "recurrent" and isinstance(site.attributes, Recurrent):
        x = np.concatenate([states[0] for states in site.attributes.integer_steps(site, joined)[:-1]])
    if isinstance(site.attributes, Conv2D | DepthwiseConv2D | Conv2DTranspose):
        return _window_rows(site, _windows(site, x, zero), zero, most)
    flat = x.reshape(-1, x.shape[-1])
    return flat[_picked(len(flat), most)].astype(np.float64)[:, None] - zero


def _windows(site: Site, x: Array, zero: int) -> Array:
    """What the taps of every output position see."""
    a, size = site.attributes, cast(Pair, site.constant("kernel").shape[:2])
    if isinstance(a, Conv2DTranspose):
        return sliding(_spread_out(a, size, x, zero), size, (1, 1), a.dilation, NO_PADDING, zero)
    assert isinstance(a, Conv2D | DepthwiseConv2D)
    return sliding(x, size, a.strides, a.dilation, a.padding, zero)


def _spread_out(a: Conv2DTranspose, kernel: Pair, x: Array, zero: int) -> Array:
    """The input of the convolution, of stride 1 and with its taps in reverse order, that gives the same results."""
    margins = [spread(taps, apart) - 1 for taps, apart in zip(kernel, a.dilation, strict=True)]
    sizes = [size + margin for size, margin in zip(a.size, margins, strict=True)]
    whole = np.full((len(x), *sizes, x.shape[3]), zero, x.dtype)
    rows, columns = (
        margin - crop + stride * np.arange(count)
        for margin, crop, stride, count in zip(margins, a.crop, a.strides, x.shape[1:3], strict=True)
    )
    down, across = ((at >= 0) & (at < size) for at, size in zip((rows, columns), sizes, strict=True))
    whole[:, rows[down, None], columns[across]] = x[:, down][:, :, across]
    return whole


def _window_rows(site: Site, windows: Array, zero: int, most: int) -> Array:
    places = np.unravel_index(_picked(prod(windows.shape[:3]), most), windows.shape[:3])
    picked = windows[places].astype(np.float64) - zero
    groups, taps = groups_of(site, "kernel"), prod(windows.shape[4:])
    return picked.reshape(len(picked), groups, -1, taps).transpose(0, 1, 3, 2).reshape(len(picked), groups, -1)


def _picked(count: int, most: int) -> Array:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, most, replace=False))

"""A convolution whose groups have one channel each is depthwise, as in Keras' ConvNeXt."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D


def single_channel_groups(graph: Graph) -> Graph:
    constants, ops = dict(graph.constants), list[Op]()
    for op in graph.ops:
        conv = op.attributes
        if isinstance(conv, Conv2D) and conv.groups > 1:
            kernel = graph.constants[op.constants["kernel"]]
            *window, depth, out = kernel.data.shape
            if depth == 1:
                name, shape = f"{kernel.name}/depthwise", (*window, conv.groups, out // conv.groups)
                constants[name] = replace(kernel, name=name, data=kernel.data.reshape(shape))
                alone = DepthwiseConv2D(conv.strides, conv.dilation, conv.padding, clamp=conv.clamp, once=conv.once)
                op = replace(op, attributes=alone, constants={**op.constants, "kernel": name})
        ops.append(op)
    return replace(graph, ops=tuple(ops), constants=constants)

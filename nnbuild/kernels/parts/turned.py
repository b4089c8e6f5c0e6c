"""Convolutions over images of one column, computed as over images of one row, which lie in memory alike.

Signals come as such images: time is the first axis of many networks. Tiles are neighbours in a row, of which a column
has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach, each_changed
from nnbuild.model.graph import Shape, Tensor
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

C = TypeVar("C", bound=Conv2D | DepthwiseConv2D)

ALONG = frozenset({"pool2d", "softmax"})
"""Operations with an axis of their own."""


def turned(of: Iterable[Kernel[C] | OnEach[C]]) -> Iterator[Kernel[C] | OnEach[C]]:
    return each_changed(of, lambda kernel, _: [_kernel(kernel)])


def _kernel(kernel: Kernel[C]) -> Kernel[C]:
    def accepts(site: Site[C]) -> str | None:
        rows, columns = site.shape()[:2]
        own = site.constant("kernel").shape[1] == 1 and site.attributes.padding[1] == (0, 0)
        return kernel.accepts(_row(site)) if rows > 1 and columns == 1 and own else "its image is no column"

    def demand(site: Site[C]) -> Demand:
        """Its work items are not the rows of the column."""
        return replace(kernel.demand(_row(site)), rows=False, each=0, bands=())

    def emit(w: Writer, site: Site[C], names: Names) -> None:
        kernel.emit(w, _row(site), names)

    return replace(
        kernel,
        name=f"{kernel.name}_turned",
        accepts=accepts,
        demand=demand,
        emit=emit,
        fuses=kernel.fuses - ALONG,
    )


@lru_cache(maxsize=256)
def _row(site: Site[Any]) -> Site[Any]:
    op, conv, constants = site.op, site.attributes, site.constants
    if isinstance(conv, Conv2D | DepthwiseConv2D):
        conv = replace(
            conv, strides=conv.strides[::-1], dilation=conv.dilation[::-1], padding=(conv.padding[1], conv.padding[0])
        )
        kernel = constants["kernel"]
        constants = {**constants, "kernel": replace(kernel, data=kernel.data.swapaxes(0, 1))}
    return replace(
        site,
        op=replace(op, attributes=conv),
        inputs=tuple(_turned(tensor, len(op.outer)) for tensor in site.inputs),
        outputs=tuple(_turned(tensor, len(op.outer)) for tensor in site.outputs),
        constants=constants,
        tail=tuple(map(_row, site.tail)),
    )


def _turned(tensor: Tensor, outer: int) -> Tensor:
    shape: Shape = tensor.shape
    if len(shape) != outer + 3:
        return tensor
    return replace(tensor, shape=(*shape[:outer], shape[outer + 1], shape[outer], shape[-1]))

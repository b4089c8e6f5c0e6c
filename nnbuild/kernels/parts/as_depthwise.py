"""Affine functions of words, computed as what they are: depthwise convolutions with one weight for each channel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach, each_changed, only_int16
from nnbuild.model.graph import Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

ROLES = {"kernel": "scale", "bias": "shift"}


def kernels(
    of: Iterable[Kernel[DepthwiseConv2D] | OnEach[DepthwiseConv2D]],
) -> Iterator[Kernel[Affine] | OnEach[Affine]]:
    return each_changed(of, _changed)


def _changed(of: Kernel[DepthwiseConv2D], _: Vectors | None) -> Iterator[Kernel[Affine]]:
    def accepts(site: Site[Affine]) -> str | None:
        if site.attributes.axis != len(site.shape()) - 1 or site.attributes.once:
            return "it is no depthwise convolution"
        return only_int16(site) or of.accepts(_depthwise(site))

    def demand(site: Site[Affine]) -> Demand:
        return of.demand(_depthwise(site))

    def emit(w: Writer, site: Site[Affine], names: Names) -> None:
        of.emit(w, _depthwise(site), names)

    yield Kernel(of.name.replace("_integers", "_words"), of.needs, accepts, demand, emit, unless=of.unless)


@lru_cache(maxsize=256)
def _depthwise(site: Site[Affine]) -> Site[DepthwiseConv2D]:
    op, shape = site.op, site.shape()
    image = (prod(shape[:-2]), *(1, *shape)[-2:])
    constants = {role: replace(site.constants[own], name=role) for role, own in ROLES.items()}
    kernel = constants["kernel"]
    constants["kernel"] = replace(kernel, data=kernel.data.reshape(1, 1, -1, 1))
    attributes = DepthwiseConv2D(clamp=site.attributes.clamp)
    return Site(
        Op(op.name, attributes, op.inputs, op.outputs, {role: role for role in ROLES}, op.layer),
        tuple(replace(tensor, shape=image) for tensor in site.inputs),
        tuple(replace(tensor, shape=image) for tensor in site.outputs),
        constants,
    )

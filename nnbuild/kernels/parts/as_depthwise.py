"""Affine functions of words, computed as what they are: depthwise convolutions with one weight for each channel."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach
from nnbuild.model.graph import Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

ROLES = {"kernel": "scale", "bias": "shift"}


def kernels(
    of: tuple[Kernel[DepthwiseConv2D] | OnEach[DepthwiseConv2D], ...],
) -> tuple[Kernel[Affine] | OnEach[Affine], ...]:
    return tuple(_on_sets(one) if isinstance(one, OnEach) else _kernel(one) for one in of)


def _on_sets(of: OnEach[DepthwiseConv2D]) -> OnEach[Affine]:
    def made(v: Vectors) -> list[Kernel[Affine]]:
        return [_kernel(kernel) for kernel in of.make(v)]

    return OnEach(of.numbers, made)


def _kernel(of: Kernel[DepthwiseConv2D]) -> Kernel[Affine]:
    def accepts(site: Site[Affine]) -> str | None:
        if site.dtypes != {"int16"}:
            return "it computes int16 only"
        if site.attributes.axis != len(site.shape()) - 1 or site.attributes.once:
            return "it is no depthwise convolution"
        return of.accepts(_depthwise(site))

    def demand(site: Site[Affine]) -> Demand:
        return of.demand(_depthwise(site))

    def emit(w: Writer, site: Site[Affine], names: Names) -> None:
        of.emit(w, _depthwise(site), names)

    return Kernel(of.name.replace("_integers", "_words"), of.needs, accepts, demand, emit)


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

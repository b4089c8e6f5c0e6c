"""Repeats every index: each axis becomes two loops, index and repetition."""

from __future__ import annotations

from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, copy_kernels, loops
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.site import Site


def _loops(site: Site[Repeat]) -> Loops:
    out, own = contiguous(site.output_shape()), contiguous(site.shape())
    shape: list[int] = []
    to: list[int] = []
    source: list[int] = []
    for size, times, stride, step in zip(site.shape(), site.attributes.times, out, own, strict=True):
        shape += [size, times]
        to += [stride * times, stride]
        source += [step, 0]
    return loops(tuple(shape), Walk(tuple(to)), Walk(tuple(source)))


VARIANTS = copy_kernels(_loops)

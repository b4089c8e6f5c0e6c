"""The axes in another order."""

from __future__ import annotations

from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, copy_kernels, loops
from nnbuild.ops.site import Site
from nnbuild.ops.transpose import Transpose


def _loops(site: Site[Transpose]) -> Loops:
    strides, out = contiguous(site.shape()), site.output_shape()
    return loops(out, Walk(contiguous(out)), Walk(tuple(strides[axis] for axis in site.attributes.order)))


VARIANTS = copy_kernels(_loops)

"""A part of a tensor."""

from __future__ import annotations

from nnbuild.kernels.contract import Overlap
from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, copy_kernels, loops
from nnbuild.kernels.loops.word_moves import word_moves
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.ops.site import Site
from nnbuild.ops.slice import Slice


def _loops(site: Site[Slice]) -> Loops:
    strides, part = contiguous(site.shape()), site.attributes
    steps = tuple(stride * step for stride, step in zip(strides, part.steps, strict=True))
    start = sum(stride * begin for stride, begin in zip(strides, part.begins, strict=True))
    return loops(site.output_shape(), Walk(contiguous(site.output_shape())), Walk(steps, start))


def _overlaps(site: Site[Slice]) -> tuple[Overlap, ...]:
    """A walk backwards reads behind what it has written."""
    return IN_PLACE if all(step > 0 for step in site.attributes.steps) else ()


VARIANTS = (*copy_kernels(_loops, _overlaps), *word_moves(_loops, _overlaps))

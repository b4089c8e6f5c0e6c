"""The axes in another order."""

from __future__ import annotations

from nnbuild.kernels.contract import PORTABLE, kernel_of, on_each
from nnbuild.kernels.loops.straight_copies import StraightCopies
from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, copy_kernels, loops
from nnbuild.kernels.loops.turned_blocks import TurnedBlocks
from nnbuild.kernels.loops.word_moves import word_moves
from nnbuild.ops.site import Site
from nnbuild.ops.transpose import Transpose


def _loops(site: Site[Transpose]) -> Loops:
    strides, out = contiguous(site.shape()), site.output_shape()
    return loops(out, Walk(contiguous(out)), Walk(tuple(strides[axis] for axis in site.attributes.order)))


VARIANTS = (
    *copy_kernels(_loops),
    kernel_of("straight", PORTABLE, StraightCopies(_loops)),
    on_each("bytes", lambda v: TurnedBlocks(v, _loops), "_turned"),
    *word_moves(_loops, lambda site: ()),
)

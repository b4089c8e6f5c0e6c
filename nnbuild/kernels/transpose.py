"""The axes in another order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from nnbuild.kernels.contract import PORTABLE, Kernel, kernel_of, on_each
from nnbuild.kernels.loops.straight_copies import StraightCopies
from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, copy_kernels, item_bytes, loops
from nnbuild.kernels.loops.turned_blocks import TurnedBlocks
from nnbuild.kernels.loops.word_moves import FOUR, word_moves
from nnbuild.ops.site import Site
from nnbuild.ops.transpose import Transpose

MOST_LEFT = 8
"""The share of a run's bytes that may be left by moves of four words: one of so many."""


def _loops(site: Site[Transpose]) -> Loops:
    strides, out = contiguous(site.shape()), site.output_shape()
    return loops(out, Walk(contiguous(out)), Walk(tuple(strides[axis] for axis in site.attributes.order)))


def _refused_rest(kernel: Kernel[Transpose], site: Site[Transpose]) -> str | None:
    """The routine moves what is left of a run byte by byte, while compilers know its length."""
    run = _loops(site).sizes[-1] * item_bytes(site)
    rest = f"of its runs of {run} bytes {run % FOUR} are left" if run % FOUR > run / MOST_LEFT else None
    return kernel.accepts(site) or rest


VARIANTS = (
    *copy_kernels(_loops),
    kernel_of("straight", PORTABLE, StraightCopies(_loops)),
    on_each("bytes", lambda v: TurnedBlocks(v, _loops), "_turned"),
    on_each("float", lambda v: TurnedBlocks(v, _loops, floats=True), "_turned_floats"),
    *(replace(kernel, accepts=partial(_refused_rest, kernel)) for kernel in word_moves(_loops, lambda site: ())),
)

"""Copies of single elements over any strides, several to an iteration: their addresses are constants from two pointers.

The innermost loop is the one of the smallest strides, so that the constants fit the instructions. Elements are loaded a
few at a time before these are stored, as compilers must assume that a store changes what is loaded after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import in_vectors
from nnbuild.kernels.contract import Demand, K, Names, any_format
from nnbuild.kernels.loops.strided import Loops, Walk
from nnbuild.ops.site import Site

EACH = 8
"""Elements of an iteration."""
LONGEST = 16
"""Iterations of a loop that is unrolled as a whole."""
TOGETHER = 4
"""Elements that are loaded before they are stored."""
TAKE = Row("const {0} {1} = {2};", c99.LOAD.cycles)


def by_strides(loops: Loops) -> Loops:
    """With the loop of the smallest strides, and of enough iterations, as the innermost one."""
    axes = range(len(loops.sizes))

    def reach(axis: int) -> tuple[bool, int]:
        return loops.sizes[axis] < min(EACH, max(loops.sizes)), max(walk.strides[axis] for walk in loops.walks)

    last = min(axes, key=reach)
    order = [*(axis for axis in axes if axis != last), last]
    walks = (Walk(tuple(walk.strides[axis] for axis in order), walk.start) for walk in loops.walks)
    return Loops(tuple(loops.sizes[axis] for axis in order), tuple(walks))


@dataclass(frozen=True)
class StraightCopies(Generic[K]):
    """Copies elements (output walk, input walk) of any type, in any order."""

    walks: Callable[[Site[K]], Loops]

    def accepts(self, site: Site[K]) -> str | None:
        loops = self.walks(site)
        runs = loops.sizes[-1] >= TOGETHER and all(walk.strides[-1] == 1 for walk in loops.walks)
        kept = runs or len(loops.sizes) == 1
        return any_format(site) or ("compilers copy its runs as a whole" if kept else None)

    def demand(self, site: Site[K]) -> Demand:
        return Demand(extent=by_strides(self.walks(site)).extent)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        kind, loops = C_TYPES[site.inputs[0].dtype], by_strides(self.walks(site))
        last, steps = loops.sizes[-1], [walk.strides[-1] for walk in loops.walks]

        def run(at: list[str], length: str, elements: int) -> None:
            for i, count in w.each(in_vectors(w, last if last <= LONGEST else EACH, last, "i")):
                w(f"{kind} *to = {names.outputs[0]} + {at[0]} + ({i}) * {steps[0]};")
                w(f"const {kind} *from = {names.inputs[0]} + {at[1]} + ({i}) * {steps[1]};")
                w.bill(2)
                _copied(w, kind, count, steps)

        loops.runs(w, run)


def _copied(w: Writer, kind: str, count: int, steps: list[int]) -> None:
    for first in range(0, count, TOGETHER):
        some = range(first, min(first + TOGETHER, count))
        for k in some:
            w(w.use(TAKE, kind, f"x{k}", f"from[{k * steps[1]}]"))
        for k in some:
            w(w.use(c99.STORE, f"to[{k * steps[0]}]", f"x{k}"))

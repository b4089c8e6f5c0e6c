"""Transposes of bytes in blocks of eight by eight, or of floats in blocks of four by four, which vectors turn. The last
block overlaps the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Generic

from nnbuild.base.writer import Writer
from nnbuild.isa.byte_ops import BLOCK
from nnbuild.isa.ops import FLOAT_BLOCK
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, K, Names, only_float, only_int8
from nnbuild.kernels.loops.strided import Loops
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class TurnedBlocks(Generic[K]):
    """A work item is a matrix; of a single one, a band of blocks: the places of the loop whose inputs are contiguous.
    The last band has those of the remaining places too, as no byte may be written by two work items."""

    v: Vectors
    walks: Callable[[Site[K]], Loops]
    floats: bool = False

    @property
    def side(self) -> int:
        return FLOAT_BLOCK if self.floats else BLOCK

    @property
    def turn(self) -> str:
        return "f_turn" if self.floats else "turn"

    def accepts(self, site: Site[K]) -> str | None:
        if self.turn not in self.v.spellings:
            return "its set does not turn blocks"
        loops = self.walks(site)
        short = min(loops.sizes[axis] for axis in _axes(loops)) < self.side
        turned = len(set(_axes(loops))) == 2
        other = only_float(site) if self.floats else only_int8(site)
        return other or (None if turned and not short else "it has no blocks to turn")

    def demand(self, site: Site[K]) -> Demand:
        loops = self.walks(site)
        matrices = [loops.sizes[axis] for axis in _others(loops)]
        return Demand(extent=matrices[0] if matrices else loops.sizes[_axes(loops)[1]] // self.side)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        loops, side = self.walks(site), self.side
        (out, source), (row, column) = loops.walks, _axes(loops)
        blocks = -(-loops.sizes[row] // side)
        others = _others(loops)
        with ExitStack() as nested:
            for axis in others[:1]:
                nested.enter_context(w.loop(f"i{axis}", "end", start="begin", trips=loops.sizes[axis]))
            for axis in others[1:]:
                nested.enter_context(w.loop(f"i{axis}", loops.sizes[axis]))
            nested.enter_context(_columns(w, side, loops.sizes[column], whole=bool(others)))
            with w.loop("block", blocks):
                at, last = f"block * {side}", loops.sizes[row] - side
                w(f"const int32_t row = {at if last % side == 0 else f'block < {blocks - 1} ? {at} : {last}'};")
                places = {row: "row", column: "column"} | {axis: f"i{axis}" for axis in others}
                to, origin = (
                    " + ".join([name, *(f"({place}) * {walk.strides[axis]}" for axis, place in places.items())])
                    for name, walk in ((names.outputs[0], out), (names.inputs[0], source))
                )
                w(f"{self.v.call(w, self.turn, to, origin, str(out.strides[column]), str(source.strides[row]))};")


def _axes(loops: Loops) -> tuple[int, int]:
    """The loops whose outputs and whose inputs are contiguous."""
    out, source = (walk.strides for walk in loops.walks)
    return out.index(min(out)), source.index(min(source))


def _others(loops: Loops) -> list[int]:
    return [axis for axis in range(len(loops.sizes)) if axis not in _axes(loops)]


@contextmanager
def _columns(w: Writer, side: int, size: int, whole: bool) -> Iterator[None]:
    """All bands, or those of the work items: each with the first `column` of its one block, or of two."""
    bands, rest = divmod(size, side)
    limits = ("0", str(bands)) if whole else ("begin", "end")
    with w.loop("band", limits[1], start=limits[0], trips=bands):
        first = f"band * {side}"
        if rest == 0:
            w(f"const int32_t column = {first};")
            yield
            return
        w(f"const int32_t last = band < {bands - 1} ? {first} : {size - side};")
        with w.loop("column", "last + 1", start=first, step=rest, trips=1 + 1 / bands):
            yield

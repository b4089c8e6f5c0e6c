"""Transposes of bytes in blocks of eight by eight, which vectors turn. The last block overlaps the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Generic

from nnbuild.base.writer import Writer
from nnbuild.isa.byte_ops import BLOCK
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, K, Names, only_int8
from nnbuild.kernels.loops.strided import Loops
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class TurnedBlocks(Generic[K]):
    """A work item is a band of blocks: eight places of the loop whose inputs are contiguous. The last band has those of
    the remaining places too, as no byte may be written by two work items."""

    v: Vectors
    walks: Callable[[Site[K]], Loops]

    def accepts(self, site: Site[K]) -> str | None:
        if "turn" not in self.v.spellings:
            return "its set does not turn blocks of bytes"
        loops = self.walks(site)
        short = min(loops.sizes[axis] for axis in _axes(loops)) < BLOCK
        turned = len(set(_axes(loops))) == 2
        return only_int8(site) or (None if turned and not short else "it has no blocks of eight by eight to turn")

    def demand(self, site: Site[K]) -> Demand:
        loops = self.walks(site)
        return Demand(extent=loops.sizes[_axes(loops)[1]] // BLOCK)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        loops = self.walks(site)
        (out, source), (row, column) = loops.walks, _axes(loops)
        blocks = -(-loops.sizes[row] // BLOCK)
        others = [axis for axis in range(len(loops.sizes)) if axis not in (row, column)]
        with _columns(w, loops.sizes[column]), ExitStack() as nested:
            for axis in others:
                nested.enter_context(w.loop(f"i{axis}", loops.sizes[axis]))
            with w.loop("block", blocks):
                at, last = f"block * {BLOCK}", loops.sizes[row] - BLOCK
                w(f"const int32_t row = {at if last % BLOCK == 0 else f'block < {blocks - 1} ? {at} : {last}'};")
                places = {row: "row", column: "column"} | {axis: f"i{axis}" for axis in others}
                to, origin = (
                    " + ".join([name, *(f"({place}) * {walk.strides[axis]}" for axis, place in places.items())])
                    for name, walk in ((names.outputs[0], out), (names.inputs[0], source))
                )
                w(f"{self.v.call(w, 'turn', to, origin, str(out.strides[column]), str(source.strides[row]))};")


def _axes(loops: Loops) -> tuple[int, int]:
    """The loops whose outputs and whose inputs are contiguous."""
    out, source = (walk.strides for walk in loops.walks)
    return out.index(min(out)), source.index(min(source))


@contextmanager
def _columns(w: Writer, size: int) -> Iterator[None]:
    """The bands, each with the first `column` of its one block, or of two."""
    bands, rest = divmod(size, BLOCK)
    with w.loop("band", "end", start="begin", trips=bands):
        first = f"band * {BLOCK}"
        if rest == 0:
            w(f"const int32_t column = {first};")
            yield
            return
        w(f"const int32_t last = band < {bands - 1} ? {first} : {size - BLOCK};")
        with w.loop("column", "last + 1", start=first, step=rest, trips=1 + 1 / bands):
            yield

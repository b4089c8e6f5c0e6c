"""Copies of runs of bytes by four words at a time, to a lower address or a separate buffer.

Of bytes that may overlap compilers copy one after the other. Here the order of the walk tells that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import THUMB
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, K, Kernel, Names, Overlap, any_format, kernel_of
from nnbuild.kernels.loops.strided import Loops, item_bytes
from nnbuild.ops.site import Site

FOUR, WORD = 16, 4
"""Bytes per iteration of the routine that moves four words, and of a word."""
BYTE_CYCLES = c99.LOAD.cycles + c99.STORE.cycles
FOUR_CYCLES = 4 * BYTE_CYCLES
FOUR_AT_ONCE, FOUR_WORDS = 4, 8
"""Instructions where one loads or stores four words, and the words that they move."""


@dataclass(frozen=True)
class WordMoves(Generic[K]):
    """Copies elements of any type whose innermost loop is contiguous in the input and in the output. `together`: an
    instruction moves four words."""

    v: Vectors
    walks: Callable[[Site[K]], Loops]
    overlaps: Callable[[Site[K]], tuple[Overlap, ...]]
    together: bool = False

    def accepts(self, site: Site[K]) -> str | None:
        walks, size = self.walks(site), item_bytes(site)
        if any(walk.strides[-1] != 1 for walk in walks.walks):
            return "its values are not contiguous"
        if any(step * size % WORD for walk in walks.walks for step in (walk.start, *walk.strides[:-1])):
            return "its runs do not begin at whole words"
        run = walks.sizes[-1] * size
        return any_format(site) or (f"its runs of {run} bytes are short" if run < FOUR else None)

    def demand(self, site: Site[K]) -> Demand:
        return Demand(extent=self.walks(site).extent, overlaps=self.overlaps(site))

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        size, (source,), (out,) = item_bytes(site), names.inputs, names.outputs

        def run(at: list[str], length: str, elements: int) -> None:
            to, origin = f"{out} + {at[0]}", f"{source} + {at[1]}"
            if site.inputs[0].dtype != "int8":
                to, origin = f"(int8_t *)({to})", f"(const int8_t *)({origin})"
            moved_by_words(w, self.v, to, origin, f"({length}) * {size}", elements * size, together=self.together)

        self.walks(site).runs(w, run)


def moved_by_words(w: Writer, v: Vectors, to: str, source: str, length: str, size: int, *, together: bool) -> None:
    """Copies bytes: `length` of them in C, of which `size` are billed."""
    fours, rest = divmod(size, FOUR)
    if together:
        w.bill(FOUR_AT_ONCE * fours + BYTE_CYCLES * rest, FOUR_WORDS * fours)
    else:
        w.bill(FOUR_CYCLES * size / FOUR)
    w(f"{v.call(w, 'move_down', to, source, length)};")


def word_moves(
    walks: Callable[[Site[K]], Loops], overlaps: Callable[[Site[K]], tuple[Overlap, ...]]
) -> tuple[Kernel[K], ...]:
    """Kernels that copy (output walk, input walk) by words, on cores without vectors."""
    arm, riscv = WordMoves(THUMB, walks, overlaps, together=True), WordMoves(WORDS, walks, overlaps)
    return (
        kernel_of("by_fours", frozenset({"armv7m"}), arm),
        kernel_of("by_fours_short", frozenset({"armv6m"}), arm),
        kernel_of("by_words", frozenset({"rv32im"}), riscv),
    )

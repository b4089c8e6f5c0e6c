"""Vectors of floats: what every width of x86 can do, and how each spells it.

The file of a set makes one value of this class. Kernels ask for an operation by name and get a C expression, so one
text serves every width. Sums of products may be fused (`fma`); functions use `mul` and `add`, which are never fused,
so that they give the same bits on every width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nnbuild.base.writer import Row, Writer

CYCLES = {"fma": 0.5, "loadu": 0.2, "set1": 0.2, "div": 5.0, "sqrt": 7.0}
OPERANDS = {"loadu": 1, "set1": 1, "sqrt": 1}
ORDINARY, STORE, PARTLY = 0.5, 0.5, 0.5
"""Cycles of an operation that a core starts two of, of a store, and of leaving out some lanes."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """One width.

    name: the set's, and that of its kernels. `lanes` floats of C's `type`, in `registers` registers, of which a sum of
    products takes `temporaries` for itself.
    prefix: of the intrinsics; an operation is {prefix}_{operation}_ps unless `spellings` has it.
    broadcasts: how the 1, 2, 4 … floats at a pointer are repeated through all lanes.
    load_first, store_first: the same as a load and a store, of the first lanes only; an expression for their number.
    permute: a vector whose first lanes are those that are named.
    """

    name: str
    type: str
    prefix: str
    lanes: int
    registers: int
    temporaries: int
    spellings: Mapping[str, str]
    broadcasts: Mapping[int, str]
    load_first: Callable[[int], str]
    store_first: Callable[[int], str]
    permute: Callable[[str, Sequence[int]], str]

    def use(self, w: Writer, operation: str, *operands: str) -> str:
        """The expression of an operation, with its price on the bill."""
        return w.use(Row(self.spelling(operation), CYCLES.get(operation, ORDINARY)), *operands)

    def spelling(self, operation: str) -> str:
        places = ", ".join(f"{{{i}}}" for i in range(OPERANDS.get(operation, 2)))
        return self.spellings.get(operation, f"{self.prefix}_{operation}_ps({places})")

    def load(self, w: Writer, pointer: str, count: int | None = None) -> str:
        """The vector at a pointer; where it is given, only `count` lanes are read and the others are zero."""
        if count is None or count >= self.lanes:
            return self.use(w, "loadu", pointer)
        return w.use(Row(self.load_first(count), CYCLES["loadu"] + PARTLY), pointer)

    def store(self, w: Writer, pointer: str, value: str, count: int | None = None) -> None:
        """Writes a vector to a pointer; where it is given, only the first `count` lanes."""
        if count is None or count >= self.lanes:
            w(w.use(Row(f"{self.prefix}_storeu_ps({{0}}, {{1}});", STORE), pointer, value))
        else:
            w(w.use(Row(f"{self.store_first(count)};", STORE + PARTLY), pointer, value))

    def broadcast(self, w: Writer, pointer: str, depth: int) -> str:
        """The `depth` floats at a pointer, repeated through all lanes."""
        return w.use(Row(self.broadcasts[depth], CYCLES["loadu"]), pointer)

    def declare(self, w: Writer, name: str, value: str) -> None:
        w(f"{self.type} {name} = {value};")


def lane_list(lanes: int, value: Callable[[int], str]) -> str:
    """A value for every lane, from the highest to the lowest, as the `set` intrinsics take them."""
    return ", ".join(value(lane) for lane in reversed(range(lanes)))

"""The sigmoid and tanh of cells in integer vectors, with 20 fraction bits: `numeric.tables` defines them."""

from __future__ import annotations

from functools import cache, partial

from nnbuild.base.writer import Instruction
from nnbuild.isa.vector_functions import Text
from nnbuild.isa.vectors import Vectors
from nnbuild.numeric.tables import FINE_POINT

HEAD = "sums {name}(const int32_t *table, sums x)"


@cache
def fine_sigmoid(v: Vectors) -> Instruction:
    """Products are floored: upper halves, of factors that are shifted to the left."""
    t = Text(v)
    let, call = partial(t.let, kind="sums"), t.call

    def each(number: int) -> str:
        return call("each", str(number))

    def left(value: str, by: int) -> str:
        return call("shift_left", value, of=(by,))

    let("sign", call("shift_right", "x", of=(31,)))
    positive = call("sub", call("xor", "x", "sign"), "sign")
    let("size", call("min", positive, each(16 << FINE_POINT)))
    let("place", call("shift_right", call("add", "size", each(1 << 15)), of=(16,)))
    let("near", call("gather", "table", "place"))
    let("rest", left(call("sub", "size", left("place", 16)), 12))
    let("slope", call("upper", left("near", 1), left(call("sub", each(1 << 30), "near"), 1)))
    let("bend", call("upper", left("slope", 2), call("sub", each(1 << 29), "near")))
    let("tilted", call("add", "slope", call("upper", "rest", "bend")))
    raised = call("add", call("add", "near", call("upper", "rest", "tilted")), each(1 << 9))
    let("above", call("shift_right", raised, of=(10,)))
    below = call("and", "sign", each(1 << FINE_POINT))
    result = call("add", call("sub", call("xor", "above", "sign"), "sign"), below)
    return t.function("fine_sigmoid", result, HEAD)


@cache
def fine_tanh(v: Vectors) -> Instruction:
    t = Text(v)
    half = t.other(fine_sigmoid, f"table, {t.call('shift_left', 'x', of=(1,))}")
    twice = t.call("shift_left", half, of=(1,))
    return t.function("fine_tanh", t.call("sub", twice, t.call("each", str(1 << FINE_POINT))), HEAD)


FINE = {"sigmoid": fine_sigmoid, "tanh": fine_tanh}

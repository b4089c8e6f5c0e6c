"""Portable C99, one number at a time: what every board can run.

Prices are those of a simple in-order core with a floating-point unit; a measured table outranks them.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.isa.lanes import Lanes
from nnbuild.literals import float_literal
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.writer import Row, Writer

name = "c99"
features: frozenset[str] = frozenset()

LOAD = Row("const float {0} = {1};", 2)
LOAD_MUTABLE = Row("float {0} = {1};", 2)
STORE = Row("{0} = {1};", 1)
MULTIPLY_ADD = Row("{0} += {1} * {2};", 3)
AT_LEAST = Row("if ({0} < {1}) {0} = {1};", 2)
AT_MOST = Row("if ({0} > {1}) {0} = {1};", 2)


def clamp(w: Writer, bounds: Clamp, variable: str) -> None:
    """Puts a variable within the bounds of a fused activation."""
    if bounds.low is not None:
        w(w.use(AT_LEAST, variable, float_literal(bounds.low)))
    if bounds.high is not None:
        w(w.use(AT_MOST, variable, float_literal(bounds.high)))


def at(pointer: str) -> str:
    """What a pointer expression points at, as one would write it."""
    base, plus, index = pointer.partition(" + ")
    return f"{base}[{index}]" if plus else f"*{pointer}"


@dataclass(frozen=True)
class FloatLanes(Lanes):
    """Single floats; a tile of 2 positions by 4 channels keeps 14 values in registers."""

    bounds: Clamp = NO_CLAMP
    input_type = "float"
    weight_type = "float"
    bias_type = "float"
    output_type = "float"
    lanes = 1
    depth = 1
    pixels = 2
    vectors = 4

    def start(self, w: Writer, accumulator: str, bias: str | None) -> None:
        w(w.use(LOAD_MUTABLE, accumulator, at(bias) if bias else "0.0f"))

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, at(pointer)))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, at(pointer)))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(w.use(MULTIPLY_ADD, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, count: int) -> None:
        clamp(w, self.bounds, accumulator)
        w(w.use(STORE, at(pointer), accumulator))

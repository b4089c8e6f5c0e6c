"""Single floats on Cortex-M4F and M7: 32 registers, and a multiplication that adds.

The fused product and sum rounds once where portable C rounds twice. Nothing depends on the difference: floats are
compared within a tolerance, and a PC without such an instruction computes a * b + c.
"""

from __future__ import annotations

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.c99 import FloatLanes, at
from nnbuild.isa.vectors import Vectors

REGISTERS = 32
FEATURES = frozenset({"armv7em_dsp", "arm_fpu"})
LOAD = Row("const float {0} = {1};", 1)
FPU = Vectors(
    name="fpu",
    guard="defined(__ARM_FEATURE_FMA) && defined(__GNUC__)",
    lanes=1,
    registers=REGISTERS,
    types={},
    spellings={"multiply_add": "__builtin_fmaf(a, b, sum)"},
)


class FpuLanes(FloatLanes):
    """One float a lane; prices are those of these cores."""

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, at(pointer)))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, at(pointer)))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(f"{accumulator} = {FPU.call(w, 'multiply_add', name, weights, accumulator)};")

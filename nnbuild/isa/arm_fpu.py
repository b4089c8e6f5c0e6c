"""Single floats on Cortex-M4F and M7: 32 registers, and a multiplication that adds.

The fused product and sum rounds once where portable C rounds twice. Nothing depends on the difference: floats are
compared within a tolerance, and a PC without such an instruction computes a * b + c.
"""

from __future__ import annotations

from nnbuild.isa.c99 import Single

FEATURES = frozenset({"armv7em_dsp", "arm_fpu"})
FPU = Single(
    name="fpu",
    guard="defined(__ARM_FEATURE_FMA) && defined(__GNUC__)",
    lanes=1,
    registers=32,
    types={},
    spellings={"multiply_add": "__builtin_fmaf(a, b, sum)"},
    cycles={"f_load": 1, "f_repeat": 1},
)

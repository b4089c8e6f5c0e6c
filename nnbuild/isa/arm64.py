"""The vector extensions of 64-bit Arm and their features. Spellings have a file per set."""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended

GUARD = "defined(__aarch64__) && !defined(__ILP32__) && defined(__GNUC__) && !defined(NN_PORTABLE)"
"""A compiler with the intrinsics and the function attribute `target`. NN_PORTABLE selects the meanings."""

NEON = Isa(
    name="neon",
    summary="the baseline of 64-bit Arm: 4 floats or 16 int8 at a time",
    features=frozenset({"neon"}),
    architectures=("aarch64",),
    includes=("arm_neon.h",),
    guard=GUARD,
    cpu_flags=("asimd",),
)
NEON_DOTPROD = extended(
    NEON,
    "neon_dotprod",
    "16 int8 products a step, since Cortex-A55 and A75",
    target="arch=armv8.2-a+dotprod",
    cpu_flags=("asimddp",),
)
NEON_I8MM = Isa(
    name="neon_i8mm",
    summary="32 int8 products a step, of matrices, since Armv8.6 and Cortex-X2",
    features=NEON_DOTPROD.features | {"neon_i8mm"},
    architectures=NEON.architectures,
    includes=NEON.includes,
    guard=GUARD,
    target="arch=armv8.2-a+dotprod+i8mm",
    cpu_flags=(*NEON_DOTPROD.cpu_flags, "i8mm"),
)
ISAS = (NEON, NEON_DOTPROD, NEON_I8MM)

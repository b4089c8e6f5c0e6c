"""The vector extensions of 64-bit Arm: what each contains. How they spell the table has a file each."""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended

GUARD = "defined(__aarch64__) && !defined(__ILP32__) && defined(__GNUC__) && !defined(NN_PORTABLE)"
"""A compiler with the intrinsics, which takes a function's `target` for the set. NN_PORTABLE asks for the meanings."""

NEON = Isa(
    name="neon",
    summary="what every 64-bit Arm processor has: 4 floats or 16 int8 at a time",
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
ISAS = (NEON, NEON_DOTPROD)

"""The instruction sets of Arm's microcontroller cores."""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended

BETTER_SCHEDULED = ("no-schedule-insns", "no-ivopts", "no-store-merging", "no-tree-slp-vectorize")
"""gcc's first scheduler hoists loads until values spill; ivopts replaces immediate offsets by registers; a merged
store of bytes takes an instruction a byte to merge them, by whichever of two passes."""

ARMV6M = Isa(
    name="armv6m",
    summary="Cortex-M0 and M0+: 16-bit instructions, no long multiply",
    features=frozenset({"armv6m"}),
    architectures=("cortex_m",),
)
ARMV7M = Isa(
    name="armv7m",
    summary="Cortex-M3: long multiplies, saturation",
    features=frozenset({"armv7m"}),
    architectures=("cortex_m",),
)
ARMV7EM_DSP = extended(
    ARMV7M, "armv7em_dsp", "Cortex-M4 and up: two 16-bit products a step", gcc_options=BETTER_SCHEDULED
)

ISAS = (ARMV6M, ARMV7M, ARMV7EM_DSP)

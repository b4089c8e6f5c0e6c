"""RISC-V. Kernels for single bytes serve every core that multiplies, as they do Cortex-M3.

The vector extension: sixteen numbers of 32 bits at a time, and thirty-two where registers are longer.

Four registers together hold a vector of sums, so every processor with registers of 128 bits has the first set, one with
more the second too; its own instructions say how long they are, so one program serves all.
"""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended

GUARD = "defined(__riscv_vector) && defined(__riscv_v_intrinsic) && __riscv_v_min_vlen >= 128 && !defined(NN_PORTABLE)"

BETTER_SCHEDULED = ("no-schedule-insns", "no-ivopts", "no-gcse")
"""gcc's first scheduler and its loads ahead of time keep more values than there are registers for."""

RV32IM = Isa(
    name="rv32im",
    summary="32 bits with multiplication: the upper half of a product in one instruction",
    features=frozenset({"rv32im", "bytes"}),
    architectures=("rv32",),
    gcc_options=BETTER_SCHEDULED,
)
RVV = Isa(
    name="rvv",
    summary="the vector extension (V, or Zve32x with Zvl128b): 16 int8 products a step",
    features=frozenset({"rvv"}),
    architectures=("rv32", "rv64"),
    includes=("riscv_vector.h",),
    guard=GUARD,
    cpu_flags=("v",),
)
RVV256 = extended(RVV, "rvv256", "the same with registers of 256 bits or more: 32 a step", cpu_flags=("zvl256b",))

ISAS = (RV32IM, RVV, RVV256)

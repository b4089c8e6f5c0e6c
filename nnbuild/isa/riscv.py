"""RISC-V. Scalar kernels serve every core that multiplies.

The vector extension: sixteen 32-bit numbers at a time, and thirty-two where registers are longer.

Four registers form a vector of sums, so every processor with 128-bit registers has the first set, and one with longer
registers the second too; its instructions state the length, so one program serves all. Embedded processors may have
vectors of integers only (Zve32x); the whole extension (V) has floats as well.
"""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa.isa import Isa, extended
from nnbuild.isa.vectors import Vectors

GUARD = "defined(__riscv_vector) && defined(__riscv_v_intrinsic) && __riscv_v_min_vlen >= 128 && !defined(NN_PORTABLE)"
WITH_FLOATS = (
    "defined(__riscv_v_intrinsic) && __riscv_v_min_vlen >= 128 && __riscv_v_elen_fp >= 32 && !defined(NN_PORTABLE)"
)

BETTER_SCHEDULED = (
    *("no-schedule-insns", "no-ivopts", "no-gcse", "no-tree-reassoc", "no-tree-ter", "no-predictive-commoning"),
)
"""gcc's first scheduler, early loads, inputs kept between iterations and reordered sums exceed the registers."""


def _saturate(bits: int, shift: int = 0) -> str:
    """Two branches, mostly taken, each over one instruction: compilers would make three of each half."""
    high = (1 << (bits - 1)) - 1
    first = f"a >>= {shift};\n" if shift else ""
    return f"""{first}\
#ifdef __riscv_zbb
return a < {-high - 1} ? {-high - 1} : a > {high} ? {high} : a;
#else
long held = a;
__asm__("bge %0, %1, 1f\\n\\tmv %0, %1\\n1:\\tbge %2, %0, 2f\\n\\tmv %0, %2\\n2:"
        : "+r"(held)
        : "r"({-high - 1}L), "r"({high}L));
return (int32_t)held;
#endif"""


_ALIGNED = "typedef {0} __attribute__((may_alias)) aligned;\n\n"
WORDS = Vectors(
    name="words",
    guard="defined(__riscv) && defined(__GNUC__)",
    registers=27,
    spellings={
        "load_bytes": lambda count: (
            f"{_ALIGNED.format('int32_t')}return *(const aligned *)(const void *)from;" if count == 4 else ""
        ),
        "write_bytes": f"{_ALIGNED.format('int32_t')}*(aligned *)(void *)to = word;",
        "move_down": f"""{_ALIGNED.format("int32_t")}\
if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {{
    for (; size >= 16; size -= 16, to += 16, from += 16) {{
        const aligned *source = (const aligned *)(const void *)from;
        const int32_t a = source[0], b = source[1], c = source[2], d = source[3];
        aligned *target = (aligned *)(void *)to;

        target[0] = a;
        target[1] = b;
        target[2] = c;
        target[3] = d;
    }}
}}
for (int32_t i = 0; i < size; ++i) to[i] = from[i];""",
        "saturate": _saturate,
        "kept": '__asm__("" : "+r"(a));\nreturn a;',
        "anywhere": '__asm__("" : "+r"(pointer));\nreturn pointer;',
        "p_low_at": f"{_ALIGNED.format('int16_t')}return ((const aligned *)from)[0];",
        "p_high_at": f"{_ALIGNED.format('int16_t')}return ((const aligned *)from)[1];",
    },
    cycles={"saturate": 2.5, "load_two": 2, "high_add": 2, "high_rounded_add": 5},
)
"""Words of four bytes at aligned addresses; there are no instructions for halves of words."""

RV32IM = Isa(
    name="rv32im",
    summary="32 bits with multiplication: the upper half of a product in one instruction",
    features=frozenset({"rv32im"}),
    architectures=("rv32", "rv64"),
    gcc_options=BETTER_SCHEDULED,
    options_where="__riscv_xlen == 32",
)
ZVE32X = Isa(
    name="zve32x",
    summary="vectors of integers (Zve32x with Zvl128b): 16 int8 products a step",
    features=frozenset({"zve32x"}),
    architectures=("rv32", "rv64"),
    includes=("riscv_vector.h",),
    guard=GUARD,
    cpu_flags=("v",),
)
ZVE32X_256 = extended(
    ZVE32X, "zve32x_256", "the same with registers of 256 bits or more: 32 a step", cpu_flags=("zvl256b",)
)
_RVV = extended(ZVE32X, "rvv", "the vector extension (V, or Zve32f with Zvl128b): floats, too")
RVV = replace(_RVV, features=_RVV.features | {"rvv_m2", "rvv_m4"})
_RVV256 = extended(ZVE32X_256, "rvv256", "the same with registers of 256 bits or more")
RVV256 = replace(_RVV256, features=_RVV256.features | RVV.features)

ISAS = (RV32IM, ZVE32X, ZVE32X_256, RVV, RVV256)

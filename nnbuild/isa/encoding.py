"""How many bytes processors of a family take for what printed C consists of.

The figures are fitted to objects of GCC at -O2 (`benchmarks/code_size.py --fit`), so each carries what comes with it: a
function the addresses of its constants, a choice the registers it needs. A test holds the estimates against objects.
Loops that a compiler may turn into vectors by itself cost most where it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnbuild.isa.isa import Isa


@dataclass(frozen=True)
class Encoding:
    """`bytes` for each of base.printed.KINDS."""

    name: str
    bytes: Mapping[str, float]


THUMB1 = Encoding(
    "Thumb-1",
    {
        "function": 3.6,
        "parameter": 0.6,
        "loop": 22,
        "branch": 1.8,
        "select": 18.3,
        "compare": 6.7,
        "assign": 0.7,
        "memory": 14.5,
        "address": 8.1,
        "operation": 0.8,
        "narrow": 1.1,
        "literal": 1.2,
        "wide_memory": 2.4,
        "wide": 7.5,
        "wide_shift": 27.7,
        "float_memory": 4,
        "float": 4,
        "float_literal": 4,
        "vector": 5,
        "native": 4,
        "call": 1.8,
        "argument": 0.6,
        "pushed": 2.5,
        "regular": 33.7,
        "regular_wide": 40,
        "regular_float": 20,
    },
)
THUMB2 = Encoding(
    "Thumb-2",
    {
        "function": 36,
        "parameter": 2,
        "loop": 16.1,
        "branch": 7.5,
        "select": 20.8,
        "compare": 0.9,
        "assign": 2,
        "memory": 2.5,
        "address": 9.2,
        "operation": 0.8,
        "narrow": 3.3,
        "literal": 1.2,
        "wide_memory": 2.8,
        "wide": 1.8,
        "wide_shift": 53.2,
        "float_memory": 2,
        "float": 2.2,
        "float_literal": 5.6,
        "vector": 5,
        "native": 1.7,
        "call": 6,
        "argument": 4,
        "pushed": 9,
        "regular": 25.2,
        "regular_wide": 12,
        "regular_float": 6,
    },
)
RISCV = Encoding(
    "RISC-V",
    {
        "function": 3.6,
        "parameter": 0.6,
        "loop": 16.3,
        "branch": 1.8,
        "select": 29.7,
        "compare": 0.9,
        "assign": 0.5,
        "memory": 29.2,
        "address": 0.9,
        "operation": 2.9,
        "narrow": 0.6,
        "literal": 1.2,
        "wide_memory": 6.4,
        "wide": 2.3,
        "wide_shift": 6,
        "float_memory": 4,
        "float": 4,
        "float_literal": 4,
        "vector": 5,
        "native": 4,
        "call": 1.8,
        "argument": 0.6,
        "pushed": 3.9,
        "regular": 6,
        "regular_wide": 40,
        "regular_float": 20,
    },
)
SSE = Encoding(
    "x86-64",
    {
        "function": 3.6,
        "parameter": 0.6,
        "loop": 16.9,
        "branch": 1.8,
        "select": 39.6,
        "compare": 0.9,
        "assign": 0.3,
        "memory": 19.3,
        "address": 36,
        "operation": 1.6,
        "narrow": 8.6,
        "literal": 1.2,
        "wide_memory": 1.2,
        "wide": 1.8,
        "wide_shift": 6,
        "float_memory": 10.7,
        "float": 1.2,
        "float_literal": 14,
        "vector": 5.8,
        "native": 4,
        "call": 11.2,
        "argument": 4.3,
        "pushed": 31.3,
        "regular": 180.1,
        "regular_wide": 12,
        "regular_float": 31.1,
    },
)
AVX = Encoding(
    "x86-64 with AVX",
    {
        "function": 3.6,
        "parameter": 0.6,
        "loop": 27.1,
        "branch": 1.8,
        "select": 33.8,
        "compare": 0.9,
        "assign": 3.7,
        "memory": 9.5,
        "address": 36,
        "operation": 0.8,
        "narrow": 7.9,
        "literal": 2.5,
        "wide_memory": 1.2,
        "wide": 1.8,
        "wide_shift": 6,
        "float_memory": 4.4,
        "float": 1.2,
        "float_literal": 6.4,
        "vector": 3.4,
        "native": 4,
        "call": 9.8,
        "argument": 3.7,
        "pushed": 20.1,
        "regular": 165.6,
        "regular_wide": 12,
        "regular_float": 145.8,
    },
)


ENCODINGS = (THUMB1, THUMB2, RISCV, SSE, AVX)


def encoding_of(architecture: str, isa: Isa) -> Encoding:
    """Of a board's processor and the instruction set that is printed for."""
    if architecture == "cortex_m":
        return THUMB1 if "armv6m" in isa.features else THUMB2
    if architecture == "rv32":
        return RISCV
    return AVX if "avx2_fma" in isa.features else SSE

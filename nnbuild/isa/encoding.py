"""Estimates of code size: the bytes that printed C takes on a family of processors.

The figures are fitted to functions and objects of GCC at -O2 (`benchmarks/code_size.py --fit`), so each includes its
overhead: for a function the addresses of its constants, for a selection the registers it needs. A test compares the
estimates with objects. Loops that compilers may vectorize cost most where they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnbuild.isa.isa import Isa


@dataclass(frozen=True)
class Encoding:
    """`bytes` for each of base.c_metrics.KINDS."""

    name: str
    bytes: Mapping[str, float]


FAMILIES = ("Thumb-1", "Thumb-2", "Thumb-2 with Helium", "RISC-V", "RISC-V with vectors", "x86-64", "x86-64 with AVX")
BYTES: dict[str, tuple[float, ...]] = {
    "function": (2.1, 2.1, 2.1, 2.1, 2.1, 2.1, 2.1),
    "parameter": (0.3, 0.3, 0.3, 12, 0.3, 0.3, 0.3),
    "loop": (17.5, 21.3, 27, 44.2, 50.2, 43.8, 47.9),
    "branch": (0.9, 11.5, 7.1, 0.9, 2.3, 0.9, 6.3),
    "select": (26.3, 8.2, 8, 26.5, 3.5, 21.2, 17.2),
    "compare": (0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 5.8),
    "assign": (5, 1, 2.4, 0.2, 0.7, 2.4, 2.2),
    "memory": (0.6, 3.6, 2.1, 8.7, 9.2, 2, 0.6),
    "address": (0.6, 24, 24, 0.6, 0.6, 0.6, 0.6),
    "operation": (0.6, 0.8, 0.5, 0.4, 4.1, 1, 2.3),
    "narrow": (0.3, 12, 4.4, 0.3, 2.6, 12, 0.3),
    "literal": (0.6, 0.6, 2.5, 0.6, 13.1, 0.6, 0.6),
    "wide_memory": (36, 4.7, 1.2, 36, 36, 0.9, 17.6),
    "wide": (9.8, 1.2, 1.2, 4.1, 10.9, 7.5, 1.2),
    "wide_shift": (22.9, 51.8, 18.4, 12.3, 34.4, 3, 29.4),
    "float_memory": (5, 3.3, 2.6, 5, 5, 9, 7.6),
    "float": (4, 4.6, 1, 4, 4, 0.6, 0.6),
    "float_literal": (6, 2.9, 17.8, 6, 6, 0.9, 0.9),
    "vector": (4.5, 4.5, 4.7, 4.5, 4.7, 4.6, 3.3),
    "native": (0.6, 1.7, 1.1, 0.6, 4, 4, 4),
    "assembly": (0.6, 4.5, 4.3, 0.6, 4, 4, 4),
    "call": (1.1, 1.1, 1.1, 1.1, 42, 42, 28.5),
    "argument": (18, 12.4, 7.4, 18, 18, 15.4, 18),
    "pushed": (6, 6, 6, 6, 6, 6, 6),
    "regular": (0.8, 15.3, 0.8, 1.4, 30, 30, 30),
    "regular_wide": (5, 0.8, 8.3, 5, 5, 30, 30),
    "regular_float": (5, 0.8, 0.8, 5, 5, 0.8, 0.8),
}
"""The bytes of each kind in each family."""

ENCODINGS = tuple(Encoding(name, {kind: row[i] for kind, row in BYTES.items()}) for i, name in enumerate(FAMILIES))
THUMB1, THUMB2, HELIUM, RISCV, RISCV_VECTORS, SSE, AVX = ENCODINGS


def encoding_of(architecture: str, isa: Isa) -> Encoding:
    """The encoding of a board's processor and the instruction set printed for it."""
    if architecture == "cortex_m":
        return THUMB1 if "armv6m" in isa.features else HELIUM if "mve" in isa.features else THUMB2
    if architecture == "rv32":
        return RISCV_VECTORS if "zve32x" in isa.features else RISCV
    return AVX if "avx2_fma" in isa.features else SSE

"""Estimates of code size: the bytes that printed C takes on a family of processors.

The figures are fitted to objects of GCC at -O2 (`benchmarks/code_size.py --fit`), so each includes its overhead: for a
function the addresses of its constants, for a selection the registers it needs. A test compares the estimates with
objects. Loops that compilers may vectorize cost most where they do.
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


FAMILIES = ("Thumb-1", "Thumb-2", "Thumb-2 with Helium", "RISC-V", "RISC-V with vectors", "x86-64", "x86-64 with AVX")
BYTES: dict[str, tuple[float, ...]] = {
    "function": (1.1, 10.8, 3.2, 31.3, 3.2, 3.6, 1.1),
    "parameter": (2.4, 8, 2.4, 12.6, 2.4, 0.6, 0.2),
    "loop": (23.6, 28.9, 33.3, 8.7, 66.3, 16.9, 51.3),
    "branch": (0.5, 5.5, 8.7, 7.9, 1.6, 1.8, 7.2),
    "select": (32, 8.6, 2.6, 2.6, 2.6, 39.6, 19.3),
    "compare": (2, 0.3, 0.1, 0.8, 0.1, 0.9, 3.6),
    "assign": (0.2, 0.6, 1.1, 2.4, 0.9, 0.3, 3.7),
    "memory": (2.4, 3.2, 3.6, 4.2, 9.9, 19.3, 8.4),
    "address": (2.4, 33.6, 43.1, 10.1, 10.1, 36, 10.8),
    "operation": (3, 0.2, 0.8, 0.8, 0.3, 1.6, 3.2),
    "narrow": (0.3, 1, 4, 0.3, 4, 8.6, 2.4),
    "literal": (0.4, 0.7, 2.8, 0.2, 2.8, 1.2, 10),
    "wide_memory": (9.6, 2.2, 2.9, 8.8, 8.8, 1.2, 0.4),
    "wide": (30, 0.5, 2, 2, 2, 1.8, 0.5),
    "wide_shift": (7.8, 105, 31.5, 41.6, 94.1, 6, 7.8),
    "float_memory": (4, 4.3, 4.7, 4, 4, 10.7, 7.4),
    "float": (4, 2.5, 0.8, 4, 4, 1.2, 0.5),
    "float_literal": (4, 1.7, 0.5, 4, 4, 14, 1.9),
    "vector": (5, 5, 4.4, 5, 5.2, 5.8, 2),
    "native": (1.2, 3.1, 2, 0.9, 3.1, 4, 4),
    "call": (0.5, 20.1, 6, 80.4, 80.4, 11.2, 2.9),
    "argument": (0.6, 8.7, 2.6, 34.8, 34.8, 4.3, 1.1),
    "pushed": (2.5, 9, 9, 9, 9, 31.3, 20.1),
    "regular": (2.4, 7.6, 4.8, 4.5, 2.3, 180.1, 116.5),
    "regular_wide": (8, 13.7, 5.6, 33.5, 4.1, 12, 24.4),
    "regular_float": (20, 24, 7.2, 20, 20, 31.1, 145.8),
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

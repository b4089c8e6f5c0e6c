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


FAMILIES = ("Thumb-1", "Thumb-2", "Thumb-2 with Helium", "RISC-V", "x86-64", "x86-64 with AVX")
BYTES: dict[str, tuple[float, ...]] = {
    "function": (3.6, 10.8, 3.2, 3.6, 3.6, 1.1),
    "parameter": (0.6, 8, 2.4, 0.6, 0.6, 0.2),
    "loop": (22, 28.9, 33.3, 16.3, 16.9, 51.3),
    "branch": (1.8, 5.5, 8.7, 1.8, 1.8, 7.2),
    "select": (18.3, 8.6, 2.6, 29.7, 39.6, 19.3),
    "compare": (6.7, 0.3, 0.1, 0.9, 0.9, 3.6),
    "assign": (0.7, 0.6, 1.1, 0.5, 0.3, 3.7),
    "memory": (14.5, 3.2, 3.6, 29.2, 19.3, 8.4),
    "address": (8.1, 33.6, 43.1, 0.9, 36, 10.8),
    "operation": (0.8, 0.2, 0.8, 2.9, 1.6, 3.2),
    "narrow": (1.1, 1, 4, 0.6, 8.6, 2.4),
    "literal": (1.2, 0.7, 2.8, 1.2, 1.2, 10),
    "wide_memory": (2.4, 2.2, 2.9, 6.4, 1.2, 0.4),
    "wide": (7.5, 0.5, 2, 2.3, 1.8, 0.5),
    "wide_shift": (27.7, 105, 31.5, 6, 6, 7.8),
    "float_memory": (4, 4.3, 4.7, 4, 10.7, 7.4),
    "float": (4, 2.5, 0.8, 4, 1.2, 0.5),
    "float_literal": (4, 1.7, 0.5, 4, 14, 1.9),
    "vector": (5, 5, 4.4, 5, 5.8, 2),
    "native": (4, 3.1, 2, 4, 4, 4),
    "call": (1.8, 20.1, 6, 1.8, 11.2, 2.9),
    "argument": (0.6, 8.7, 2.6, 0.6, 4.3, 1.1),
    "pushed": (2.5, 9, 9, 3.9, 31.3, 20.1),
    "regular": (33.7, 7.6, 4.8, 6, 180.1, 116.5),
    "regular_wide": (40, 13.7, 5.6, 40, 12, 24.4),
    "regular_float": (20, 24, 7.2, 20, 31.1, 145.8),
}
"""The bytes of each kind in each family."""

ENCODINGS = tuple(Encoding(name, {kind: row[i] for kind, row in BYTES.items()}) for i, name in enumerate(FAMILIES))
THUMB1, THUMB2, HELIUM, RISCV, SSE, AVX = ENCODINGS


def encoding_of(architecture: str, isa: Isa) -> Encoding:
    """The encoding of a board's processor and the instruction set printed for it."""
    if architecture == "cortex_m":
        return THUMB1 if "armv6m" in isa.features else HELIUM if "mve" in isa.features else THUMB2
    if architecture == "rv32":
        return RISCV
    return AVX if "avx2_fma" in isa.features else SSE

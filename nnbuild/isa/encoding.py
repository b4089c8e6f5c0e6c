"""Estimates of code size: the bytes that printed C takes on a family of processors.

The figures are fitted to functions and objects at -O2 (`benchmarks/code_size.py --fit`), so each includes its
overhead: for a function the addresses of its constants, for a selection the registers it needs. A test compares the
estimates with objects. Loops that compilers may vectorize cost most where they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from nnbuild.isa.isa import Isa


@dataclass(frozen=True)
class Encoding:
    """`bytes` for each of base.c_metrics.KINDS. Vendored functions of at most `inlined` operations are repeated rather
    than called, and routines declared inline if they have at most `inlined_routines`. `step`: bytes of
    the call of one step. `compact`: compilers are told to prefer few bytes to speed, by which a program takes
    `slowdown` times the instructions."""

    name: str
    bytes: Mapping[str, float]
    inlined: int = 20
    inlined_routines: float = inf
    step: int = 24
    compact: bool = False
    slowdown: float = 1


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
COMPACT_BYTES: dict[str, tuple[float, ...]] = {
    "function": (2.3, 2.3, 2.3, 56, 2.3, 2.3, 2.3),
    "parameter": (7.6, 1.2, 0.3, 0.3, 0.3, 0.3, 0.3),
    "loop": (20.9, 22.1, 25.5, 17.5, 33.9, 36.2, 23.5),
    "branch": (1, 1, 1, 2.1, 9.1, 11.1, 3),
    "select": (6.8, 10.4, 8, 1.3, 1.3, 12.3, 17.4),
    "compare": (5.5, 0.3, 0.3, 0.3, 0.3, 0.3, 0.8),
    "assign": (0.2, 1.2, 2, 2, 0.7, 2.6, 2),
    "memory": (1.8, 1.4, 1.9, 2.3, 0.7, 5.8, 5),
    "address": (0.7, 3.6, 0.7, 0.7, 2.4, 0.7, 0.7),
    "operation": (2.9, 1.6, 0.5, 2.7, 3.9, 1.6, 3.2),
    "narrow": (0.3, 11.3, 9.5, 0.3, 8.1, 0.3, 0.3),
    "literal": (0.7, 0.7, 2.4, 0.7, 24, 0.7, 4.7),
    "wide_memory": (12.1, 3.2, 1, 7, 1, 1, 1.6),
    "wide": (10.2, 1.3, 2.4, 2.4, 9.7, 1.3, 2.3),
    "wide_shift": (3.3, 61.7, 34.8, 70.1, 54.1, 19.5, 23.4),
    "float_memory": (5, 3.7, 2.6, 5, 5, 4.2, 5.1),
    "float": (4, 2.3, 1.2, 4, 4, 0.7, 1.9),
    "float_literal": (6, 3.5, 27.7, 6, 6, 1, 1),
    "vector": (4.5, 4.5, 4.7, 4.5, 3.3, 3.8, 2.8),
    "native": (0.7, 2, 1.5, 4.4, 4, 4, 4),
    "assembly": (1.9, 4, 4.1, 3, 4, 4, 4),
    "call": (20.8, 10, 12.8, 1.2, 35.8, 7.1, 14.8),
    "argument": (0.6, 0.7, 0.5, 9.2, 0.5, 0.5, 0.5),
    "pushed": (6, 6, 6, 6, 6, 6, 6),
    "regular": (0.8, 4.9, 3.1, 0.8, 0.8, 0.8, 0.8),
    "regular_wide": (5, 0.8, 3.5, 5, 5, 0.8, 0.8),
    "regular_float": (5, 0.8, 0.8, 5, 5, 0.8, 0.8),
}
"""The same where the file itself asks for few bytes (-Os of GCC, minsize of clang)."""
COMPACT_INLINED = 8
"""So compiled, larger functions are called, whatever they are declared."""
COMPACT_SLOWDOWN = (1.4, 1.07, 1.09, 1.12, 1.2, 1.3, 1.12)
"""So many times the instructions, as the mean of three models in each format."""

STEP_BYTES = (24, 24, 21, 29, 50, 46, 46)
"""Of the call of a step, in each family."""

ENCODINGS = tuple(
    Encoding(name, {kind: row[i] for kind, row in BYTES.items()}, step=STEP_BYTES[i]) for i, name in enumerate(FAMILIES)
)
THUMB1, THUMB2, HELIUM, RISCV, RISCV_VECTORS, SSE, AVX = ENCODINGS
COMPACT = {
    name: Encoding(
        f"{name}, compact",
        {kind: row[i] for kind, row in COMPACT_BYTES.items()},
        COMPACT_INLINED,
        COMPACT_INLINED,
        STEP_BYTES[i],
        compact=True,
        slowdown=COMPACT_SLOWDOWN[i],
    )
    for i, name in enumerate(FAMILIES)
}
"""The same by the family's name."""


def encoding_of(architecture: str, isa: Isa, compact: bool = False) -> Encoding:
    """The encoding of a board's processor and the instruction set printed for it."""
    encoding = _of(architecture, isa)
    return COMPACT[encoding.name] if compact else encoding


def _of(architecture: str, isa: Isa) -> Encoding:
    if architecture == "cortex_m":
        return THUMB1 if "armv6m" in isa.features else HELIUM if "mve" in isa.features else THUMB2
    if architecture == "rv32":
        return RISCV_VECTORS if "zve32x" in isa.features else RISCV
    return AVX if "avx2_fma" in isa.features else SSE

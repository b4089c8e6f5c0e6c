"""Sixteen floats at a time in 32 registers; any lanes may be left out of a load or a store."""

from __future__ import annotations

from functools import cache

from nnbuild.isa.vectors import Vectors, adjacent_sums, lane_list
from nnbuild.writer import Instruction

LANES = 16


@cache
def _reduce(depth: int) -> Instruction:
    """Neighbours within 128 bits first, then whole 128 bits; what remains is gathered in front."""
    steps = min(depth.bit_length() - 1, 2)
    lines = [adjacent_sums("_mm512")] * steps
    if depth >= 8:
        lines.append("sum = _mm512_add_ps(sum, _mm512_shuffle_f32x4(sum, sum, 0xb1));")
    if depth == LANES:
        lines.append("sum = _mm512_add_ps(sum, _mm512_shuffle_f32x4(sum, sum, 0x4e));")
    elif depth > 1:
        places = lane_list(LANES, lambda lane: str(_place(lane % (LANES // depth), depth)))
        lines.append(f"sum = _mm512_permutexvar_ps(_mm512_set_epi32({places}), sum);")
    head = "__m512 {name}(__m512 sum)"
    return Instruction(f"avx512_sums_of_{depth}", head, "\n".join([*lines, "return sum;"]), depth.bit_length() * 1.5)


def _place(index: int, depth: int) -> int:
    """Where sum `index` lies before it is gathered: the sums of two lie in pairs, the others at their group's start."""
    return index // 2 * 4 + index % 2 if depth == 2 else index * depth


FLOATS = Vectors(
    name="avx512",
    type="__m512",
    prefix="_mm512",
    lanes=LANES,
    registers=32,
    temporaries=1,
    spellings={"fma": "_mm512_fmadd_ps({0}, {1}, {2})"},
    broadcasts={
        1: "_mm512_set1_ps(*({0}))",
        2: "_mm512_castsi512_ps(_mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)({0}))))",
        4: "_mm512_broadcast_f32x4(_mm_loadu_ps({0}))",
        8: "_mm512_broadcast_f32x8(_mm256_loadu_ps({0}))",
        16: "_mm512_loadu_ps({0})",
    },
    load_first=lambda count: f"_mm512_maskz_loadu_ps({(1 << count) - 1:#x}, {{0}})",
    store_first=lambda count: f"_mm512_mask_storeu_ps({{0}}, {(1 << count) - 1:#x}, {{1}})",
    reduce=_reduce,
)

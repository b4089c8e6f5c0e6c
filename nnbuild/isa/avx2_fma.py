"""Eight floats at a time, multiplied and added in one."""

from __future__ import annotations

from functools import cache

from nnbuild.isa.vectors import Vectors, adjacent_sums, lane_list
from nnbuild.writer import Instruction

LANES = 8


def _mask(count: int) -> str:
    return f"_mm256_set_epi32({lane_list(LANES, lambda lane: '-1' if lane < count else '0')})"


@cache
def _reduce(depth: int) -> Instruction:
    """Neighbours within 128 bits first, then the two halves; what remains is gathered in front."""
    steps = min(depth.bit_length() - 1, 2)
    lines = [adjacent_sums("_mm256")] * steps
    if depth == LANES:
        lines.append("sum = _mm256_add_ps(sum, _mm256_permute2f128_ps(sum, sum, 1));")
    elif depth > 1:
        kept = 4 // depth  # in each 128 bits
        places = lane_list(LANES, lambda lane: str((lane // kept % 2) * 4 + lane % kept))
        lines.append(f"sum = _mm256_permutevar8x32_ps(sum, _mm256_set_epi32({places}));")
    head = "__m256 {name}(__m256 sum)"
    return Instruction(f"avx2_sums_of_{depth}", head, "\n".join([*lines, "return sum;"]), 1.5 * steps + 1)


FLOATS = Vectors(
    name="avx2_fma",
    type="__m256",
    prefix="_mm256",
    lanes=LANES,
    registers=16,
    temporaries=0,
    spellings={"fma": "_mm256_fmadd_ps({0}, {1}, {2})"},
    broadcasts={
        1: "_mm256_set1_ps(*({0}))",
        2: "_mm256_castsi256_ps(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)({0}))))",
        4: "_mm256_broadcast_ps((const __m128 *)({0}))",
        8: "_mm256_loadu_ps({0})",
    },
    load_first=lambda count: f"_mm256_maskload_ps({{0}}, {_mask(count)})",
    store_first=lambda count: f"_mm256_maskstore_ps({{0}}, {_mask(count)}, {{1}})",
    reduce=_reduce,
)

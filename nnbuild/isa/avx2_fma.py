"""Eight floats at a time, multiplied and added in one."""

from __future__ import annotations

from collections.abc import Sequence

from nnbuild.isa.vectors import Vectors, lane_list

LANES = 8


def _mask(count: int) -> str:
    return f"_mm256_set_epi32({lane_list(LANES, lambda lane: '-1' if lane < count else '0')})"


def _permute(value: str, places: Sequence[int]) -> str:
    lanes = lane_list(LANES, lambda lane: str(places[lane % len(places)]))
    return f"_mm256_permutevar8x32_ps({value}, _mm256_set_epi32({lanes}))"


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
    permute=_permute,
)

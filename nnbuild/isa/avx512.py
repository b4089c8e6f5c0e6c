"""Sixteen floats at a time in 32 registers; any lanes may be left out of a load or a store."""

from __future__ import annotations

from collections.abc import Sequence

from nnbuild.isa.vectors import Vectors, lane_list

LANES = 16


def _permute(value: str, places: Sequence[int]) -> str:
    lanes = lane_list(LANES, lambda lane: str(places[lane % len(places)]))
    return f"_mm512_permutexvar_ps(_mm512_set_epi32({lanes}), {value})"


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
    permute=_permute,
)

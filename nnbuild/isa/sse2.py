"""Four floats at a time. There is no fused multiply-add, and a part of a vector is loaded piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from nnbuild.isa.vectors import Vectors

_LOADS = {
    1: "_mm_load_ss({0})",
    2: "_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)({0})))",
    3: "_mm_movelh_ps(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)({0}))), _mm_load_ss({0} + 2))",
}
_STORES = {
    1: "_mm_store_ss({0}, {1})",
    2: "_mm_storel_epi64((__m128i *)({0}), _mm_castps_si128({1}))",
    3: ("_mm_storel_epi64((__m128i *)({0}), _mm_castps_si128({1})), _mm_store_ss({0} + 2, _mm_movehl_ps({1}, {1}))"),
}


def _permute(value: str, places: Sequence[int]) -> str:
    order = sum(place << (2 * lane) for lane, place in enumerate(places))
    return f"_mm_shuffle_ps({value}, {value}, {order:#x})"


FLOATS = Vectors(
    name="sse2",
    type="__m128",
    prefix="_mm",
    lanes=4,
    registers=16,
    temporaries=1,
    spellings={"fma": "_mm_add_ps({2}, _mm_mul_ps({0}, {1}))"},
    broadcasts={
        1: "_mm_set1_ps(*({0}))",
        2: "_mm_castsi128_ps(_mm_shuffle_epi32(_mm_loadl_epi64((const __m128i *)({0})), 0x44))",
        4: "_mm_loadu_ps({0})",
    },
    load_first=_LOADS.__getitem__,
    store_first=_STORES.__getitem__,
    permute=_permute,
)

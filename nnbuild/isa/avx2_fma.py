"""Eight floats at a time, multiplied and added in one."""

from __future__ import annotations

from nnbuild.isa import x86
from nnbuild.isa.vectors import Vectors

_REPEATS = {
    1: "_mm256_set1_ps(*from)",
    2: "_mm256_castsi256_ps(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from)))",
    4: "_mm256_broadcast_ps((const __m128 *)(const void *)from)",
    8: "_mm256_loadu_ps(from)",
}
_SWAPS = ("_mm256_permute2f128_ps(sum, sum, 1)",)


def _mask(count: int) -> str:
    return f"_mm256_set_epi32({x86.mask(8, count, -1, 0)})"


VECTORS = Vectors(
    name="avx2_fma",
    guard=x86.GUARD,
    lanes=8,
    registers=16,
    types=x86.types(256),
    repeats=tuple(_REPEATS),
    spellings=x86.spellings(256)
    | {
        "f_fma": "_mm256_fmadd_ps(a, b, c)",
        "f_load_first": lambda count: f"_mm256_maskload_ps(from, {_mask(count)})",
        "f_store_first": lambda count: f"_mm256_maskstore_ps(to, {_mask(count)}, a)",
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": "_mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_LT_OQ))",
        "f_join": x86.join(256, _SWAPS, "_mm256_permutevar8x32_ps(sum, _mm256_set_epi32({order}))"),
        "f_across": x86.across(256, _SWAPS),
    },
)

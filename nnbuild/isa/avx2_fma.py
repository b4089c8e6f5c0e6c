"""Eight floats at a time, with fused multiply-add."""

from __future__ import annotations

from nnbuild.isa import byte_spellings, x86, x86_integers
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


def _repeated(times: int, count: int) -> str:
    places = ", ".join(str(lane // times) for lane in reversed(range(8)))
    return (
        f"_mm256_permutevar8x32_ps(_mm256_maskload_ps(from, {_mask(-(-count // times))}), _mm256_set_epi32({places}))"
    )


def _widen(count: int) -> str:
    return (
        "_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from))"
        if count == 8
        else x86_integers.set_first(256, count)
    )


def _widen_words(count: int) -> str:
    whole = "_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from))"
    return whole if count == 8 else x86_integers.set_first(256, count)


_WORDS = "_mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1))"
_HALVES = "_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa)"
_APART = "_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)from))"

AVX2 = Vectors(
    name="avx2_fma",
    guard=x86.GUARD,
    lanes=8,
    registers=16,
    types=x86.types(256),
    repeats=tuple(_REPEATS),
    kernels=("float", "integer", "tables", "bytes"),
    spellings=x86.spellings(256)
    | {
        "f_fma": "_mm256_fmadd_ps(a, b, c)",
        "f_load_first": lambda count: f"_mm256_maskload_ps(from, {_mask(count)})",
        "f_load_repeated": _repeated,
        "f_store_first": lambda count: f"_mm256_maskstore_ps(to, {_mask(count)}, a)",
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": "_mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_LT_OQ))",
        "f_join": x86.join(256, _SWAPS, "_mm256_permutevar8x32_ps(sum, _mm256_set_epi32({order}))"),
        "f_across": x86.across(256, _SWAPS),
    }
    | x86_integers.spellings(256)
    | x86_integers.stores(
        256, {8: f"_mm_packs_epi16({_WORDS}, {_WORDS})", 16: _WORDS}, "_mm256_permute4x64_epi64({0}, 0xd8)"
    )
    | {
        **byte_spellings.x86_with_look_up(256, "_mm256_broadcastsi128_si256({0})"),
        "widen": _widen,
        "widen_words": _widen_words,
        "sum_of_runs": x86_integers.SUM_OF_RUNS,
        "gather": "_mm256_i32gather_epi32(from, a, 4)",
        "scaled": x86_integers.scaled(256, _HALVES),
        **x86_integers.upper(256, _HALVES),
        "repeat_apart": x86_integers.repeat_apart(256, _APART),
    },
    cycles={"look_up": 8.0, "upper": 2.0, "upper_plus": 4.0, "high_rounded": 3.0},
    alternating=True,
    block=4,
    reach=16,
)
VECTORS = (AVX2, x86_integers.vnni(AVX2, "avx_vnni", "avx_"))

"""Sixteen floats at a time in 32 registers, with masked loads and stores."""

from __future__ import annotations

from nnbuild.isa import byte_spellings, x86, x86_integers
from nnbuild.isa.vectors import Vectors

_REPEATS = {
    1: "_mm512_set1_ps(*from)",
    2: "_mm512_castsi512_ps(_mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from)))",
    4: "_mm512_broadcast_f32x4(_mm_loadu_ps(from))",
    8: "_mm512_broadcast_f32x8(_mm256_loadu_ps(from))",
    16: "_mm512_loadu_ps(from)",
}
_SWAPS = ("_mm512_shuffle_f32x4(sum, sum, 0xb1)", "_mm512_shuffle_f32x4(sum, sum, 0x4e)")


def _repeated(times: int, count: int) -> str:
    places = ", ".join(str(lane // times) for lane in reversed(range(16)))
    loaded = f"_mm512_maskz_loadu_ps({(1 << -(-count // times)) - 1:#x}, from)"
    return f"_mm512_permutexvar_ps(_mm512_set_epi32({places}), {loaded})"


def _widen(count: int) -> str:
    whole = "_mm_loadu_si128((const __m128i *)(const void *)from)"
    return f"_mm512_cvtepi8_epi32({whole if count == 16 else f'_mm_maskz_loadu_epi8({(1 << count) - 1:#x}, from)'})"


def _widen_words(count: int) -> str:
    whole = "_mm256_loadu_si256((const __m256i *)(const void *)from)"
    some = f"_mm256_maskz_loadu_epi16({(1 << count) - 1:#x}, from)"
    return f"_mm512_cvtepi16_epi32({whole if count == 16 else some})"


def _load_bytes(count: int) -> str:
    if count == 32:
        return "_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)from))"
    return "_mm512_loadu_si512(from)" if count == 64 else f"_mm512_maskz_loadu_epi8({(1 << count) - 1:#x}, from)"


def _store_bytes(count: int) -> str:
    """Half a vector without a mask, which takes longer."""
    if count == 32:
        return "_mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(a));"
    return "_mm512_storeu_si512(to, a)" if count == 64 else f"_mm512_mask_storeu_epi8(to, {(1 << count) - 1:#x}, a)"


_PACKED = {8: "_mm512_cvtsepi32_epi8(a)", 16: "_mm512_cvtsepi32_epi16(a)"}
_HALVES = "_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB)"
_APART = "_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)from))"
_HALF_GATHERED = "_mm256_i32gather_epi32(from, {0}, 4)"
_GATHERED = f"""\
const __m256i low = {_HALF_GATHERED.format("_mm512_castsi512_si256(a)")};
const __m256i high = {_HALF_GATHERED.format("_mm512_extracti64x4_epi64(a, 1)")};
return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);"""
"""By halves: without optimization gcc warns of a sign in the intrinsic for both."""
_ORDERED = "_mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), {0})"

AVX512 = Vectors(
    name="avx512",
    guard=x86.GUARD,
    lanes=16,
    registers=32,
    temporaries=1,
    types=x86.types(512),
    repeats=tuple(_REPEATS),
    kernels=("float", "integer", "tables", "bytes"),
    spellings=x86.spellings(512)
    | {
        "f_fma": "_mm512_fmadd_ps(a, b, c)",
        "f_load_first": lambda count: f"_mm512_maskz_loadu_ps({(1 << count) - 1:#x}, from)",
        "f_load_repeated": _repeated,
        "f_store_first": lambda count: f"_mm512_mask_storeu_ps(to, {(1 << count) - 1:#x}, a)",
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": "_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), otherwise, then)",
        "f_join": x86.join(512, _SWAPS, "_mm512_permutexvar_ps(_mm512_set_epi32({order}), sum)"),
        "f_across": x86.across(512, _SWAPS),
    }
    | x86_integers.spellings(512)
    | x86_integers.stores(512, _PACKED, _ORDERED)
    | {
        **byte_spellings.x86_with_look_up(512, "_mm512_broadcast_i32x4({0})"),
        "widen": _widen,
        "widen_words": _widen_words,
        "sum_of_runs": x86_integers.SUM_OF_RUNS,
        "gather": _GATHERED,
        "scaled": x86_integers.scaled(512, _HALVES),
        **x86_integers.upper(512, _HALVES),
        "b_load": _load_bytes,
        "b_store": _store_bytes,
        "repeat_apart": x86_integers.repeat_apart(512, _APART),
    },
    cycles={
        "look_up": 5.0,
        "sums_across": 45.0,
        "gather": 12.0,
        "upper": 2.0,
        "upper_plus": 4.0,
        "high_rounded": 3.0,
        "b_load": 0.5,
        "b_store": 0.5,
    },
    alternating=True,
    block=4,
    reach=16,
)
VNNI = x86_integers.vnni(AVX512, "avx512_vnni", "")
VECTORS = (AVX512, VNNI)

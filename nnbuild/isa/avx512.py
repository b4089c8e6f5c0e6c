"""Sixteen floats at a time in 32 registers; any lanes may be left out of a load or a store."""

from __future__ import annotations

from nnbuild.isa import x86
from nnbuild.isa.vectors import Vectors

_REPEATS = {
    1: "_mm512_set1_ps(*from)",
    2: "_mm512_castsi512_ps(_mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from)))",
    4: "_mm512_broadcast_f32x4(_mm_loadu_ps(from))",
    8: "_mm512_broadcast_f32x8(_mm256_loadu_ps(from))",
    16: "_mm512_loadu_ps(from)",
}
_SWAPS = ("_mm512_shuffle_f32x4(sum, sum, 0xb1)", "_mm512_shuffle_f32x4(sum, sum, 0x4e)")

VECTORS = Vectors(
    name="avx512",
    guard=x86.GUARD,
    lanes=16,
    registers=32,
    temporaries=1,
    types=x86.types(512),
    repeats=tuple(_REPEATS),
    spellings=x86.spellings(512)
    | {
        "f_fma": "_mm512_fmadd_ps(a, b, c)",
        "f_load_first": lambda count: f"_mm512_maskz_loadu_ps({(1 << count) - 1:#x}, from)",
        "f_store_first": lambda count: f"_mm512_mask_storeu_ps(to, {(1 << count) - 1:#x}, a)",
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": "_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), otherwise, then)",
        "f_join": x86.join(512, _SWAPS, "_mm512_permutexvar_ps(_mm512_set_epi32({order}), sum)"),
        "f_across": x86.across(512, _SWAPS),
    },
)

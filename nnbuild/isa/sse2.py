"""Four floats at a time. There is no fused multiply-add, and a part of a vector is loaded piece by piece."""

from __future__ import annotations

from nnbuild.isa import x86
from nnbuild.isa.vectors import Vectors

_LOADS = {
    1: "_mm_load_ss(from)",
    2: "_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)from))",
    3: "_mm_movelh_ps(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)from)), _mm_load_ss(from + 2))",
}
_STORES = {
    1: "_mm_store_ss(to, a)",
    2: "_mm_storel_epi64((__m128i *)(void *)to, _mm_castps_si128(a))",
    3: "_mm_storel_epi64((__m128i *)(void *)to, _mm_castps_si128(a));\n_mm_store_ss(to + 2, _mm_movehl_ps(a, a));",
}
_REPEATS = {
    1: "_mm_set1_ps(*from)",
    2: "_mm_castsi128_ps(_mm_shuffle_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from), 0x44))",
    4: "_mm_loadu_ps(from)",
}
_PERMUTE = "_mm_shuffle_ps(sum, sum, {0} | {1} << 2 | {2} << 4 | {3} << 6)"

VECTORS = Vectors(
    name="sse2",
    guard=x86.GUARD,
    lanes=4,
    registers=16,
    temporaries=1,
    types=x86.types(128),
    repeats=tuple(_REPEATS),
    spellings=x86.spellings(128)
    | {
        "f_fma": f"{x86.product(128)}\nreturn _mm_add_ps(c, product);",
        "f_load_first": _LOADS.__getitem__,
        "f_store_first": _STORES.__getitem__,
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": """\
const __m128 less = _mm_cmplt_ps(a, b);
return _mm_or_ps(_mm_and_ps(less, then), _mm_andnot_ps(less, otherwise));""",
        "f_join": x86.join(128, (), _PERMUTE),
        "f_across": x86.across(128, ()),
    },
)

"""Four floats at a time. There is no fused multiply-add, and parts of vectors are loaded element by element."""

from __future__ import annotations

from nnbuild.isa import byte_spellings, x86, x86_integers
from nnbuild.isa.vectors import Vectors
from nnbuild.isa.x86_integers import Width

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


def _products(b: str, more: str) -> str:
    """Statements that declare the exact products of even lanes and of odd ones, from unsigned ones."""
    return f"""\
/* unsigned products are too large by the other number << 32 where a number is negative */
const __m128i more = {more};
const __m128i low = _mm_sub_epi64(_mm_mul_epu32(a, {b}), _mm_slli_epi64(more, 32));
const __m128i product = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64({b}, 32));
const __m128i high = _mm_sub_epi64(product, _mm_slli_epi64(_mm_srli_epi64(more, 32), 32));"""


_NEGATIVE = "_mm_and_si128(_mm_srai_epi32({0}, 31), {1})"
_UPPER = "_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0xed), _mm_shuffle_epi32(odd, 0xed))"
_EXACT = f"""\
{_products("multiplier", _NEGATIVE.format("a", "multiplier"))}
const __m128i even = _mm_add_epi64(low, first), odd = _mm_add_epi64(high, second);
return {_UPPER};"""
_PRODUCTS = _products("b", f"_mm_add_epi32({_NEGATIVE.format('a', 'b')}, {_NEGATIVE.format('b', 'a')})")
_WIDE = "_mm_unpacklo_epi32(_mm_shuffle_epi32(c, {0}), _mm_srai_epi32(_mm_shuffle_epi32(c, {0}), 31))"
_PLACES = [f"from[_mm_cvtsi128_si32(_mm_shuffle_epi32(a, {lane}))]" for lane in (3, 2, 1, 0)]
_BY_POWERS = """\
/* a set top bit makes negative numbers positive */
const __m128i lifted = _mm_xor_si128(a, _mm_set1_epi32(INT32_MIN));
const __m128i even = _mm_slli_epi64(_mm_mul_epu32(lifted, b), 1);
const __m128i odd = _mm_slli_epi64(_mm_mul_epu32(_mm_srli_epi64(lifted, 32), _mm_srli_epi64(b, 32)), 1);
return _mm_sub_epi32(_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0xed), _mm_shuffle_epi32(odd, 0xed)), b);"""
_MULTIPLY = """\
/* the lower halves of the products are the same with and without signs */
const __m128i even = _mm_mul_epu32(a, b);
const __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));
return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));"""
_COMPARE = """\
const __m128i first = _mm_cmpgt_epi32({0}, {1});
return _mm_or_si128(_mm_and_si128(first, a), _mm_andnot_si128(first, b));"""
_WIDENED = "_mm_srai_epi16(_mm_unpacklo_epi8({0}, {0}), 8)"
_QUADS = """\
const __m128i pairs = _mm_unpacklo_epi8({0}, {0});
return _mm_srai_epi32(_mm_unpacklo_epi16(pairs, pairs), 24);"""
_WORDS = "_mm_packs_epi32(a, a)"


def _widen(count: int) -> str:
    return _QUADS.format("_mm_loadu_si32(from)") if count == 4 else x86_integers.set_first(128, count)


def _widen_words(count: int) -> str:
    pairs = "_mm_loadl_epi64((const __m128i *)(const void *)from)"
    whole = f"_mm_srai_epi32(_mm_unpacklo_epi16({pairs}, {pairs}), 16)"
    return whole if count == 4 else x86_integers.set_first(128, count)


def _hold(v: Width, value: str, size: int, low: int, high: int) -> str:
    """Bytes can only be compared as unsigned numbers."""
    if size == 16 or (low, high) == (-128, 127):
        return x86_integers.bounded(v, value, size, low, high)
    value = f"_mm_xor_si128({value}, _mm_set1_epi8(-128))"
    for operation, bound, none in (("max", low, -128), ("min", high, 127)):
        if bound != none:
            value = f"_mm_{operation}_epu8({value}, _mm_set1_epi8({bound ^ -128}))"
    return f"_mm_xor_si128({value}, _mm_set1_epi8(-128))"


SSE2 = Vectors(
    name="sse2",
    guard=x86.GUARD,
    lanes=4,
    registers=16,
    temporaries=1,
    types=x86.types(128),
    repeats=tuple(_REPEATS),
    kernels=("float", "integer", "bytes"),
    spellings=x86.spellings(128)
    | {
        "f_fma": f"{x86.product(128)}\nreturn _mm_add_ps(c, product);",
        "f_load_first": _LOADS.__getitem__,
        "f_load_repeated": lambda times, count: f"const __m128 a = {_LOADS[2]};\n\nreturn _mm_unpacklo_ps(a, a);",
        "f_store_first": _STORES.__getitem__,
        "f_repeat": _REPEATS.__getitem__,
        "f_if_less": """\
const __m128 less = _mm_cmplt_ps(a, b);
return _mm_or_ps(_mm_and_ps(less, then), _mm_andnot_ps(less, otherwise));""",
        "f_join": x86.join(128, (), _PERMUTE),
        "f_across": x86.across(128, ()),
    }
    | x86_integers.spellings(128)
    | x86_integers.stores(128, {8: f"_mm_packs_epi16({_WORDS}, {_WORDS})", 16: _WORDS}, "{0}", _hold)
    | {
        **byte_spellings.SSE2,
        "mul": _MULTIPLY,
        "max": _COMPARE.format("a", "b"),
        "min": _COMPARE.format("b", "a"),
        "shift_by_powers": _BY_POWERS,
        "scaled": lambda alternating: _EXACT,
        **x86_integers.uppers_of(Width(128), _PRODUCTS, (_WIDE.format("0x88"), _WIDE.format("0xdd")), _UPPER),
        "gather": f"_mm_set_epi32({', '.join(_PLACES)})",
        "widen": _widen,
        "widen_words": _widen_words,
        "weights": lambda depth: _WIDENED.format(Width(128).half("from")),
        "repeat": lambda depth: "_mm_shuffle_epi32(_mm_loadu_si32(from), 0)",
        "centre": x86_integers.centre(128, _WIDENED.format(Width(128).half("from + i"))),
    },
    cycles={
        "mul": 3.0,
        "max": 2.0,
        "min": 2.0,
        "scaled": 5.0,
        "upper": 6.0,
        "upper_plus": 8.0,
        "high_rounded": 7.0,
        "gather": 12.0,
    },
    alternating=True,
    powers=True,
    block=4,
)
VECTORS = (SSE2,)

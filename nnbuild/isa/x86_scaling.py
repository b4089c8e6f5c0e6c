"""The way from 32-bit sums to outputs on x86: exact products of 64 bits, rounded by adding, kept in their high half.

Even and odd lanes are multiplied apart. A rule's additions come as 64-bit numbers, first those of a vector's even
lanes, then those of its odd ones; the output's zero point is part of them.
"""

from __future__ import annotations

from nnbuild.base.writer import Instruction
from nnbuild.isa.x86_vectors import AVX2, AVX512, SSE, Vectors

HIGH_HALVES = {
    # even: 64-bit results of the even lanes; odd: those of the odd lanes
    512: "return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);",
    256: "return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);",
    128: "return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0xED), _mm_shuffle_epi32(odd, 0xED));",
}


def high_halves(v: Vectors) -> Instruction:
    """One vector of the upper 32 bits of all 64-bit numbers in two."""
    return Instruction(
        f"high_halves_{v.bits}", f"{v.kind} {{name}}({v.kind} even, {v.kind} odd)", HIGH_HALVES[v.bits], 1
    )


SIGNED_MULTIPLY_SSE2 = Instruction(
    "multiply_even",
    "__m128i {name}(__m128i a, __m128i b)",
    """\
/* b is at least 0, so the unsigned product is too large by b << 32 where a is negative */
const __m128i excess = _mm_slli_epi64(_mm_and_si128(_mm_srai_epi32(a, 31), b), 32);
return _mm_sub_epi64(_mm_mul_epu32(a, b), excess);""",
    2,
)


def scaled(v: Vectors) -> Instruction:
    """(sum * multiplier + addend) >> 32, for every lane."""
    if v is SSE:
        even, odd = (f"{{prefix}}_multiply_even({a}, {b})" for a, b in (("sum", "multiplier"), ("sums", "multipliers")))
    else:
        even, odd = v.spelt("mul_epi32", "sum", "multiplier"), v.spelt("mul_epi32", "sums", "multipliers")
    body = f"""\
const {v.kind} sums = {v.spelt("srli_epi64", "sum", "32")};
const {v.kind} multipliers = {v.spelt("srli_epi64", "multiplier", "32")};
even = {v.spelt("add_epi64", even, "even")};
odd = {v.spelt("add_epi64", odd, "odd")};
return {{prefix}}_high_halves_{v.bits}(even, odd);"""
    head = f"{v.kind} {{name}}({v.kind} sum, {v.kind} multiplier, {v.kind} even, {v.kind} odd)"
    uses = (high_halves(v), *((SIGNED_MULTIPLY_SSE2,) if v is SSE else ()))
    return Instruction(f"scaled_{v.bits}", head, body, 3, uses=uses)


SHIFT_RIGHT_SSE2 = Instruction(
    "shift_right_128",
    "__m128i {name}(__m128i value, __m128i powers)",
    """\
/* Every lane by its own count n, as a multiplication by 2**(31 - n); a set top bit makes negative numbers positive. */
const __m128i lifted = _mm_xor_si128(value, _mm_set1_epi32(INT32_MIN));
const __m128i even = _mm_slli_epi64(_mm_mul_epu32(lifted, powers), 1);
const __m128i odd = _mm_slli_epi64(_mm_mul_epu32(_mm_srli_epi64(lifted, 32), _mm_srli_epi64(powers, 32)), 1);
return _mm_sub_epi32({prefix}_high_halves_128(even, odd), powers);""",
    4,
    uses=(high_halves(SSE),),
)

PACKED = {
    512: "return _mm512_cvtsepi32_epi8(value);",
    256: """\
const __m128i low = _mm256_castsi256_si128(value);
const __m128i words = _mm_packs_epi32(low, _mm256_extracti128_si256(value, 1));
return _mm_packs_epi16(words, words);""",
    128: """\
const __m128i words = _mm_packs_epi32(value, value);
return _mm_packs_epi16(words, words);""",
}


def packed_bytes(v: Vectors) -> Instruction:
    """The lanes as int8, saturated, from the lowest byte on."""
    return Instruction(f"packed_bytes_{v.bits}", f"__m128i {{name}}({v.kind} value)", PACKED[v.bits], 1.5)


PACKED_TO_WORDS = {
    512: (AVX2, "return _mm512_cvtsepi32_epi16(value);"),
    256: (SSE, "return _mm_packs_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));"),
    128: (SSE, "return _mm_packs_epi32(value, value);"),
}


def packed_words(v: Vectors) -> Instruction:
    """The lanes as int16, saturated, from the lowest on."""
    result, body = PACKED_TO_WORDS[v.bits]
    return Instruction(f"packed_words_{v.bits}", f"{result.kind} {{name}}({v.kind} value)", body, 1)


ALL = (SSE, AVX2, AVX512)
SCALED = {v.bits: scaled(v) for v in ALL}
PACKED_WORDS = {v.bits: packed_words(v) for v in ALL}
PACKED_BYTES = {v.bits: packed_bytes(v) for v in ALL}


def _compared_bytes(name: str, operation: str) -> Instruction:
    body = f"""\
const __m128i top = _mm_set1_epi8(-128);
return _mm_xor_si128({operation}(_mm_xor_si128(a, top), _mm_xor_si128(b, top)), top);"""
    return Instruction(name, "__m128i {name}(__m128i a, __m128i b)", body, 2)


LARGER_BYTES_SSE2 = _compared_bytes("larger_bytes", "_mm_max_epu8")
SMALLER_BYTES_SSE2 = _compared_bytes("smaller_bytes", "_mm_min_epu8")


def _compared(name: str, condition: str) -> Instruction:
    body = f"""\
const __m128i first = {condition};
return _mm_or_si128(_mm_and_si128(first, a), _mm_andnot_si128(first, b));"""
    return Instruction(name, "__m128i {name}(__m128i a, __m128i b)", body, 2)


LARGER_SSE2 = _compared("larger_128", "_mm_cmpgt_epi32(a, b)")
SMALLER_SSE2 = _compared("smaller_128", "_mm_cmpgt_epi32(b, a)")

LOW_MULTIPLY_SSE2 = Instruction(
    "multiply_128",
    "__m128i {name}(__m128i a, __m128i b)",
    """\
/* the lower halves of the products are the same with and without signs */
const __m128i even = _mm_mul_epu32(a, b);
const __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));
return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));""",
    3,
)

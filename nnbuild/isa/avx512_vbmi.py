"""AVX-512 with look-ups of bytes in registers: single rows of sparse weights, in windows of 256 inputs."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa import avx512, byte_spellings

SUM_OF_WINDOWS = """\
const __m512i low = _mm512_set1_epi8(15), one = _mm512_set1_epi8(1), end = _mm512_set1_epi8(63);
const __m512i quarter = _mm512_set_epi64(0x2f2f2f2f2f2f2f2f, 0x2f2f2f2f2f2f2f2f, 0, 0, 0x0f0f0f0f0f0f0f0f,
                                         0x0f0f0f0f0f0f0f0f, 0, 0);
const __m512i half = _mm512_set1_epi8(31);
const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)values));
__m512i first = _mm512_setzero_si512(), second = _mm512_setzero_si512();

for (; count > 0; --count) {
    __m512i last = _mm512_set1_epi8(-1);
    int32_t mine = counts[0], left = mine + counts[1];

    for (; left > 0; left -= 64, mine -= 64) {
        const uint64_t here = left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0;
        const uint64_t upper = mine <= 0 ? 0 : mine < 64 ? ((uint64_t)1 << mine) - 1 : ~(uint64_t)0;
        const __m512i both = _mm512_loadu_si512(k);
        __m512i after = _mm512_add_epi8(_mm512_and_si512(both, low), one);

        after = _mm512_add_epi8(after, _mm512_bslli_epi128(after, 1));
        after = _mm512_add_epi8(after, _mm512_bslli_epi128(after, 2));
        after = _mm512_add_epi8(after, _mm512_bslli_epi128(after, 4));
        after = _mm512_add_epi8(after, _mm512_bslli_epi128(after, 8));
        after = _mm512_mask_add_epi8(after, 0xffff0000ffff0000, after, _mm512_permutexvar_epi8(quarter, after));
        after = _mm512_mask_add_epi8(after, 0xffffffff00000000, after, _mm512_permutexvar_epi8(half, after));
        after = _mm512_add_epi8(after, last);
        last = _mm512_permutexvar_epi8(end, after);
        const __m512i near = _mm512_permutex2var_epi8(_mm512_loadu_si512(x), after, _mm512_loadu_si512(x + 64));
        const __m512i far = _mm512_permutex2var_epi8(_mm512_loadu_si512(x + 128), after, _mm512_loadu_si512(x + 192));
        const __m512i inputs = _mm512_mask_blend_epi8(_mm512_movepi8_mask(after), near, far);
        const __m512i codes = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);

        first = _mm512_dpbusd_epi32(first, inputs, _mm512_maskz_shuffle_epi8(here & upper, table, codes));
        second = _mm512_dpbusd_epi32(second, inputs, _mm512_maskz_shuffle_epi8(here & ~upper, table, codes));
        k += left < 64 ? left : 64;
    }
    counts += 2;
    x += 256;
}
to[0] += _mm512_reduce_add_epi32(first);
to[1] += _mm512_reduce_add_epi32(second);"""
"""The sum of all steps so far, in bytes, is the index of an entry's input in the window."""

VBMI = replace(
    avx512.VNNI,
    name="avx512_vbmi",
    kernels=("windows", "tables"),
    spellings={
        "lift": avx512.AVX512.spellings["lift"],
        "sum_of_windows": SUM_OF_WINDOWS,
        "look_up": byte_spellings.VBMI_LOOK_UP,
    },
    cycles={"look_up": 1.0},
)
VECTORS = (VBMI,)

/* net: one function a step, made for its shapes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter", "no-predictive-commoning")
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#include <immintrin.h>
#endif

#include "conv_vnni_private.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#define CONV_VNNI_TARGET __attribute__((target("sse2,ssse3,avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#else
#define CONV_VNNI_TARGET
#endif

CONV_VNNI_TARGET static inline void conv_vnni_copy_lifted_512(int8_t *to, const int8_t *from, int32_t count)
{
    const __m512i top = _mm512_set1_epi8(-128);
    int32_t i = 0;
    for (; i + 64 <= count; i += 64) {
        _mm512_storeu_si512((__m512i *)(void *)(to + i),
                _mm512_xor_si512(_mm512_loadu_si512((const __m512i *)(const void *)(from + i)), top));
    }
    if (i < count) {
        const __mmask64 rest = ((__mmask64)1 << (count - i)) - 1;
        _mm512_mask_storeu_epi8(to + i, rest, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), top));
    }
}

CONV_VNNI_TARGET static inline __m512i conv_vnni_dot_512(__m512i sum, __m512i inputs, __m512i weights)
{
    sum = _mm512_dpbusd_epi32(sum, inputs, weights);
    __asm__("" : "+v"(sum));
    return sum;
}

CONV_VNNI_TARGET static inline __m512i conv_vnni_high_halves_512(__m512i even, __m512i odd)
{
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

CONV_VNNI_TARGET static inline __m512i conv_vnni_scaled_512(__m512i sum, __m512i multiplier, __m512i even, __m512i odd)
{
    const __m512i sums = _mm512_srli_epi64(sum, 32);
    const __m512i multipliers = _mm512_srli_epi64(multiplier, 32);
    even = _mm512_add_epi64(_mm512_mul_epi32(sum, multiplier), even);
    odd = _mm512_add_epi64(_mm512_mul_epi32(sums, multipliers), odd);
    return conv_vnni_high_halves_512(even, odd);
}

CONV_VNNI_TARGET static inline __m128i conv_vnni_packed_bytes_512(__m512i value)
{
    return _mm512_cvtsepi32_epi8(value);
}

/* op: conv2d [5][5][4] -> [3][3][3], 108 MACs, avx512_vnni_integers, about 139 cycles */
CONV_VNNI_TARGET void conv_vnni_00_op(const int8_t *restrict in, int8_t *restrict out, int8_t *restrict scratch,
        int32_t begin, int32_t end)
{
    const __m512i apart = _mm512_setr_epi32(0x03020100, 0x03020100, 0x03020100, 0x0b0a0908, 0x0b0a0908, 0x0b0a0908,
            0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100,
            0x03020100);
    for (int32_t strip = begin; strip < end; strip += 3) {
        const int32_t rows = end - strip < 3 ? end - strip : 3;
        for (int32_t y = 0; y < ((rows - 1)) * 2 + 1; ++y) {
            int8_t *line = scratch + y * 20;
            conv_vnni_copy_lifted_512(line, in + (strip * 2 + y) * 20, 20);
        }
        const int8_t *taps = conv_vnni_00_op_kernel;
        const int32_t *bias = conv_vnni_00_op_bias;
        const int32_t *multiplier = conv_vnni_00_op_multiplier;
        const int64_t *addend = conv_vnni_00_op_addend;
        const int32_t *shift = conv_vnni_00_op_shift;
        int8_t *to = out + strip * 9;
        for (int32_t block = 0; block < 1; ++block) {
            for (int32_t y = 0; y < rows; ++y) {
                const int8_t *across = scratch + y * 40;
                int8_t *place = to + y * 9;
                for (int32_t tile = 0; tile < 3; tile += 2) {
                    const int32_t x = tile < 1 ? tile : 1;
                    const int8_t *window = across + x * 8;
                    int8_t *at = place + x * 3;
                    __m512i sum00 = _mm512_loadu_si512((const __m512i *)(const void *)(bias));
                    const int8_t *k = taps;
                    {
                        const __m512i w0 = _mm512_loadu_si512((const __m512i *)(const void *)(k));
                        const __m512i x0 = _mm512_shuffle_epi8(
                                _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(window))),
                                apart);
                        sum00 = conv_vnni_dot_512(sum00, x0, w0);
                    }
                    {
                        const __m512i multiplier_now = _mm512_loadu_si512((const __m512i *)(const void *)(multiplier));
                        const __m512i shift_now = _mm512_loadu_si512((const __m512i *)(const void *)(shift));
                        const __m512i even_now = _mm512_loadu_si512((const __m512i *)(const void *)(addend));
                        const __m512i odd_now = _mm512_loadu_si512((const __m512i *)(const void *)(addend + 8));
                        const __m512i sum00_doubled = _mm512_add_epi32(sum00, sum00);
                        const __m512i sum00_sign = _mm512_srai_epi32(sum00, 31);
                        sum00 = _mm512_add_epi32(conv_vnni_scaled_512(sum00_doubled, multiplier_now, even_now, odd_now),
                                sum00_sign);
                        sum00 = _mm512_srav_epi32(sum00, shift_now);
                        const __m128i sum00_bytes = conv_vnni_packed_bytes_512(sum00);
                        _mm_mask_storeu_epi8(at, 0x3f, sum00_bytes);
                    }
                }
            }
            taps += 64;
            bias += 16;
            multiplier += 16;
            addend += 16;
            shift += 16;
            to += 6;
        }
    }
}

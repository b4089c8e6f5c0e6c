/* net: one function a step, made for its shapes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter", "no-predictive-commoning")
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#include <immintrin.h>
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-vectorize")
#endif

#include "conv_vnni_private.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#define CONV_VNNI_TARGET \
    __attribute__((target("sse2,ssse3,avx2,fma,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#else
#define CONV_VNNI_TARGET
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)

CONV_VNNI_TARGET static inline void conv_vnni_avx512_vnni_lift_128(int8_t *to, const int8_t *from, int32_t count)
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

typedef __m512i conv_vnni_avx512_vnni_sums;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_load(const int32_t *from)
{
    return _mm512_loadu_si512((const __m512i *)(const void *)(from));
}

typedef __m512i conv_vnni_avx512_vnni_bytes;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_bytes conv_vnni_avx512_vnni_weights_4(const int8_t *from)
{
    return _mm512_loadu_si512((const __m512i *)(const void *)(from));
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_bytes conv_vnni_avx512_vnni_repeat_apart_4x2x3x8(
        const int8_t *from)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)from)),
            _mm512_set_epi32(0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x03020100,
            0x03020100, 0x03020100, 0x03020100, 0x0b0a0908, 0x0b0a0908, 0x0b0a0908, 0x03020100, 0x03020100,
            0x03020100));
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_dot_4x128(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_bytes x, conv_vnni_avx512_vnni_bytes w)
{
    a = _mm512_dpbusd_epi32(a, x, w);
    __asm__ volatile("" : "+v"(a));
    return a;
}

typedef __m512i conv_vnni_avx512_vnni_wide;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_wide conv_vnni_avx512_vnni_load_wide(const int64_t *from)
{
    return _mm512_loadu_si512((const __m512i *)(const void *)(from));
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_add(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_sums b)
{
    return _mm512_add_epi32(a, b);
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_shift_right_31(
        conv_vnni_avx512_vnni_sums a)
{
    return _mm512_srai_epi32(a, 31);
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_scaled_1(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_sums multiplier, conv_vnni_avx512_vnni_wide first, conv_vnni_avx512_vnni_wide second)
{
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(a, multiplier), first),
            odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(multiplier, 32)),
            second);
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_shift_right_each(
        conv_vnni_avx512_vnni_sums a, conv_vnni_avx512_vnni_sums by)
{
    return _mm512_srav_epi32(a, by);
}

CONV_VNNI_TARGET static inline void conv_vnni_avx512_vnni_store_bytes_m128x127x6(int8_t *to,
        conv_vnni_avx512_vnni_sums a)
{
    const __m128i all = _mm512_cvtsepi32_epi8(a);
    _mm_storeu_si32(to, all);
    _mm_storeu_si16(to + 4, _mm_srli_si128(all, 4));
}

#else /* the same in portable C */

CONV_VNNI_TARGET static inline void conv_vnni_avx512_vnni_lift_128(int8_t *to, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) to[i] = (int8_t)((uint8_t)from[i] + 128);
}

typedef struct { int32_t at[16]; } conv_vnni_avx512_vnni_sums;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_load(const int32_t *from)
{
    conv_vnni_avx512_vnni_sums r;

    for (int32_t i = 0; i < 16; ++i) r.at[i] = from[i];
    return r;
}

typedef struct { int8_t at[64]; } conv_vnni_avx512_vnni_bytes;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_bytes conv_vnni_avx512_vnni_weights_4(const int8_t *from)
{
    conv_vnni_avx512_vnni_bytes r;

    for (int32_t i = 0; i < 64; ++i) r.at[i] = from[i];
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_bytes conv_vnni_avx512_vnni_repeat_apart_4x2x3x8(
        const int8_t *from)
{
    conv_vnni_avx512_vnni_bytes r;

    for (int32_t i = 0; i < 64; ++i) r.at[i] = from[(i / 4 < 6 ? i / 4 / 3 * 8 : 0) + i % 4];
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_dot_4x128(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_bytes x, conv_vnni_avx512_vnni_bytes w)
{
    for (int32_t i = 0; i < 16; ++i) {
        uint32_t total = (uint32_t)a.at[i];

        for (int32_t k = 0; k < 4; ++k) total += (uint32_t)((uint8_t)x.at[i * 4 + k] * w.at[i * 4 + k]);
        a.at[i] = (int32_t)total;
    }
    return a;
}

typedef struct { int64_t at[8]; } conv_vnni_avx512_vnni_wide;

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_wide conv_vnni_avx512_vnni_load_wide(const int64_t *from)
{
    conv_vnni_avx512_vnni_wide r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = from[i];
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_add(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_sums b)
{
    conv_vnni_avx512_vnni_sums r;

    for (int32_t i = 0; i < 16; ++i) r.at[i] = (int32_t)((uint32_t)a.at[i] + (uint32_t)b.at[i]);
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_shift_right_31(
        conv_vnni_avx512_vnni_sums a)
{
    conv_vnni_avx512_vnni_sums r;

    for (int32_t i = 0; i < 16; ++i) r.at[i] = a.at[i] >> 31;
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_scaled_1(conv_vnni_avx512_vnni_sums a,
        conv_vnni_avx512_vnni_sums multiplier, conv_vnni_avx512_vnni_wide first, conv_vnni_avx512_vnni_wide second)
{
    conv_vnni_avx512_vnni_sums r;

    for (int32_t i = 0; i < 16; ++i) r.at[i] = (int32_t)((int64_t)((uint64_t)((int64_t)a.at[i] * multiplier.at[i])
            + (uint64_t)(i % 2 ? second : first).at[i / 2]) >> 32);
    return r;
}

CONV_VNNI_TARGET static inline conv_vnni_avx512_vnni_sums conv_vnni_avx512_vnni_shift_right_each(
        conv_vnni_avx512_vnni_sums a, conv_vnni_avx512_vnni_sums by)
{
    conv_vnni_avx512_vnni_sums r;

    for (int32_t i = 0; i < 16; ++i) r.at[i] = a.at[i] >> by.at[i];
    return r;
}

CONV_VNNI_TARGET static inline void conv_vnni_avx512_vnni_store_bytes_m128x127x6(int8_t *to,
        conv_vnni_avx512_vnni_sums a)
{
    for (int32_t i = 0; i < 6; ++i) to[i] = (int8_t)(a.at[i] < -128 ? -128 : a.at[i] > 127 ? 127 : a.at[i]);
}

#endif

/* op: conv2d [5][5][4] -> [3][3][3], 108 MACs, avx512_vnni_integers, about 142 cycles */
CONV_VNNI_TARGET void conv_vnni_00_op(const int8_t *restrict in, int8_t *restrict out, int8_t *restrict scratch,
        int32_t begin, int32_t end)
{
    for (int32_t strip = begin; strip < end; strip += 3) {
        const int32_t rows = end - strip < 3 ? end - strip : 3;
        for (int32_t y = 0; y < (rows - 1) * 2 + 1; ++y) {
            int8_t *line = scratch + y * 20;
            conv_vnni_avx512_vnni_lift_128(line, in + (strip * 2 + y) * 20, 20);
        }
        const int8_t *taps = conv_vnni_00_op_kernel;
        const int32_t *bias = conv_vnni_00_op_bias;
        const int32_t *multiplier = conv_vnni_00_op_multiplier;
        const int64_t *addend = conv_vnni_00_op_addend;
        const int32_t *shift = conv_vnni_00_op_shift;
        int8_t *to = out + strip * 9;
        for (int32_t y = 0; y < rows; ++y) {
            const int8_t *across = scratch + y * 40;
            int8_t *place = to + y * 9;
            for (int32_t tile = 0; tile < 3; tile += 2) {
                const int32_t x = tile < 1 ? tile : 1;
                const int8_t *window = across + x * 8;
                int8_t *at = place + x * 3;
                conv_vnni_avx512_vnni_sums sum00 = conv_vnni_avx512_vnni_load(bias);
                const int8_t *k = taps;
                const conv_vnni_avx512_vnni_bytes w0 = conv_vnni_avx512_vnni_weights_4(k);
                const conv_vnni_avx512_vnni_bytes x0 = conv_vnni_avx512_vnni_repeat_apart_4x2x3x8(window);
                sum00 = conv_vnni_avx512_vnni_dot_4x128(sum00, x0, w0);
                const conv_vnni_avx512_vnni_sums multiplier_now = conv_vnni_avx512_vnni_load(multiplier);
                const conv_vnni_avx512_vnni_sums shift_now = conv_vnni_avx512_vnni_load(shift);
                const conv_vnni_avx512_vnni_wide first_now = conv_vnni_avx512_vnni_load_wide(addend);
                const conv_vnni_avx512_vnni_wide second_now = conv_vnni_avx512_vnni_load_wide(addend + 8);
                const conv_vnni_avx512_vnni_sums sum00_doubled = conv_vnni_avx512_vnni_add(sum00, sum00);
                const conv_vnni_avx512_vnni_sums sum00_sign = conv_vnni_avx512_vnni_shift_right_31(sum00);
                sum00 = conv_vnni_avx512_vnni_add(conv_vnni_avx512_vnni_scaled_1(sum00_doubled, multiplier_now,
                        first_now, second_now), sum00_sign);
                sum00 = conv_vnni_avx512_vnni_shift_right_each(sum00, shift_now);
                conv_vnni_avx512_vnni_store_bytes_m128x127x6(at, sum00);
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

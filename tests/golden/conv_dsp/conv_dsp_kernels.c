/* net: one function a step, made for its shapes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns", "no-ivopts", "no-store-merging", "no-tree-slp-vectorize")
#endif

#include "conv_dsp_private.h"

#if defined(__GNUC__)
#define CONV_DSP_OUTLINED __attribute__((__noinline__))
#else
#define CONV_DSP_OUTLINED
#endif

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)

static inline int32_t conv_dsp_dsp_load_bytes_4(const int8_t *from)
{
    int32_t out;

    __builtin_memcpy(&out, from, sizeof out);
    return out;
}

static inline int32_t conv_dsp_dsp_p_even_bytes(int32_t word)
{
    int32_t out;

    __asm__("sxtb16 %0, %1" : "=r"(out) : "r"(word));
    return out;
}

static inline int32_t conv_dsp_dsp_p_odd_bytes(int32_t word)
{
    int32_t out;

    __asm__("sxtb16 %0, %1, ror #8" : "=r"(out) : "r"(word));
    return out;
}

static inline int32_t conv_dsp_dsp_p_dot(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smlad %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t conv_dsp_dsp_high_add(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smmla %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t conv_dsp_dsp_saturate_8x12(int32_t a)
{
    int32_t out;

    __asm__("ssat %0, #8, %1, asr #12" : "=r"(out) : "r"(a));
    return out;
}

#else /* the same in portable C */

static inline int32_t conv_dsp_dsp_load_bytes_4(const int8_t *from)
{
    return (int32_t)((uint32_t)(uint8_t)from[0] | (uint32_t)(uint8_t)from[1] << 8 | (uint32_t)(uint8_t)from[2] << 16
            | (uint32_t)(uint8_t)from[3] << 24);
}

static inline int32_t conv_dsp_dsp_p_even_bytes(int32_t word)
{
    return (int32_t)((uint32_t)(uint16_t)(int8_t)word | (uint32_t)(int8_t)(word >> 16) << 16);
}

static inline int32_t conv_dsp_dsp_p_odd_bytes(int32_t word)
{
    return (int32_t)((uint32_t)(uint16_t)(int8_t)(word >> 8) | (uint32_t)(int8_t)(word >> 24) << 16);
}

static inline int32_t conv_dsp_dsp_p_dot(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (int16_t)b) + (uint32_t)((a >> 16) * (b >> 16)));
}

static inline int32_t conv_dsp_dsp_high_add(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)(((int64_t)a * b) >> 32) + (uint32_t)sum);
}

static inline int32_t conv_dsp_dsp_saturate_8x12(int32_t a)
{
    a >>= 12;
    return a < -128 ? -128 : a > 127 ? 127 : a;
}

#endif

static inline int64_t conv_dsp_dsp_two(int32_t low, int32_t high)
{
    return (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

static CONV_DSP_OUTLINED void conv_dsp_expand_int8_2x4_once(int64_t *patch, const int8_t *a, const int8_t *b)
{
    const int32_t a0 = conv_dsp_dsp_load_bytes_4(a);
    const int32_t b0 = conv_dsp_dsp_load_bytes_4(b);
    patch[0] = conv_dsp_dsp_two(conv_dsp_dsp_p_even_bytes(a0), conv_dsp_dsp_p_even_bytes(b0));
    patch[1] = conv_dsp_dsp_two(conv_dsp_dsp_p_odd_bytes(a0), conv_dsp_dsp_p_odd_bytes(b0));
}

static CONV_DSP_OUTLINED void conv_dsp_tile_wide_2x4_2_int8_level12_from_89_to_103(const int64_t *patch,
        const int64_t *k, int8_t *to0, int8_t *to1, int32_t blocks)
{
    for (const int8_t *const last = to0 + blocks * 4; to0 != last;) {
        const int64_t start0 = k[0];
        int32_t sum00 = (int32_t)start0;
        int32_t sum01 = (int32_t)(start0 >> 32);
        const int64_t start1 = k[1];
        int32_t sum02 = (int32_t)start1;
        int32_t sum03 = (int32_t)(start1 >> 32);
        k += 2;
        int32_t sum10 = sum00;
        int32_t sum11 = sum01;
        int32_t sum12 = sum02;
        int32_t sum13 = sum03;

        const int64_t *x = patch;
        const int64_t x0 = x[0];
        const int64_t w0 = k[0];
        sum00 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)w0, sum00);
        sum10 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)w0, sum10);
        sum01 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)(w0 >> 32), sum01);
        sum11 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)(w0 >> 32), sum11);
        const int64_t w1 = k[1];
        sum02 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)w1, sum02);
        sum12 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)w1, sum12);
        sum03 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)(w1 >> 32), sum03);
        sum13 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)(w1 >> 32), sum13);
        const int64_t x1 = x[1];
        const int64_t w2 = k[2];
        sum00 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)w2, sum00);
        sum10 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)w2, sum10);
        sum01 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)(w2 >> 32), sum01);
        sum11 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)(w2 >> 32), sum11);
        const int64_t w3 = k[3];
        sum02 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)w3, sum02);
        sum12 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)w3, sum12);
        sum03 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)(w3 >> 32), sum03);
        sum13 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)(w3 >> 32), sum13);
        k += 4;

        const int64_t c0 = k[0];
        const int32_t multiplier0 = (int32_t)c0;
        const int32_t offset0 = (int32_t)(c0 >> 32);
        sum00 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum00, multiplier0, offset0));
        if (sum00 < 89) sum00 = 89;
        if (sum00 > 103) sum00 = 103;
        to0[0] = (int8_t)sum00;
        sum10 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum10, multiplier0, offset0));
        if (sum10 < 89) sum10 = 89;
        if (sum10 > 103) sum10 = 103;
        to1[0] = (int8_t)sum10;
        const int64_t c1 = k[1];
        const int32_t multiplier1 = (int32_t)c1;
        const int32_t offset1 = (int32_t)(c1 >> 32);
        sum01 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum01, multiplier1, offset1));
        if (sum01 < 89) sum01 = 89;
        if (sum01 > 103) sum01 = 103;
        to0[1] = (int8_t)sum01;
        sum11 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum11, multiplier1, offset1));
        if (sum11 < 89) sum11 = 89;
        if (sum11 > 103) sum11 = 103;
        to1[1] = (int8_t)sum11;
        const int64_t c2 = k[2];
        const int32_t multiplier2 = (int32_t)c2;
        const int32_t offset2 = (int32_t)(c2 >> 32);
        sum02 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum02, multiplier2, offset2));
        if (sum02 < 89) sum02 = 89;
        if (sum02 > 103) sum02 = 103;
        to0[2] = (int8_t)sum02;
        sum12 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum12, multiplier2, offset2));
        if (sum12 < 89) sum12 = 89;
        if (sum12 > 103) sum12 = 103;
        to1[2] = (int8_t)sum12;
        const int64_t c3 = k[3];
        const int32_t multiplier3 = (int32_t)c3;
        const int32_t offset3 = (int32_t)(c3 >> 32);
        sum03 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum03, multiplier3, offset3));
        if (sum03 < 89) sum03 = 89;
        if (sum03 > 103) sum03 = 103;
        to0[3] = (int8_t)sum03;
        sum13 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum13, multiplier3, offset3));
        if (sum13 < 89) sum13 = 89;
        if (sum13 > 103) sum13 = 103;
        to1[3] = (int8_t)sum13;
        k += 4;
        to0 += 4;
        to1 += 4;
    }
}

static CONV_DSP_OUTLINED void conv_dsp_tile_wide_2x2_2_int8_level12_from_89_to_103(const int64_t *patch,
        const int64_t *k, int8_t *to0, int8_t *to1, int32_t blocks)
{
    for (int32_t block = 0; block < blocks; ++block) {
        const int64_t start0 = k[0];
        int32_t sum00 = (int32_t)start0;
        int32_t sum01 = (int32_t)(start0 >> 32);
        k += 1;
        int32_t sum10 = sum00;
        int32_t sum11 = sum01;

        const int64_t *x = patch;
        const int64_t x0 = x[0];
        const int64_t w0 = k[0];
        sum00 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)w0, sum00);
        sum10 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)w0, sum10);
        sum01 = conv_dsp_dsp_p_dot((int32_t)x0, (int32_t)(w0 >> 32), sum01);
        sum11 = conv_dsp_dsp_p_dot((int32_t)(x0 >> 32), (int32_t)(w0 >> 32), sum11);
        const int64_t x1 = x[1];
        const int64_t w1 = k[1];
        sum00 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)w1, sum00);
        sum10 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)w1, sum10);
        sum01 = conv_dsp_dsp_p_dot((int32_t)x1, (int32_t)(w1 >> 32), sum01);
        sum11 = conv_dsp_dsp_p_dot((int32_t)(x1 >> 32), (int32_t)(w1 >> 32), sum11);
        k += 2;

        const int64_t c0 = k[0];
        const int32_t multiplier0 = (int32_t)c0;
        const int32_t offset0 = (int32_t)(c0 >> 32);
        sum00 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum00, multiplier0, offset0));
        if (sum00 < 89) sum00 = 89;
        if (sum00 > 103) sum00 = 103;
        to0[0] = (int8_t)sum00;
        sum10 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum10, multiplier0, offset0));
        if (sum10 < 89) sum10 = 89;
        if (sum10 > 103) sum10 = 103;
        to1[0] = (int8_t)sum10;
        const int64_t c1 = k[1];
        const int32_t multiplier1 = (int32_t)c1;
        const int32_t offset1 = (int32_t)(c1 >> 32);
        sum01 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum01, multiplier1, offset1));
        if (sum01 < 89) sum01 = 89;
        if (sum01 > 103) sum01 = 103;
        to0[1] = (int8_t)sum01;
        sum11 = conv_dsp_dsp_saturate_8x12(conv_dsp_dsp_high_add(sum11, multiplier1, offset1));
        if (sum11 < 89) sum11 = 89;
        if (sum11 > 103) sum11 = 103;
        to1[1] = (int8_t)sum11;
        k += 2;
        to0 += 2;
        to1 += 2;
    }
}

/* op: conv2d [5][5][4] -> [5][5][6], 600 MACs, patches_wide, about 2,860 cycles */
void conv_dsp_00_op(const int8_t *in, int8_t *out, int64_t *scratch, int32_t begin, int32_t end)
{
    int64_t *const patch = scratch;
    for (int32_t x = begin; x < end; x += 2) {
        const int32_t next = x + 1 < end ? x + 1 : x;
        int8_t *to0 = out + x * 6;
        int8_t *to1 = to0 + (next - x) * 6;
        const int8_t *a = in + x * 4;
        const int8_t *b = a + (next - x) * 4;
        int64_t *to = patch;
        conv_dsp_expand_int8_2x4_once(to, a, b);
        const int64_t *k = conv_dsp_00_op_kernel;
        conv_dsp_tile_wide_2x4_2_int8_level12_from_89_to_103(patch, k, to0, to1, 1);
        k += 10;
        to0 += 4;
        to1 += 4;
        conv_dsp_tile_wide_2x2_2_int8_level12_from_89_to_103(patch, k, to0, to1, 1);
        k += 5;
        to0 += 2;
        to1 += 2;
    }
}

/* net: one function a step, made for its shapes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns", "no-ivopts", "no-store-merging", "no-tree-slp-vectorize")
#endif

#include "depthwise_dsp_private.h"

#if defined(__GNUC__)
#define DEPTHWISE_DSP_OUTLINED __attribute__((__noinline__))
#else
#define DEPTHWISE_DSP_OUTLINED
#endif

static inline int32_t depthwise_dsp_dsp_load_bytes_3(const int8_t *from)
{
    return (int32_t)((uint32_t)(uint8_t)from[0] | (uint32_t)(uint8_t)from[1] << 8 | (uint32_t)(uint8_t)from[2] << 16);
}

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)

static inline int32_t depthwise_dsp_dsp_p_low_halves(int32_t a, int32_t b)
{
    int32_t out;

    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(out) : "r"(a), "r"(b));
    return out;
}

static inline int32_t depthwise_dsp_dsp_p_high_halves(int32_t a, int32_t b)
{
    int32_t out;

    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(out) : "r"(a), "r"(b));
    return out;
}

static inline int32_t depthwise_dsp_dsp_p_even_bytes(int32_t word)
{
    int32_t out;

    __asm__("sxtb16 %0, %1" : "=r"(out) : "r"(word));
    return out;
}

static inline void depthwise_dsp_dsp_store_two(int32_t *to, int32_t first, int32_t second)
{
    typedef int64_t __attribute__((may_alias)) pair;

    __asm__("strd %1, %2, %0" : "=m"(*(pair *)to) : "r"(first), "r"(second));
}

static inline int32_t depthwise_dsp_dsp_p_odd_bytes(int32_t word)
{
    int32_t out;

    __asm__("sxtb16 %0, %1, ror #8" : "=r"(out) : "r"(word));
    return out;
}

static inline const void *depthwise_dsp_dsp_again(const void *pointer)
{
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}

static inline int32_t depthwise_dsp_dsp_load_two(const int32_t *from, int32_t *second)
{
    int32_t first;

    typedef int64_t __attribute__((may_alias)) pair;

    __asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(*second) : "m"(*(const pair *)from));
    return first;
}

static inline int32_t depthwise_dsp_dsp_p_dot(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smlad %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t depthwise_dsp_dsp_p_high_low(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smlatb %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t depthwise_dsp_dsp_p_low_high(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smlabt %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t depthwise_dsp_dsp_high_add(int32_t a, int32_t b, int32_t sum)
{
    int32_t out;

    __asm__("smmla %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
}

static inline int32_t depthwise_dsp_dsp_saturate_8x11(int32_t a)
{
    int32_t out;

    __asm__("ssat %0, #8, %1, asr #11" : "=r"(out) : "r"(a));
    return out;
}

#else /* the same in portable C */

static inline int32_t depthwise_dsp_dsp_p_low_halves(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)a & 0xffffU) | (uint32_t)b << 16);
}

static inline int32_t depthwise_dsp_dsp_p_high_halves(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)a & 0xffff0000U) | ((uint32_t)b >> 16));
}

static inline int32_t depthwise_dsp_dsp_p_even_bytes(int32_t word)
{
    return (int32_t)((uint32_t)(uint16_t)(int8_t)word | (uint32_t)(int8_t)(word >> 16) << 16);
}

static inline void depthwise_dsp_dsp_store_two(int32_t *to, int32_t first, int32_t second)
{
    to[0] = first;
    to[1] = second;
}

static inline int32_t depthwise_dsp_dsp_p_odd_bytes(int32_t word)
{
    return (int32_t)((uint32_t)(uint16_t)(int8_t)(word >> 8) | (uint32_t)(int8_t)(word >> 24) << 16);
}

static inline const void *depthwise_dsp_dsp_again(const void *pointer)
{
    return pointer;
}

static inline int32_t depthwise_dsp_dsp_load_two(const int32_t *from, int32_t *second)
{
    *second = from[1];
    return from[0];
}

static inline int32_t depthwise_dsp_dsp_p_dot(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (int16_t)b) + (uint32_t)((a >> 16) * (b >> 16)));
}

static inline int32_t depthwise_dsp_dsp_p_high_low(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((a >> 16) * (int16_t)b));
}

static inline int32_t depthwise_dsp_dsp_p_low_high(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (b >> 16)));
}

static inline int32_t depthwise_dsp_dsp_high_add(int32_t a, int32_t b, int32_t sum)
{
    return (int32_t)((uint32_t)(((int64_t)a * b) >> 32) + (uint32_t)sum);
}

static inline int32_t depthwise_dsp_dsp_saturate_8x11(int32_t a)
{
    a >>= 11;
    return a < -128 ? -128 : a > 127 ? 127 : a;
}

#endif

static DEPTHWISE_DSP_OUTLINED void depthwise_dsp_planar_6x7x3_b1b10919(const int8_t *in, int8_t *out, int32_t *scratch,
        const int32_t *constants, int32_t begin, int32_t end)
{
    const int8_t blank[4] = {-29, -29, -29, -29};
    for (int32_t line = 0; line < 15; ++line) {
        int32_t *padded = scratch + line * 8;
        padded[0] = -1835037;
        padded[7] = -1835037;
    }
    for (int32_t c = 0; c < 3; ++c) {
        int32_t *padded = scratch + c * 40;
        for (int32_t x = 0; x < 8; ++x) {
            padded[x + 32] = -1835037;
        }
    }
    if (begin < end) {
        const int8_t *from = in;
        int8_t *to = out;
        const int32_t *stream = constants;
        for (int32_t line = 0; line < 4; ++line) {
            const int32_t upper = line * 2 - 1;
            int32_t *line_to = scratch + line * 8 + 1;
            if (upper >= 0) {
                const int8_t *bytes = from + upper * 3;
                const int32_t upper0 = depthwise_dsp_dsp_load_bytes_3(bytes);
                const int32_t lower0 = depthwise_dsp_dsp_load_bytes_3(bytes + 3);
                const int32_t upper1 = depthwise_dsp_dsp_load_bytes_3(bytes + 21);
                const int32_t lower1 = depthwise_dsp_dsp_load_bytes_3(bytes + 24);
                const int32_t front0 = depthwise_dsp_dsp_p_low_halves(upper0, lower0);
                const int32_t back0 = depthwise_dsp_dsp_p_high_halves(lower0, upper0);
                const int32_t front1 = depthwise_dsp_dsp_p_low_halves(upper1, lower1);
                const int32_t back1 = depthwise_dsp_dsp_p_high_halves(lower1, upper1);
                depthwise_dsp_dsp_store_two(line_to, depthwise_dsp_dsp_p_even_bytes(front0),
                        depthwise_dsp_dsp_p_even_bytes(front1));
                depthwise_dsp_dsp_store_two(line_to + 40, depthwise_dsp_dsp_p_odd_bytes(front0),
                        depthwise_dsp_dsp_p_odd_bytes(front1));
                depthwise_dsp_dsp_store_two(line_to + 80, depthwise_dsp_dsp_p_even_bytes(back0),
                        depthwise_dsp_dsp_p_even_bytes(back1));
                const int32_t upper2 = depthwise_dsp_dsp_load_bytes_3(bytes + 42);
                const int32_t lower2 = depthwise_dsp_dsp_load_bytes_3(bytes + 45);
                const int32_t upper3 = depthwise_dsp_dsp_load_bytes_3(bytes + 63);
                const int32_t lower3 = depthwise_dsp_dsp_load_bytes_3(bytes + 66);
                const int32_t front2 = depthwise_dsp_dsp_p_low_halves(upper2, lower2);
                const int32_t back2 = depthwise_dsp_dsp_p_high_halves(lower2, upper2);
                const int32_t front3 = depthwise_dsp_dsp_p_low_halves(upper3, lower3);
                const int32_t back3 = depthwise_dsp_dsp_p_high_halves(lower3, upper3);
                depthwise_dsp_dsp_store_two(line_to + 2, depthwise_dsp_dsp_p_even_bytes(front2),
                        depthwise_dsp_dsp_p_even_bytes(front3));
                depthwise_dsp_dsp_store_two(line_to + 42, depthwise_dsp_dsp_p_odd_bytes(front2),
                        depthwise_dsp_dsp_p_odd_bytes(front3));
                depthwise_dsp_dsp_store_two(line_to + 82, depthwise_dsp_dsp_p_even_bytes(back2),
                        depthwise_dsp_dsp_p_even_bytes(back3));
                const int32_t upper4 = depthwise_dsp_dsp_load_bytes_3(bytes + 84);
                const int32_t lower4 = depthwise_dsp_dsp_load_bytes_3(bytes + 87);
                const int32_t upper5 = depthwise_dsp_dsp_load_bytes_3(bytes + 105);
                const int32_t lower5 = depthwise_dsp_dsp_load_bytes_3(bytes + 108);
                const int32_t front4 = depthwise_dsp_dsp_p_low_halves(upper4, lower4);
                const int32_t back4 = depthwise_dsp_dsp_p_high_halves(lower4, upper4);
                const int32_t front5 = depthwise_dsp_dsp_p_low_halves(upper5, lower5);
                const int32_t back5 = depthwise_dsp_dsp_p_high_halves(lower5, upper5);
                depthwise_dsp_dsp_store_two(line_to + 4, depthwise_dsp_dsp_p_even_bytes(front4),
                        depthwise_dsp_dsp_p_even_bytes(front5));
                depthwise_dsp_dsp_store_two(line_to + 44, depthwise_dsp_dsp_p_odd_bytes(front4),
                        depthwise_dsp_dsp_p_odd_bytes(front5));
                depthwise_dsp_dsp_store_two(line_to + 84, depthwise_dsp_dsp_p_even_bytes(back4),
                        depthwise_dsp_dsp_p_even_bytes(back5));
            } else {
                const int32_t lower = upper + 1;
                const int8_t *upper_from = upper >= 0 ? from + upper * 3 : blank;
                const int32_t upper_step = upper >= 0 ? 21 : 0;
                const int8_t *lower_from = from + lower * 3;
                for (int32_t x = 0; x < 6; ++x) {
                    const int32_t upper0 = depthwise_dsp_dsp_load_bytes_3(upper_from);
                    const int32_t lower0 = depthwise_dsp_dsp_load_bytes_3(lower_from);
                    const int32_t front0 = depthwise_dsp_dsp_p_low_halves(upper0, lower0);
                    const int32_t back0 = depthwise_dsp_dsp_p_high_halves(lower0, upper0);
                    line_to[0] = depthwise_dsp_dsp_p_even_bytes(front0);
                    line_to[40] = depthwise_dsp_dsp_p_odd_bytes(front0);
                    line_to[80] = depthwise_dsp_dsp_p_even_bytes(back0);
                    upper_from += upper_step;
                    lower_from += 21;
                    line_to += 1;
                }
            }
        }
        for (int32_t c = 0; c < 3; ++c) {
            const int32_t *words = scratch + c * 40;
            int8_t *row = to;
            for (int32_t y = 0; y < 4; ++y) {
                if (y < 3) {
                    const int32_t *word = words;
                    int8_t *pixel = row;
                    for (int32_t x = 0; x < 2; ++x) {
                        const int32_t *k = depthwise_dsp_dsp_again(stream);
                        const int32_t start = k[0];
                        int32_t l0p0w01;
                        const int32_t l0p0w00 = depthwise_dsp_dsp_load_two(k + 1, &l0p0w01);
                        const int32_t l0p0w02 = k[3];
                        int32_t l0p0x1;
                        const int32_t l0p0x0 = depthwise_dsp_dsp_load_two(word, &l0p0x1);
                        int32_t sum00 = depthwise_dsp_dsp_p_dot(l0p0x0, l0p0w00, start);
                        int32_t sum10 = depthwise_dsp_dsp_p_high_low(l0p0x0, l0p0w00, start);
                        sum00 = depthwise_dsp_dsp_p_dot(l0p0x1, l0p0w01, sum00);
                        sum10 = depthwise_dsp_dsp_p_high_low(l0p0x1, l0p0w01, sum10);
                        int32_t sum01 = depthwise_dsp_dsp_p_dot(l0p0x1, l0p0w00, start);
                        int32_t sum11 = depthwise_dsp_dsp_p_high_low(l0p0x1, l0p0w00, start);
                        int32_t l0p0x3;
                        const int32_t l0p0x2 = depthwise_dsp_dsp_load_two(word + 2, &l0p0x3);
                        sum00 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w02, sum00);
                        sum10 = depthwise_dsp_dsp_p_high_low(l0p0x2, l0p0w02, sum10);
                        sum01 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w01, sum01);
                        sum11 = depthwise_dsp_dsp_p_high_low(l0p0x2, l0p0w01, sum11);
                        int32_t sum02 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w00, start);
                        int32_t sum12 = depthwise_dsp_dsp_p_high_low(l0p0x2, l0p0w00, start);
                        sum01 = depthwise_dsp_dsp_p_dot(l0p0x3, l0p0w02, sum01);
                        sum11 = depthwise_dsp_dsp_p_high_low(l0p0x3, l0p0w02, sum11);
                        sum02 = depthwise_dsp_dsp_p_dot(l0p0x3, l0p0w01, sum02);
                        sum12 = depthwise_dsp_dsp_p_high_low(l0p0x3, l0p0w01, sum12);
                        const int32_t l0p0x4 = word[4];
                        sum02 = depthwise_dsp_dsp_p_dot(l0p0x4, l0p0w02, sum02);
                        sum12 = depthwise_dsp_dsp_p_high_low(l0p0x4, l0p0w02, sum12);
                        int32_t l1p0w01;
                        const int32_t l1p0w00 = depthwise_dsp_dsp_load_two(k + 4, &l1p0w01);
                        const int32_t l1p0w02 = k[6];
                        int32_t l1p0x1;
                        const int32_t l1p0x0 = depthwise_dsp_dsp_load_two(word + 8, &l1p0x1);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x0, l1p0w00, sum00);
                        sum10 = depthwise_dsp_dsp_p_dot(l1p0x0, l1p0w00, sum10);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x1, l1p0w01, sum00);
                        sum10 = depthwise_dsp_dsp_p_dot(l1p0x1, l1p0w01, sum10);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x1, l1p0w00, sum01);
                        sum11 = depthwise_dsp_dsp_p_dot(l1p0x1, l1p0w00, sum11);
                        int32_t l1p0x3;
                        const int32_t l1p0x2 = depthwise_dsp_dsp_load_two(word + 10, &l1p0x3);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w02, sum00);
                        sum10 = depthwise_dsp_dsp_p_dot(l1p0x2, l1p0w02, sum10);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w01, sum01);
                        sum11 = depthwise_dsp_dsp_p_dot(l1p0x2, l1p0w01, sum11);
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w00, sum02);
                        sum12 = depthwise_dsp_dsp_p_dot(l1p0x2, l1p0w00, sum12);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x3, l1p0w02, sum01);
                        sum11 = depthwise_dsp_dsp_p_dot(l1p0x3, l1p0w02, sum11);
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x3, l1p0w01, sum02);
                        sum12 = depthwise_dsp_dsp_p_dot(l1p0x3, l1p0w01, sum12);
                        const int32_t l1p0x4 = word[12];
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x4, l1p0w02, sum02);
                        sum12 = depthwise_dsp_dsp_p_dot(l1p0x4, l1p0w02, sum12);
                        int32_t offset;
                        const int32_t multiplier = depthwise_dsp_dsp_load_two(k + 7, &offset);
                        const int32_t below = k[9];
                        sum00 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum00, multiplier, offset
                                - (below & (sum00 >> 31))));
                        pixel[0] = (int8_t)sum00;
                        sum01 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum01, multiplier, offset
                                - (below & (sum01 >> 31))));
                        pixel[21] = (int8_t)sum01;
                        sum02 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum02, multiplier, offset
                                - (below & (sum02 >> 31))));
                        pixel[42] = (int8_t)sum02;
                        sum10 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum10, multiplier, offset
                                - (below & (sum10 >> 31))));
                        pixel[3] = (int8_t)sum10;
                        sum11 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum11, multiplier, offset
                                - (below & (sum11 >> 31))));
                        pixel[24] = (int8_t)sum11;
                        sum12 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum12, multiplier, offset
                                - (below & (sum12 >> 31))));
                        pixel[45] = (int8_t)sum12;
                        word += 3;
                        pixel += 63;
                    }
                } else {
                    const int32_t *word = words;
                    int8_t *pixel = row;
                    for (int32_t x = 0; x < 2; ++x) {
                        const int32_t *k = depthwise_dsp_dsp_again(stream);
                        const int32_t start = k[0];
                        int32_t l0p0w01;
                        const int32_t l0p0w00 = depthwise_dsp_dsp_load_two(k + 1, &l0p0w01);
                        const int32_t l0p0w02 = k[3];
                        int32_t l0p0x1;
                        const int32_t l0p0x0 = depthwise_dsp_dsp_load_two(word, &l0p0x1);
                        int32_t sum00 = depthwise_dsp_dsp_p_dot(l0p0x0, l0p0w00, start);
                        sum00 = depthwise_dsp_dsp_p_dot(l0p0x1, l0p0w01, sum00);
                        int32_t sum01 = depthwise_dsp_dsp_p_dot(l0p0x1, l0p0w00, start);
                        int32_t l0p0x3;
                        const int32_t l0p0x2 = depthwise_dsp_dsp_load_two(word + 2, &l0p0x3);
                        sum00 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w02, sum00);
                        sum01 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w01, sum01);
                        int32_t sum02 = depthwise_dsp_dsp_p_dot(l0p0x2, l0p0w00, start);
                        sum01 = depthwise_dsp_dsp_p_dot(l0p0x3, l0p0w02, sum01);
                        sum02 = depthwise_dsp_dsp_p_dot(l0p0x3, l0p0w01, sum02);
                        const int32_t l0p0x4 = word[4];
                        sum02 = depthwise_dsp_dsp_p_dot(l0p0x4, l0p0w02, sum02);
                        int32_t l1p0w01;
                        const int32_t l1p0w00 = depthwise_dsp_dsp_load_two(k + 4, &l1p0w01);
                        const int32_t l1p0w02 = k[6];
                        int32_t l1p0x1;
                        const int32_t l1p0x0 = depthwise_dsp_dsp_load_two(word + 8, &l1p0x1);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x0, l1p0w00, sum00);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x1, l1p0w01, sum00);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x1, l1p0w00, sum01);
                        int32_t l1p0x3;
                        const int32_t l1p0x2 = depthwise_dsp_dsp_load_two(word + 10, &l1p0x3);
                        sum00 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w02, sum00);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w01, sum01);
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x2, l1p0w00, sum02);
                        sum01 = depthwise_dsp_dsp_p_low_high(l1p0x3, l1p0w02, sum01);
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x3, l1p0w01, sum02);
                        const int32_t l1p0x4 = word[12];
                        sum02 = depthwise_dsp_dsp_p_low_high(l1p0x4, l1p0w02, sum02);
                        int32_t offset;
                        const int32_t multiplier = depthwise_dsp_dsp_load_two(k + 7, &offset);
                        const int32_t below = k[9];
                        sum00 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum00, multiplier, offset
                                - (below & (sum00 >> 31))));
                        pixel[0] = (int8_t)sum00;
                        sum01 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum01, multiplier, offset
                                - (below & (sum01 >> 31))));
                        pixel[21] = (int8_t)sum01;
                        sum02 = depthwise_dsp_dsp_saturate_8x11(depthwise_dsp_dsp_high_add(sum02, multiplier, offset
                                - (below & (sum02 >> 31))));
                        pixel[42] = (int8_t)sum02;
                        word += 3;
                        pixel += 63;
                    }
                }
                words += 8;
                row += 6;
            }
            to += 1;
            stream += 10;
        }
    }
}

/* op: depthwise_conv2d [6][7][3] -> [6][7][3], 1,134 MACs, planar, about 2,647 cycles */
void depthwise_dsp_00_op(const int8_t *in, int8_t *out, int32_t *scratch, int32_t begin, int32_t end)
{
    depthwise_dsp_planar_6x7x3_b1b10919(in, out, scratch, depthwise_dsp_00_op_stream, begin, end);
}

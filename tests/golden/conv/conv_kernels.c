/* tiny conv: one function a step, made for its shapes. */
/*
 * Floats are computed as written, each operation rounded once, whatever the compiler's flags: so they have the same
 * bits everywhere. No flag is needed; those that could not be undone are refused.
 */

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ARM_FP_FAST) || defined(_M_FP_FAST)
#error "float operations must be done as written: no -ffast-math, and none of the flags that it stands for"
#endif
/* 16 is 0 for floats: it speaks of narrower ones. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "float operations must be done as written and in float: on 32-bit x86 give -msse2 -mfpmath=sse"
#endif

/* No product becomes one with a sum. IAR's and other compilers follow C99; Microsoft's has a spelling of its own. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang fp reassociate(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include "conv_private.h"

/* The bits of a float. A union, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t conv_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

/* The float of some bits. */
static inline float conv_float_of(uint32_t bits)
{
    union { float value; uint32_t bits; } u;
    u.bits = bits;
    return u.value;
}

/*
 * a * b, rounded before anything is added to it. Clang's -ffp-contract=fast heeds no pragma, hence the empty assembly
 * where its processor has an instruction for a * b + c.
 */
#if defined(__GNUC__)
__attribute__((unused)) /* vectors need it in portable C only */
#endif
static inline float conv_product(float a, float b)
{
    float product = a * b;

#if !defined(__clang__)
#elif defined(__i386__) || defined(__x86_64__)
#if defined(__FMA__) || defined(__FMA4__) || defined(NN_TARGET_FMA)
    __asm__("" : "+x"(product));
#endif
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#elif defined(__arm__)
#if defined(__ARM_FEATURE_FMA)
    __asm__("" : "+t"(product));
#endif
#elif defined(__riscv)
#if defined(__riscv_flen)
    __asm__("" : "+f"(product));
#endif
#else
    __asm__("" : "+m"(product));
#endif
    return product;
}

/*
 * e^x. Largest error: 0.899 ULP.
 *
 * x = k ln2 + r with |r| <= ln2/2; e^r = 1 + r + r^2 q(r). The part of k ln2 below the first word is subtracted last,
 * so that r itself need not be rounded. 2^k is multiplied in two parts, of which only the last rounds, as it may be no
 * normal number; so all x but those without a result of their own take as long.
 */
static float conv_expf(float x)
{
    const uint32_t magnitude = conv_bits_of(x) & 0x7fffffff;
    float shifted, k, high, low, r, q, y;
    uint32_t exponent, half;

    if (magnitude > 0x42d00000) { /* |x| > 104, or NaN */
        if (magnitude > 0x7f800000)
            return conv_float_of(0x7fc00000);
        return x > 0 ? conv_float_of(0x7f800000) : 0.0f;
    }
    shifted = conv_product(x, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = x - conv_product(k, 0x1.62e4p-1f); /* exact */
    low = conv_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.124492p-7f + conv_product(r, 0x1.6afe14p-10f);
    q = 0x1.555826p-5f + conv_product(r, q);
    q = 0x1.555482p-3f + conv_product(r, q);
    q = 0x1.fffffcp-2f + conv_product(r, q);
    y = 1.0f + (high + (conv_product(conv_product(r, r), q) - low));
    exponent = conv_bits_of(shifted) + 254; /* k + 254 in the low 9 bits: the sum of two parts' */
    half = exponent >> 1;
    return conv_product(conv_product(y, conv_float_of(half << 23)), conv_float_of((exponent - half) << 23));
}

/* conv: conv2d [4][4][1] -> [4][4][2], 288 MACs, scalar, about 2,572 cycles */
void conv_00_conv_op(const float *in, float *out, float *scratch, int32_t begin, int32_t end)
{
    for (int32_t y = begin; y < end; ++y) {
        const int32_t top = y - 1;
        const int32_t ky_begin = top < 0 ? -top : 0;
        const int32_t ky_end = 4 - top < 3 ? 4 - top : 3;
        for (int32_t x = 0; x < 4; x += 2) {
            const int32_t left = x - 1;
            const float *from = in;
            int32_t first = top * 4 + left;
            int32_t line = 4;
            if (left < 0 || left > 0) {
                const int32_t before = left < 0 ? -left : 0;
                const int32_t real_end = 4 - left < 4 ? (4 - left) : 4;
                for (int32_t ky = ky_begin; ky < ky_end; ++ky) {
                    const int32_t row = first + ky * 4;
                    float *copy = scratch + ky * 4;
                    int32_t i = 0;
                    for (; i < before && i < real_end; ++i) {
                        copy[i] = 0;
                    }
                    for (; i < real_end; ++i) {
                        copy[i] = in[row + i];
                    }
                    for (; i < 4; ++i) {
                        copy[i] = 0;
                    }
                }
                from = scratch;
                first = 0;
                line = 4;
            }
            float *to = out + (y * 4 + x) * 2;
            const float *taps = conv_00_conv_op_kernel;
            const float *bias = conv_00_conv_op_bias;
            float sum00 = *bias;
            float sum01 = bias[1];
            float sum10 = *bias;
            float sum11 = bias[1];
            for (int32_t ky = ky_begin; ky < ky_end; ++ky) {
                const float *row = from + (first + ky * line);
                const float *k = taps + ky * 6;
                for (int32_t i = 0; i < 3; ++i) {
                    float w0 = *k;
                    float w1 = k[1];
                    float x0 = *row;
                    sum00 += conv_product(x0, w0);
                    sum01 += conv_product(x0, w1);
                    float x1 = row[1];
                    sum10 += conv_product(x1, w0);
                    sum11 += conv_product(x1, w1);
                    row += 1;
                    k += 2;
                }
            }
            if (sum00 < 0.0f) sum00 = 0.0f;
            *to = sum00;
            if (sum01 < 0.0f) sum01 = 0.0f;
            to[1] = sum01;
            if (sum10 < 0.0f) sum10 = 0.0f;
            to[2] = sum10;
            if (sum11 < 0.0f) sum11 = 0.0f;
            to[3] = sum11;
            taps += 18;
            bias += 2;
            to += 2;
        }
    }
}

/* pool: pool2d [4][4][2] -> [2][2][2], scalar, about 138 cycles */
void conv_01_pool_op(const float *in, float *out, int32_t begin, int32_t end)
{
    for (int32_t y = begin; y < end; ++y) {
        const int32_t top = y * 2;
        for (int32_t x = 0; x < 2; ++x) {
            const int32_t left = x * 2;
            float *to = out + (y * 2 + x) * 2;
            for (int32_t c = 0; c < 2; ++c) {
                const float *from = in + (top * 4 + left) * 2 + c;
                float result = *from;
                if (from[2] > result) result = from[2];
                if (from[8] > result) result = from[8];
                if (from[10] > result) result = from[10];
                to[c] = result;
            }
        }
    }
}

/* head: dense [8] -> [3], 24 MACs, scalar, about 172 cycles */
void conv_02_head_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    if (begin < end) {
        const float *k = conv_02_head_op_kernel;
        const float *bias = conv_02_head_op_bias;
        const float *from = in;
        float *to = out;
        float sum00 = *bias;
        float sum01 = bias[1];
        float sum02 = bias[2];
        for (int32_t i = 0; i < 8; ++i) {
            float w0 = *k;
            float w1 = k[1];
            float w2 = k[2];
            float x0 = from[i];
            sum00 += conv_product(x0, w0);
            sum01 += conv_product(x0, w1);
            sum02 += conv_product(x0, w2);
            k += 3;
        }
        *to = sum00;
        to[1] = sum01;
        to[2] = sum02;
    }
}

/* choice: softmax [3] -> [3], scalar, about 201 cycles */
void conv_03_choice_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    if (begin < end) {
        const float *from = in;
        float *to = out;
        float largest = from[0];
        if (from[0] > largest) largest = from[0];
        if (from[1] > largest) largest = from[1];
        if (from[2] > largest) largest = from[2];
        float sum = 0.0f;
        for (int32_t i = 0; i < 3; ++i) {
            const float power = conv_expf(from[i] - largest);
            to[i] = power;
            sum += power;
        }
        const float share = 1.0f / sum;
        for (int32_t i = 0; i < 3; ++i) {
            to[i] = conv_product(to[i], share);
        }
    }
}

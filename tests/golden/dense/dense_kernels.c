/* tiny dense: one function a step, made for its shapes. */
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

#include "dense_private.h"

/* The bits of a float. A union, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t dense_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

/* The float of some bits. */
static inline float dense_float_of(uint32_t bits)
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
static inline float dense_product(float a, float b)
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
 * 1 / (1 + e^ax) for ax >= 0, less *excess, which is tiny beside it: the common part of logisticf and tanhf.
 *
 * As in expf, e^ax = 2^k + 2^k p. The rounding error of the denominator d is known: 1/(d + error) = y - y^2 error.
 * For large ax it is e^-ax, less its square; its last product alone rounds, as results may be subnormal.
 */
static float dense_logisticpartsf(float ax, float *excess)
{
    const int large = !(ax < 16.25f); /* else 1 + 2^k is exact */
    float shifted, k, high, low, r, q, p, scale, part, d, error, y;

    if (large) {
        if (!(ax < 104.0f))
            return *excess = ax == ax ? 0.0f : dense_float_of(0x7fc00000);
        ax = -ax;
    }
    shifted = dense_product(ax, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = ax - dense_product(k, 0x1.62e4p-1f); /* exact */
    low = dense_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.124492p-7f + dense_product(r, 0x1.6afe14p-10f);
    q = 0x1.555826p-5f + dense_product(r, q);
    q = 0x1.555482p-3f + dense_product(r, q);
    q = 0x1.fffffcp-2f + dense_product(r, q);
    p = high + (dense_product(dense_product(r, r), q) - low);
    if (large) {
        y = dense_product(dense_product(1.0f + p, dense_float_of((dense_bits_of(shifted) + 191) << 23)), 0x1p-64f);
        *excess = dense_product(y, y);
        return y;
    }
    scale = dense_float_of((dense_bits_of(shifted) + 127) << 23);
    part = dense_product(scale, p);
    scale += 1.0f;
    d = scale + part;
    error = part - (d - scale);
    y = 1.0f / d;
    *excess = dense_product(dense_product(y, y), error);
    return y;
}

/*
 * The hyperbolic tangent of x. Largest error: 0.879 ULP.
 *
 * |x| < 9/16: x + x^3 p(x^2); beyond, 1 - 2/(e^(2x) + 1); from 9.011 on it rounds to 1.
 */
static float dense_tanhf(float x)
{
    const uint32_t sign = dense_bits_of(x) & 0x80000000;
    const uint32_t magnitude = dense_bits_of(x) ^ sign;
    const float ax = dense_float_of(magnitude);
    float u, p, part, excess;

    if (magnitude < 0x3f100000) {
        u = dense_product(ax, ax);
        p = 0x1.580568p-6f + dense_product(u, -0x1.940204p-8f);
        p = -0x1.b9049cp-5f + dense_product(u, p);
        p = 0x1.110c5ap-3f + dense_product(u, p);
        p = -0x1.555548p-2f + dense_product(u, p);
        p = ax + dense_product(ax, dense_product(u, p));
    } else if (magnitude < 0x41102cb4) {
        part = dense_product(2.0f, dense_logisticpartsf(ax + ax, &excess));
        p = 1.0f - part;
        p += ((1.0f - p) - part) + (excess + excess);
    } else {
        if (magnitude > 0x7f800000)
            return dense_float_of(0x7fc00000);
        p = 1.0f;
    }
    return dense_float_of(dense_bits_of(p) | sign);
}

/* first: dense [3] -> [2], 6 MACs, scalar, about 62 cycles */
void dense_00_first_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    if (begin < end) {
        const float *k = dense_00_first_op_kernel;
        const float *bias = dense_00_first_op_bias;
        const float *from = in;
        float *to = out;
        float sum00 = *bias;
        float sum01 = bias[1];
        for (int32_t i = 0; i < 3; ++i) {
            float w0 = *k;
            float w1 = k[1];
            float x0 = from[i];
            sum00 += dense_product(x0, w0);
            sum01 += dense_product(x0, w1);
            k += 2;
        }
        if (sum00 < 0.0f) sum00 = 0.0f;
        if (sum00 > 6.0f) sum00 = 6.0f;
        *to = sum00;
        if (sum01 < 0.0f) sum01 = 0.0f;
        if (sum01 > 6.0f) sum01 = 6.0f;
        to[1] = sum01;
    }
}

/* bent: activation [2] -> [2], scalar, about 162 cycles */
void dense_01_bent_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    for (int32_t i0 = begin; i0 < end; ++i0) {
        float x = in[i0];
        out[i0] = dense_tanhf(x);
    }
}

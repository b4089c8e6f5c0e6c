/* net: one function a step, made for its shapes. */
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

#include "lstm_private.h"

/* The bits of a float. A union, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t lstm_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

/* The float of some bits. */
static inline float lstm_float_of(uint32_t bits)
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
static inline float lstm_product(float a, float b)
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
static float lstm_logisticpartsf(float ax, float *excess)
{
    const int large = !(ax < 16.25f); /* else 1 + 2^k is exact */
    float shifted, k, high, low, r, q, p, scale, part, d, error, y;

    if (large) {
        if (!(ax < 104.0f))
            return *excess = ax == ax ? 0.0f : lstm_float_of(0x7fc00000);
        ax = -ax;
    }
    shifted = lstm_product(ax, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = ax - lstm_product(k, 0x1.62e4p-1f); /* exact */
    low = lstm_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.124492p-7f + lstm_product(r, 0x1.6afe14p-10f);
    q = 0x1.555826p-5f + lstm_product(r, q);
    q = 0x1.555482p-3f + lstm_product(r, q);
    q = 0x1.fffffcp-2f + lstm_product(r, q);
    p = high + (lstm_product(lstm_product(r, r), q) - low);
    if (large) {
        y = lstm_product(lstm_product(1.0f + p, lstm_float_of((lstm_bits_of(shifted) + 191) << 23)), 0x1p-64f);
        *excess = lstm_product(y, y);
        return y;
    }
    scale = lstm_float_of((lstm_bits_of(shifted) + 127) << 23);
    part = lstm_product(scale, p);
    scale += 1.0f;
    d = scale + part;
    error = part - (d - scale);
    y = 1.0f / d;
    *excess = lstm_product(lstm_product(y, y), error);
    return y;
}

/* 1 / (1 + e^-x), the sigmoid, without overflow. Largest error: 1.31 ULP. */
static float lstm_logisticf(float x)
{
    float excess, part, y;

    part = lstm_logisticpartsf(lstm_float_of(lstm_bits_of(x) & 0x7fffffff), &excess);
    if (!(x > 0))
        return part - excess;
    y = 1.0f - part;
    return y + (((1.0f - y) - part) + excess);
}

/*
 * The hyperbolic tangent of x. Largest error: 0.879 ULP.
 *
 * |x| < 9/16: x + x^3 p(x^2); beyond, 1 - 2/(e^(2x) + 1); from 9.011 on it rounds to 1.
 */
static float lstm_tanhf(float x)
{
    const uint32_t sign = lstm_bits_of(x) & 0x80000000;
    const uint32_t magnitude = lstm_bits_of(x) ^ sign;
    const float ax = lstm_float_of(magnitude);
    float u, p, part, excess;

    if (magnitude < 0x3f100000) {
        u = lstm_product(ax, ax);
        p = 0x1.580568p-6f + lstm_product(u, -0x1.940204p-8f);
        p = -0x1.b9049cp-5f + lstm_product(u, p);
        p = 0x1.110c5ap-3f + lstm_product(u, p);
        p = -0x1.555548p-2f + lstm_product(u, p);
        p = ax + lstm_product(ax, lstm_product(u, p));
    } else if (magnitude < 0x41102cb4) {
        part = lstm_product(2.0f, lstm_logisticpartsf(ax + ax, &excess));
        p = 1.0f - part;
        p += ((1.0f - p) - part) + (excess + excess);
    } else {
        if (magnitude > 0x7f800000)
            return lstm_float_of(0x7fc00000);
        p = 1.0f;
    }
    return lstm_float_of(lstm_bits_of(p) | sign);
}

/* op: lstm [1][1], [2], [2] -> [2], [2], 24 MACs, scalar, about 942 cycles */
void lstm_00_op(const float *in0, const float *in1, const float *in2, float *out0, float *out1, float *scratch,
        int32_t begin, int32_t end)
{
    if (begin == 0) {
        if (out0 != in1) {
            *out0 = *in1;
            out0[1] = in1[1];
        }
        if (out1 != in2) {
            *out1 = *in2;
            out1[1] = in2[1];
        }
    }
    if (begin < end) {
        const float *x = in0;
        for (int32_t unit = 0; unit < 2; ++unit) {
            float let_in0 = lstm_00_op_kernel[unit * 4];
            float forget0 = lstm_00_op_kernel[unit * 4 + 1];
            float candidate0 = lstm_00_op_kernel[unit * 4 + 2];
            float let_out0 = lstm_00_op_kernel[unit * 4 + 3];
            const float *k = lstm_00_op_kernel + unit * 4;
            float value = x[0];
            let_in0 += lstm_product(value, *k);
            forget0 += lstm_product(value, k[1]);
            candidate0 += lstm_product(value, k[2]);
            let_out0 += lstm_product(value, k[3]);
            k += 4;
            const float *k_2 = lstm_00_op_recurrent + unit * 8;
            for (int32_t i = 0; i < 2; ++i) {
                float value_2 = out0[i];
                let_in0 += lstm_product(value_2, *k_2);
                forget0 += lstm_product(value_2, k_2[1]);
                candidate0 += lstm_product(value_2, k_2[2]);
                let_out0 += lstm_product(value_2, k_2[3]);
                k_2 += 4;
            }
            float entry = lstm_logisticf(let_in0);
            float keep = lstm_logisticf(forget0);
            float exit = lstm_logisticf(let_out0);
            float proposal = lstm_tanhf(candidate0);
            float old = out1[unit];
            float cell = lstm_product(keep, old);
            cell += lstm_product(entry, proposal);
            out1[unit] = cell;
            float shown = lstm_tanhf(cell);
            scratch[unit] = lstm_product(exit, shown);
        }
        *out0 = *scratch;
        out0[1] = scratch[1];
    }
}

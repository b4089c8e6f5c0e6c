/* tiny dense: one function a step, made for its shapes. */
#include "dense_private.h"

/* The two views of a float: its value and its bits. Used by every function of the library. */

#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0)
#error "float operations must be done as written and in float: no -ffast-math, and on 32-bit x86 -msse2 -mfpmath=sse"
#endif

/* Unions, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t dense_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

static inline float dense_float_of(uint32_t bits)
{
    union { float value; uint32_t bits; } u;
    u.bits = bits;
    return u.value;
}

/*
 * x * 2^n, rounded once. Exact unless the result is subnormal or too large.
 */
static float dense_scalbnf(float x, int n)
{
    /* Steps that stay normal until the last: the 24 bits kept in hand make the last product the only rounded one. */
    if (n > 127) {
        x *= 0x1p127f;
        n -= 127;
        if (n > 127) {
            x *= 0x1p127f;
            n = n - 127 > 127 ? 127 : n - 127;
        }
    } else if (n < -126) {
        x *= 0x1p-102f;
        n += 102;
        if (n < -126) {
            x *= 0x1p-102f;
            n = n + 102 < -126 ? -126 : n + 102;
        }
    }
    x *= dense_float_of((uint32_t)(n + 127) << 23);
    return x == x ? x : dense_float_of(0x7fc00000);
}

/*
 * e^x. Largest error: 0.899 ULP.
 *
 * x = k ln2 + r with |r| <= ln2/2; e^r = 1 + r + r^2 q(r). The part of k ln2 below the first word is subtracted last,
 * so that r itself need not be rounded.
 */
static float dense_expf(float x)
{
    const uint32_t magnitude = dense_bits_of(x) & 0x7fffffff;
    float shifted, k, high, low, r, q, y;

    if (magnitude > 0x42ae0000) { /* |x| > 87: 2^k alone may be no normal number */
        if (magnitude > 0x7f800000)
            return dense_float_of(0x7fc00000);
        if (x > 0x1.62e42ep6f)
            return dense_float_of(0x7f800000);
        if (x < -0x1.9fe368p6f)
            return 0.0f;
    }
    shifted = x * 0x1.715476p+0f + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = x - k * 0x1.62e4p-1f; /* exact */
    low = k * 0x1.7f7d1cp-20f;
    r = high - low;
    q = 0x1.124492p-7f + r * 0x1.6afe14p-10f;
    q = 0x1.555826p-5f + r * q;
    q = 0x1.555482p-3f + r * q;
    q = 0x1.fffffcp-2f + r * q;
    y = 1.0f + (high + (r * r * q - low));
    if (magnitude > 0x42ae0000)
        return dense_scalbnf(y, (int)k);
    return y * dense_float_of((dense_bits_of(shifted) + 127) << 23);
}

/*
 * 1 / (1 + e^ax) for ax >= 0, less *excess, which is tiny beside it: the common part of logisticf and tanhf.
 *
 * As in expf, e^ax = 2^k + 2^k p. The rounding error of the denominator d is known: 1/(d + error) = y - y^2 error.
 */
static float dense_logisticpartsf(float ax, float *excess)
{
    float shifted, k, high, low, r, q, scale, part, d, error, y;

    if (ax < 16.25f) { /* so 1 + 2^k is exact */
        shifted = ax * 0x1.715476p+0f + 0x1.8p23f; /* rounds to an integer, left in the low bits */
        k = shifted - 0x1.8p23f;
        high = ax - k * 0x1.62e4p-1f; /* exact */
        low = k * 0x1.7f7d1cp-20f;
        r = high - low;
        q = 0x1.124492p-7f + r * 0x1.6afe14p-10f;
        q = 0x1.555826p-5f + r * q;
        q = 0x1.555482p-3f + r * q;
        q = 0x1.fffffcp-2f + r * q;
        scale = dense_float_of((dense_bits_of(shifted) + 127) << 23);
        part = scale * (high + (r * r * q - low));
        scale += 1.0f;
        d = scale + part;
        error = part - (d - scale);
        y = 1.0f / d;
        *excess = y * y * error;
    } else {
        y = dense_expf(-ax);
        *excess = y * y;
    }
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
        u = ax * ax;
        p = 0x1.580568p-6f + u * -0x1.940204p-8f;
        p = -0x1.b9049cp-5f + u * p;
        p = 0x1.110c5ap-3f + u * p;
        p = -0x1.555548p-2f + u * p;
        p = ax + ax * (u * p);
    } else if (magnitude < 0x41102cb4) {
        part = 2.0f * dense_logisticpartsf(ax + ax, &excess);
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
    for (int32_t block = begin; block < end; ++block) {
        const float *k = dense_00_first_op_kernel + block * 12;
        const float *bias = dense_00_first_op_bias + block * 4;
        const float *from = in;
        float *to = out + block * 4;
        float sum00 = bias[0];
        float sum01 = bias[1];
        for (int32_t i = 0; i < 3; ++i) {
            const float w0 = *k;
            const float w1 = k[1];
            const float x0 = from[i];
            sum00 += x0 * w0;
            sum01 += x0 * w1;
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

/* bent: activation [2] -> [2], scalar, about 92 cycles */
void dense_01_bent_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    for (int32_t i = begin; i < end; ++i) {
        const float x = in[i];
        out[i] = dense_tanhf(x);
    }
}

/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * e^x - 1. Largest error: 0.982 ULP.
 *
 * As in expf, e^x = 2^k (1 + r + c); the result is 2^k ((1 - 2^-k) + r + c), where both sums but the last keep their
 * rounding errors.
 */
float nn_expm1f(float x)
{
    const uint32_t magnitude = nn_bits_of(x) & 0x7fffffff;
    float shifted, k, high, low, r, q, one, start, sum, rest;
    uint32_t exponent;

    if (magnitude - 0x33000000 > 0x42b20000 - 0x33000000) { /* |x| < 2^-25, zeros of either sign too, > 89, or NaN */
        if (magnitude < 0x33000000)
            return x;
        if (magnitude > 0x7f800000)
            return nn_float_of(0x7fc00000);
        return x > 0 ? nn_float_of(0x7f800000) : -1.0f;
    }
    if (x < -0x1.154246p+4f) /* -17.3 */
        return -1.0f;
    shifted = nn_product(x, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = x - nn_product(k, 0x1.62e4p-1f); /* exact */
    low = nn_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.6d7b7cp-10f + nn_product(r, 0x1.a1a93p-13f);
    q = 0x1.11108ap-7f + nn_product(r, q);
    q = 0x1.5554a8p-5f + nn_product(r, q);
    q = 0x1.555556p-3f + nn_product(r, q);
    q = 0x1p-1f + nn_product(r, q);
    exponent = nn_bits_of(shifted) << 23; /* of 2^k, as an increment */
    one = k < 64.0f ? nn_float_of(0x3f800000 - exponent) : 0.0f; /* in units of 2^k */
    start = 1.0f - one;
    sum = start + high;
    rest = ((1.0f - start) - one) + (high - (sum - start));
    sum += rest + (nn_product(nn_product(r, r), q) - low);
    return nn_product(nn_product(sum, nn_float_of(0x3f000000 + exponent)), 2.0f); /* 2^k itself may be no float */
}

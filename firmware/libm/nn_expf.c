/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * e^x. Largest error: 0.899 ULP.
 *
 * x = k ln2 + r with |r| <= ln2/2; e^r = 1 + r + r^2 q(r). The part of k ln2 below the first word is subtracted last,
 * so that r itself need not be rounded. 2^k is multiplied in two parts, of which only the last rounds, as it may be no
 * normal number; so all x but those without a result of their own take as long.
 */
float nn_expf(float x)
{
    const uint32_t magnitude = nn_bits_of(x) & 0x7fffffff;
    float shifted, k, high, low, r, q, y;
    uint32_t exponent, half;

    if (magnitude > 0x42d00000) { /* |x| > 104, or NaN */
        if (magnitude > 0x7f800000)
            return nn_float_of(0x7fc00000);
        return x > 0 ? nn_float_of(0x7f800000) : 0.0f;
    }
    shifted = nn_product(x, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = x - nn_product(k, 0x1.62e4p-1f); /* exact */
    low = nn_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.124492p-7f + nn_product(r, 0x1.6afe14p-10f);
    q = 0x1.555826p-5f + nn_product(r, q);
    q = 0x1.555482p-3f + nn_product(r, q);
    q = 0x1.fffffcp-2f + nn_product(r, q);
    y = 1.0f + (high + (nn_product(nn_product(r, r), q) - low));
    exponent = nn_bits_of(shifted) + 254; /* k + 254 in the low 9 bits: the sum of two parts' */
    half = exponent >> 1;
    return nn_product(nn_product(y, nn_float_of(half << 23)), nn_float_of((exponent - half) << 23));
}

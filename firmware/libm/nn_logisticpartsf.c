/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * 1 / (1 + e^ax) for ax >= 0, less *excess, which is tiny beside it: the common part of logisticf and tanhf.
 *
 * As in expf, e^ax = 2^k + 2^k p. The rounding error of the denominator d is known: 1/(d + error) = y - y^2 error.
 * For large ax it is e^-ax, less its square; its last product alone rounds, as results may be subnormal.
 */
float nn_logisticpartsf(float ax, float *excess)
{
    const int large = !(ax < 16.25f); /* else 1 + 2^k is exact */
    float shifted, k, high, low, r, q, p, scale, part, d, error, y;

    if (large) {
        if (!(ax < 104.0f))
            return *excess = ax == ax ? 0.0f : nn_float_of(0x7fc00000);
        ax = -ax;
    }
    shifted = nn_product(ax, 0x1.715476p+0f) + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    high = ax - nn_product(k, 0x1.62e4p-1f); /* exact */
    low = nn_product(k, 0x1.7f7d1cp-20f);
    r = high - low;
    q = 0x1.124492p-7f + nn_product(r, 0x1.6afe14p-10f);
    q = 0x1.555826p-5f + nn_product(r, q);
    q = 0x1.555482p-3f + nn_product(r, q);
    q = 0x1.fffffcp-2f + nn_product(r, q);
    p = high + (nn_product(nn_product(r, r), q) - low);
    if (large) {
        y = nn_product(nn_product(1.0f + p, nn_float_of((nn_bits_of(shifted) + 191) << 23)), 0x1p-64f);
        *excess = nn_product(y, y);
        return y;
    }
    scale = nn_float_of((nn_bits_of(shifted) + 127) << 23);
    part = nn_product(scale, p);
    scale += 1.0f;
    d = scale + part;
    error = part - (d - scale);
    y = 1.0f / d;
    *excess = nn_product(nn_product(y, y), error);
    return y;
}

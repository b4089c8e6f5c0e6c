/* uses: nn_scalbnf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * 2^x. Largest error: 0.854 ULP.
 *
 * x = k + r with |r| <= 1/2, exactly; 2^r = 1 + r/2 + r p(r). The product r/2 is exact, which leaves the rounding to
 * the smaller terms.
 */
float nn_exp2f(float x)
{
    const uint32_t magnitude = nn_bits_of(x) & 0x7fffffff;
    float shifted, k, r, p, y;

    if (magnitude > 0x42fc0000) { /* |x| > 126: 2^k alone may be no normal number */
        if (magnitude > 0x7f800000)
            return nn_float_of(0x7fc00000);
        if (x >= 128.0f)
            return nn_float_of(0x7f800000);
        if (x <= -150.0f)
            return 0.0f;
    }
    shifted = x + 0x1.8p23f; /* rounds to an integer, left in the low bits */
    k = shifted - 0x1.8p23f;
    r = x - k;
    p = 0x1.5f3e52p-10f + nn_product(r, 0x1.41fbbep-13f);
    p = 0x1.3b2d4cp-7f + nn_product(r, p);
    p = 0x1.c6aee8p-5f + nn_product(r, p);
    p = 0x1.ebfbdcp-3f + nn_product(r, p);
    p = 0x1.8b90c2p-3f + nn_product(r, p);
    y = 1.0f + (nn_product(r, 0.5f) + nn_product(r, p));
    if (magnitude > 0x42fc0000)
        return nn_scalbnf(y, (int)k);
    return nn_product(y, nn_float_of((nn_bits_of(shifted) + 127) << 23));
}

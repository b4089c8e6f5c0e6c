/* uses: nn_logisticpartsf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The hyperbolic tangent of x. Largest error: 0.879 ULP.
 *
 * |x| < 9/16: x + x^3 p(x^2); beyond, 1 - 2/(e^(2x) + 1); from 9.011 on it rounds to 1.
 */
float nn_tanhf(float x)
{
    const uint32_t sign = nn_bits_of(x) & 0x80000000;
    const uint32_t magnitude = nn_bits_of(x) ^ sign;
    const float ax = nn_float_of(magnitude);
    float u, p, part, excess;

    if (magnitude < 0x3f100000) {
        u = nn_product(ax, ax);
        p = 0x1.580568p-6f + nn_product(u, -0x1.940204p-8f);
        p = -0x1.b9049cp-5f + nn_product(u, p);
        p = 0x1.110c5ap-3f + nn_product(u, p);
        p = -0x1.555548p-2f + nn_product(u, p);
        p = ax + nn_product(ax, nn_product(u, p));
    } else if (magnitude < 0x41102cb4) {
        part = nn_product(2.0f, nn_logisticpartsf(ax + ax, &excess));
        p = 1.0f - part;
        p += ((1.0f - p) - part) + (excess + excess);
    } else {
        if (magnitude > 0x7f800000)
            return nn_float_of(0x7fc00000);
        p = 1.0f;
    }
    return nn_float_of(nn_bits_of(p) | sign);
}

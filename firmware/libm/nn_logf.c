/* uses: nn_logpartsf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The natural logarithm of x. Largest error: 0.955 ULP.
 */
float nn_logf(float x)
{
    uint32_t bits = nn_bits_of(x);
    int32_t k = 0;

    if (bits - 0x00800000 >= 0x7f000000) { /* not a positive normal number */
        if (x == 0)
            return nn_float_of(0xff800000);
        if (bits == 0x7f800000)
            return x;
        if (bits > 0x7f800000)
            return nn_float_of(0x7fc00000);
        bits = nn_bits_of(nn_product(x, 0x1p23f));
        k = -23;
    }
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)), whose lower end has the bits 0x3f3504f3 */
    bits += 0x3f800000 - 0x3f3504f3;
    k += (int32_t)(bits >> 23) - 127;
    return nn_logpartsf(nn_float_of((bits & 0x7fffff) + 0x3f3504f3) - 1.0f, k, 0.0f);
}

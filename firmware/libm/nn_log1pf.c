/* uses: nn_logpartsf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * log(1 + x). Largest error: 0.986 ULP.
 *
 * u = 1 + x loses c = x - (u - 1), which is put back as log(u + c) = log(u) + c/u.
 */
float nn_log1pf(float x)
{
    const uint32_t magnitude = nn_bits_of(x) & 0x7fffffff;
    float u, c;
    uint32_t bits;
    int32_t k;

    if (magnitude < 0x33800000) /* |x| < 2^-24, zeros of either sign too */
        return x;
    if (!(x > -1.0f && magnitude < 0x7f800000)) {
        if (x == -1.0f)
            return nn_float_of(0xff800000);
        return x > 0 ? x : nn_float_of(0x7fc00000);
    }
    u = 1.0f + x;
    bits = nn_bits_of(u) + (0x3f800000 - 0x3f3504f3);
    k = (int32_t)(bits >> 23) - 127;
    if (k == 0)
        return nn_logpartsf(x, 0, 0.0f);
    c = (x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x)) / u;
    return nn_logpartsf(nn_float_of((bits & 0x7fffff) + 0x3f3504f3) - 1.0f, k, c);
}

/* uses: leading_zeros */
#include "../libm/nn_bits.h"
#include "nn_numeric.h"

/*
 * x times a scale as a float, rounded once, by integers only: for |x| up to 2^17 and a scale of `mantissa` *
 * 2^(exponent - 167), with 24 bits of mantissa and an exponent of 32 to 250.
 */
float nn_real_bits(int32_t x, uint32_t mantissa, int32_t exponent)
{
    const uint32_t size = x < 0 ? 0 - (uint32_t)x : (uint32_t)x;
    const int32_t zeros = nn_leading_zeros(size | 1), above = exponent + 13 - zeros;
    const uint64_t product = (uint64_t)(size << zeros) * (mantissa << 8);
    const int32_t full = (int32_t)(product >> 63);
    const uint32_t upper = (uint32_t)((product << (1 - full)) >> 32) | ((uint32_t)product != 0);
    const uint32_t digits = (upper >> 8) + ((upper & 0xff) + (upper >> 8 & 1) > 0x80);

    if (x == 0)
        return 0.0f;
    return nn_float_of((x < 0 ? 0x80000000 : 0) | (((uint32_t)(above + full) << 23) + digits));
}

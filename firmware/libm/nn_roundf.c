/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The integer nearest to x, halves away from zero. Exact.
 */
float nn_roundf(float x)
{
    const uint32_t bits = nn_bits_of(x);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint32_t sign = bits & 0x80000000;
    uint32_t fraction;

    if (exponent >= 127 + 23) /* an integer already, infinite, or not a number */
        return x == x ? x : nn_float_of(0x7fc00000);
    if (exponent < 127)
        return nn_float_of(exponent == 126 ? sign | 0x3f800000 : sign);
    /* Adding one half may carry into the exponent, which is right. */
    fraction = 0x7fffff >> (exponent - 127);
    return nn_float_of((bits + (0x400000u >> (exponent - 127))) & ~fraction);
}

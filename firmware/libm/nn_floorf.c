/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The largest integer not above x. Exact.
 */
float nn_floorf(float x)
{
    const uint32_t bits = nn_bits_of(x);
    const uint32_t exponent = bits >> 23 & 0xff;
    uint32_t fraction;

    if (exponent >= 127 + 23) /* an integer already, infinite, or not a number */
        return x == x ? x : nn_float_of(0x7fc00000);
    if (exponent < 127)
        return bits >> 31 && x != 0 ? -1.0f : nn_float_of(bits & 0x80000000);
    fraction = 0x7fffff >> (exponent - 127);
    if (!(bits & fraction))
        return x;
    /* Adding a unit of the last integer place may carry into the exponent, which is right. */
    return nn_float_of((bits + (bits >> 31 ? fraction : 0)) & ~fraction);
}

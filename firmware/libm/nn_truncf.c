/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * x rounded to an integer toward zero. Exact.
 */
float nn_truncf(float x)
{
    const uint32_t bits = nn_bits_of(x);
    const uint32_t exponent = bits >> 23 & 0xff;

    if (exponent >= 127 + 23) /* an integer already, infinite, or not a number */
        return x == x ? x : nn_float_of(0x7fc00000);
    if (exponent < 127)
        return nn_float_of(bits & 0x80000000);
    return nn_float_of(bits & ~(0x7fffffu >> (exponent - 127)));
}

/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The square root of x, correctly rounded, in integers.
 *
 * Newton's iteration for 1/sqrt(m) gives sqrt(m) to about 27 bits; the exact remainder of the 24-bit root then decides.
 */
static uint32_t nn_sqrtf_high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

float nn_sqrtf(float x)
{
    uint32_t bits = nn_bits_of(x);
    int32_t exponent = -127, rest;
    uint32_t m, y, root;
    int i;

    if (bits - 0x00800000 >= 0x7f000000) { /* not a positive normal number */
        if (x == 0 || bits == 0x7f800000)
            return x;
        if (bits > 0x7f800000)
            return nn_float_of(0x7fc00000);
        bits = nn_bits_of(nn_product(x, 0x1p24f));
        exponent -= 24;
    }
    exponent += (int32_t)(bits >> 23);
    /* x = m 2^exponent, exponent even, m in [1, 4) with 30 fraction bits */
    m = ((bits & 0x7fffff) | 0x800000) << (exponent & 1 ? 8 : 7);
    exponent -= exponent & 1;
    /* y -> y (3 - m y^2) / 2 in 31 fraction bits, from the best straight line, 1.06639 - 0.15234 m */
    y = 0x887f5869 - nn_sqrtf_high(m, 0x4dffa03c);
    for (i = 0; i < 4; i++)
        y = nn_sqrtf_high(y, (0x30000000 - nn_sqrtf_high(m, nn_sqrtf_high(y, y))) << 2) << 1;
    root = (nn_sqrtf_high(m, y) + 32) >> 6;
    rest = (int32_t)((m << 16) - root * root); /* of 46 fraction bits, the upper ones zero */
    if (rest > (int32_t)root)
        root++;
    else if (rest <= -(int32_t)root)
        root--;
    return nn_float_of(((uint32_t)(exponent / 2 + 126) << 23) + root);
}

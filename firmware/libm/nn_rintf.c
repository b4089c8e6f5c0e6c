/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The integer nearest to x, halves to the even one. Exact.
 */
float nn_rintf(float x)
{
    const uint32_t bits = nn_bits_of(x);
    const uint32_t sign = bits & 0x80000000;
    const float magnitude = nn_float_of(bits ^ sign);

    if (!(magnitude < 0x1p23f)) /* an integer already, infinite, or not a number */
        return x == x ? x : nn_float_of(0x7fc00000);
    /* The sum has no bits below one, so the addition itself rounds; the sign is put back for zero's sake. */
    return nn_float_of(nn_bits_of((magnitude + 0x1p23f) - 0x1p23f) | sign);
}

/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The larger of x and y; the other one if one is not a number; -0 counts as below +0. Exact.
 */
float nn_fmaxf(float x, float y)
{
    if (x != x)
        return y == y ? y : nn_float_of(0x7fc00000);
    if (y != y)
        return x;
    if (x == y) /* equal, or zeros of either sign */
        return nn_bits_of(x) >> 31 ? y : x;
    return x > y ? x : y;
}

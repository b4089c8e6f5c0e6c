/* uses: none */
#include "nn_numeric.h"

/* A 48-bit sum times a 16-bit multiplier times 2^(shift - 15), rounded once, halves up. */
int32_t nn_requantize64(int64_t acc, int32_t multiplier, int32_t shift)
{
    return (int32_t)((acc * multiplier + ((int64_t)1 << (14 - shift))) >> (15 - shift));
}

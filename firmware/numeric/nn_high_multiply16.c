/* uses: none */
#include "nn_numeric.h"

/* a * b / 2^15 to the nearest integer, halves up; only -1 times -1 does not fit. */
int32_t nn_high_multiply16(int32_t a, int32_t b)
{
    const int32_t product = (a * b + 16384) >> 15;

    return product > 32767 ? 32767 : product;
}

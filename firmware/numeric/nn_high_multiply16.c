/* uses: none */
#include "nn_numeric.h"

/* a * b / 2^15 to the nearest integer, halves up, for numbers of 16 bits. */
int32_t nn_high_multiply16(int32_t a, int32_t b)
{
    return (a * b + 16384) >> 15;
}

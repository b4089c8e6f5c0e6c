/* uses: high_multiply16 */
#include "nn_numeric.h"

/* 2 / (1 + a) for an a from 0 to 1 with 15 bits after the point; the result has 13. Three Newton-Raphson steps. */
int32_t nn_reciprocal_of_sum16(int32_t a)
{
    const int32_t half = (a + 32768) >> 1;
    int32_t x = 23130 + nn_high_multiply16(half, -15420);

    x += nn_high_multiply16(x, 8192 - nn_high_multiply16(half, x)) * 4;
    x += nn_high_multiply16(x, 8192 - nn_high_multiply16(half, x)) * 4;
    return x + nn_high_multiply16(x, 8192 - nn_high_multiply16(half, x)) * 4;
}

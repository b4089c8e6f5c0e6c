/* uses: halves_away16, high_multiply16, shift_left16 */
#include "nn_numeric.h"

/* 2 / (1 + a) for an a from 0 to 1 with 15 bits after the point; the result has 13. Three Newton-Raphson steps. */
int32_t nn_reciprocal_of_sum16(int32_t a)
{
    const int32_t half = nn_halves_away16(a + 32767, 1);
    int32_t x = 23130 + nn_high_multiply16(half, -15420);

    for (int32_t i = 0; i < 3; ++i)
        x += nn_shift_left16(nn_high_multiply16(x, 8192 - nn_high_multiply16(half, x)), 2);
    return x;
}

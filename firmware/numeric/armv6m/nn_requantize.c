/* uses: high_multiply */
#include "../nn_numeric.h"

/*
 * acc * multiplier * 2^(shift - 31), rounded twice: to the nearest integer after the product, halves up, and again
 * after a shift to the right, halves away from zero. A shift to the left keeps the low 32 bits.
 */
int32_t nn_requantize(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t widened = shift > 0 ? (int32_t)((uint32_t)acc << shift) : acc;
    const int32_t high = nn_high_multiply(widened, multiplier);

    return shift >= 0 ? high : (((high + (high >> 31)) >> (-shift - 1)) + 1) >> 1;
}

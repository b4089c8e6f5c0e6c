/* uses: none */
#include "nn_numeric.h"

/* x / 2^amount, to nearest, halves away from zero; for amounts from 0 to 62 and results of 32 bits. */
int32_t nn_rounding_shift(int64_t x, int32_t amount)
{
    if (amount == 0)
        return (int32_t)x;
    return (int32_t)((x + ((int64_t)1 << (amount - 1)) - (x < 0)) >> amount);
}

/* uses: none */
#include "nn_numeric.h"

/* x / 2^amount, halves away from zero; for amounts from 1 to 30. */
int32_t nn_halves_away16(int32_t x, int32_t amount)
{
    return (x + ((int32_t)1 << (amount - 1)) - (x < 0)) >> amount;
}

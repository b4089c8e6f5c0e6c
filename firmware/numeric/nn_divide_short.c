/* uses: none */
#include "nn_numeric.h"

/* x / by, rounded down; `inverse` is 2^32 / by, rounded down, and at most 2^32 - 1. */
uint32_t nn_divide_short(uint32_t x, uint32_t by, uint32_t inverse)
{
    (void)inverse;
    return x / by;
}

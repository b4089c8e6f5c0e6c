/* uses: none */
#include "nn_numeric.h"

/* x / by, rounded down, for quotients below 2^16 and `by` up to 2^16. */
uint32_t nn_quotient16(uint32_t x, uint32_t by)
{
    return x / by;
}

/* uses: nn_logistic16 */
#include "nn_numeric.h"

/*
 * The logistic function of x / 4096 for |x| <= 2^20, in 2^-15, as a gate: where nn_logistic16 no longer changes this
 * is 0 or 2^15, so that what an open gate lets through loses nothing.
 */
int32_t nn_gate16(const uint16_t *table, int32_t x)
{
    if (x * 3 >= 255 << 9)
        return 1 << 15;
    return x * 3 <= -(255 << 9) ? 0 : nn_logistic16(table, x, 3, 0);
}

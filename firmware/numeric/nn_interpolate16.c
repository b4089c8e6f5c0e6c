/* uses: none */
#include "nn_numeric.h"

/* A function of 16 bits from 513 entries: the upper 9 bits choose a pair of them, the lower 7 a place between. */
int32_t nn_interpolate16(const int16_t *table, int32_t x)
{
    const int16_t *entry = table + 256 + (x >> 7);

    return entry[0] + (((entry[1] - entry[0]) * (x & 127) + 64) >> 7);
}

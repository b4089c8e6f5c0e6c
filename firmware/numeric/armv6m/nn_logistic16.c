/* uses: hold */
#include "../nn_numeric.h"

/*
 * The logistic function of x * multiplier / 2^shift, 2^-9 steps of the table's 1/24 each; the result is in 2^-15.
 * The table holds logistic(i / 24) * 2^16 for i from 0 to 255, behind which the result no longer changes.
 */
int32_t nn_logistic16(const uint16_t *table, int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t half = shift > 0 ? (int32_t)1 << (shift - 1) : 0;
    const int32_t far = multiplier >> 15; /* above 16 bits there is no shift */
    const int32_t place = far ? nn_hold((int64_t)x * multiplier, 1 << 30) : (x * multiplier + half) >> shift;
    const int32_t size = place < 0 ? -place : place;
    int32_t result = 0x7fff << 10;

    if (size < 255 << 9) {
        const int32_t index = size >> 9, fraction = size & 511;
        result = table[index] * 512 + fraction * (table[index + 1] - table[index]);
    }
    return (place >= 0 ? result + 512 : (1 << 25) - result + 511) >> 10;
}

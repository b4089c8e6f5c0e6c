/* uses: hold */
#include "../nn_numeric.h"

/*
 * tanh of x * multiplier / 2^shift, from the table of the logistic function (see nn_logistic16) at twice the
 * argument, 2^-8 steps of the table each; the result is in 2^-15.
 */
int32_t nn_tanh16(const uint16_t *table, int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t half = shift > 0 ? (int32_t)1 << (shift - 1) : 0;
    const int32_t far = multiplier >> 15; /* above 16 bits there is no shift */
    const int32_t place = far ? nn_hold((int64_t)x * multiplier, 1 << 30) : (x * multiplier + half) >> shift;
    const int32_t size = place < 0 ? -place : place;
    const int32_t one = 1 << 23;
    int32_t result = 0xffff << 8;

    if (size < 255 << 8) {
        const int32_t index = size >> 8, fraction = size & 255;
        result = table[index] * 256 + fraction * (table[index + 1] - table[index]);
    }
    return (place >= 0 ? result - one + 128 : one - result + 127) >> 8;
}

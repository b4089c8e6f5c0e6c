/* uses: none */
#include "nn_numeric.h"

/*
 * The logistic function of x / 2^20 in 2^-20, from 0 to 2^20, for |x| < 2^27. The table holds logistic(i / 16) * 2^30
 * for i from 0 to 256; from the nearest entry s it is Taylor's series to the square, with the derivatives s (1 - s)
 * and s (1 - s) (1 - 2 s).
 */
int32_t nn_fine_sigmoid(const int32_t *table, int32_t x)
{
    const int32_t limit = 16 << 20, positive = x < 0 ? -x : x;
    const int32_t size = positive < limit ? positive : limit;
    const int32_t index = (size + (1 << 15)) >> 16, rest = size - index * 65536;
    const int64_t near = table[index];
    const int64_t slope = (near * ((1 << 30) - near)) >> 30;
    const int64_t bend = (slope * ((1 << 29) - near)) >> 30;
    const int64_t tilted = slope + ((rest * bend) >> 20);
    const int32_t result = (int32_t)((near + ((rest * tilted) >> 20) + (1 << 9)) >> 10);

    return x < 0 ? (1 << 20) - result : result;
}

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
    const int32_t near = table[index]; /* all of these fit 32 bits, and each product is a long one of two such */
    const int32_t slope = (int32_t)(((int64_t)near * ((1 << 30) - near)) >> 30);
    const int32_t bend = (int32_t)(((int64_t)slope * ((1 << 29) - near)) >> 30);
    const int32_t tilted = slope + (int32_t)(((int64_t)rest * bend) >> 20);
    const int32_t result = (near + (int32_t)(((int64_t)rest * tilted) >> 20) + (1 << 9)) >> 10;

    return x < 0 ? (1 << 20) - result : result;
}

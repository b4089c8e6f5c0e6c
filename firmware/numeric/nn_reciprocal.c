/* uses: high_multiply */
#include "nn_numeric.h"

/*
 * 2^31 / (x / 2^(32 - headroom)) for an x with `headroom` zeros before its first bit: the mantissa of 1 / x, in
 * (2^30, 2^31). Three Newton-Raphson steps from 48/17 - 32/17 * x/2, with two bits before the point.
 */
int32_t nn_reciprocal(uint32_t x, int32_t headroom)
{
    const int32_t half = (int32_t)((x << headroom) >> 1);
    int32_t result = 1515870810 + nn_high_multiply(half, -1010580540);

    for (int32_t i = 0; i < 3; ++i) {
        const int32_t error = ((int32_t)1 << 29) - nn_high_multiply(half, result);
        result += nn_high_multiply(result, error) * 4;
    }
    return result < (int32_t)1 << 30 ? result * 2 : INT32_MAX;
}

/* uses: none */
#include "nn_numeric.h"

/*
 * acc * multiplier / 2^shift, rounded once: halves up, or away from zero where `away` is 1; held within 2^30. For
 * |acc| < 2^36 and a multiplier of up to 53 bits: the product is formed in two parts of which neither overflows.
 */
int32_t nn_scale_once(int64_t acc, int64_t multiplier, int32_t shift, int32_t away)
{
    const int64_t low = (acc * (multiplier & 0x3ffffff) - (acc < 0 ? away : 0)) >> 26;
    const int64_t scaled = (acc * (multiplier >> 26) + low + ((int64_t)1 << (shift - 27))) >> (shift - 26);
    const int32_t limit = (int32_t)1 << 30;

    return scaled > limit ? limit : scaled < -limit ? -limit : (int32_t)scaled;
}

/* uses: none */
#include "nn_numeric.h"

/*
 * A sum times a multiplier / 2^right, for `right` from 1 to 62, rounded once, halves up; the product must fit 63 bits.
 * Held within 2^30, where every result is saturated anyway, so that a zero point can be added without another thought.
 */
int32_t nn_scale_wide(int64_t acc, int32_t multiplier, int32_t right)
{
    const int32_t limit = (int32_t)1 << 30;
    const int64_t scaled = (acc * multiplier + ((int64_t)1 << (right - 1))) >> right;
    const int32_t low = (int32_t)scaled;

    if (low != scaled)
        return scaled < 0 ? -limit : limit;
    return low < -limit ? -limit : low > limit ? limit : low;
}

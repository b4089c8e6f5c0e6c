/* uses: none */
#include "nn_numeric.h"

/*
 * A sum times a multiplier / 2^right, for `right` from 1 to 62, rounded once, halves up; the product must fit 63 bits.
 * Held within 2^30, where every result is saturated anyway, so that a zero point can be added without another thought.
 */
int32_t nn_scale_wide(int64_t acc, int32_t multiplier, int32_t right)
{
    const int64_t limit = (int64_t)1 << 30;
    const int64_t scaled = (acc * multiplier + ((int64_t)1 << (right - 1))) >> right;

    return (int32_t)(scaled < -limit ? -limit : scaled > limit ? limit : scaled);
}

/* uses: quotient16 */
#include "nn_numeric.h"

/*
 * a / b * multiplier / 2^right, rounded once, halves away from zero, held within 2^16; for |a| and |b| up to 2^16 and
 * `right` up to 47. Dividing by zero gives that limit with the sign of a, and zero for 0 / 0.
 *
 * The numerator, to which half of the divisor is added before the shift, has 48 bits; 32 of them are enough for a
 * quotient below the limit.
 */
int32_t nn_divide(int32_t a, int32_t b, int32_t multiplier, int32_t right)
{
    const uint32_t above = (uint32_t)(a < 0 ? -a : a), below = (uint32_t)(b < 0 ? -b : b);
    const uint64_t half = ((uint64_t)below << right) >> 1;
    const uint64_t shifted = ((uint64_t)above * (uint32_t)multiplier + half) >> right;
    int32_t size = (int32_t)1 << 16;

    if (a == 0)
        return 0;
    if ((uint32_t)(shifted >> 16) < below)
        size = (int32_t)nn_quotient16((uint32_t)shifted, below);
    return (a < 0) != (b < 0) ? -size : size;
}

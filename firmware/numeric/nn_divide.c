/* uses: none */
#include "nn_numeric.h"

/*
 * a / b * multiplier / 2^right, rounded once, halves away from zero, held within 2^30; for |a| and |b| up to 2^16 and
 * `right` up to 47. Dividing by zero gives that limit with the sign of a, and zero for 0 / 0.
 *
 * The numerator, to which half of the divisor is added before the shift, has 48 bits. Processors divide 32 at most, so
 * it is divided in two digits, of which the lower has 16 bits; the upper is zero but for results that saturate.
 */
int32_t nn_divide(int32_t a, int32_t b, int32_t multiplier, int32_t right)
{
    const uint32_t above = (uint32_t)(a < 0 ? -a : a), below = (uint32_t)(b < 0 ? -b : b);
    const uint64_t half = ((uint64_t)below << right) >> 1;
    const uint64_t shifted = ((uint64_t)above * (uint32_t)multiplier + half) >> right;
    const uint32_t upper = (uint32_t)(shifted >> 16), lower = (uint32_t)shifted & 0xffff;
    int32_t size = (int32_t)1 << 30;

    if (a == 0)
        return 0;
    if (b != 0) {
        const uint32_t digit = upper < below ? 0 : upper / below;
        const uint32_t rest = (upper - digit * below) << 16 | lower;
        if (digit < (uint32_t)1 << 14)
            size = (int32_t)(digit << 16 | rest / below);
    }
    return (a < 0) != (b < 0) ? -size : size;
}

/* uses: none */
#include "nn_numeric.h"

/*
 * a / b * multiplier / 2^right, rounded once, halves away from zero, held within 2^30; for |a| and |b| up to 2^16 and
 * `right` up to 47. Dividing by zero gives that limit with the sign of a, and zero for 0 / 0.
 */
int32_t nn_divide(int32_t a, int32_t b, int32_t multiplier, int32_t right)
{
    const int64_t limit = (int64_t)1 << 30;
    const int64_t above = (int64_t)(a < 0 ? -a : a) * multiplier;
    const int64_t below = (int64_t)(b < 0 ? -b : b) * ((int64_t)1 << right);
    int64_t size;

    if (a == 0)
        return 0;
    size = b == 0 ? limit : (above + below / 2) / below;
    if (size > limit)
        size = limit;
    return (int32_t)((a < 0) != (b < 0) ? -size : size);
}

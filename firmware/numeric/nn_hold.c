/* uses: none */
#include "nn_numeric.h"

/* x within -limit ... limit. */
int32_t nn_hold(int64_t x, int32_t limit)
{
    const int32_t low = (int32_t)x; /* all of it, but for numbers that are far out */

    if (low != x)
        return x < 0 ? -limit : limit;
    return low < -limit ? -limit : low > limit ? limit : low;
}

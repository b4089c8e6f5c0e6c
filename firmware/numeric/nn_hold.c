/* uses: none */
#include "nn_numeric.h"

/* x within -limit ... limit. */
int32_t nn_hold(int64_t x, int32_t limit)
{
    return x < -limit ? -limit : x > limit ? limit : (int32_t)x;
}

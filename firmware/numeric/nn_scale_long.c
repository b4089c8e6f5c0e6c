/* uses: none */
#include "nn_numeric.h"

/* A sum times a multiplier / 2^right, for `right` from 1 to 62, rounded once, halves up; it fits 32 bits. */
int32_t nn_scale_long(int64_t acc, int32_t multiplier, int32_t right)
{
    return (int32_t)((acc * multiplier + ((int64_t)1 << (right - 1))) >> right);
}

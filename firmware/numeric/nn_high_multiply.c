/* uses: none */
#include "nn_numeric.h"

/* a * b / 2^31 to the nearest integer, halves up. Not for two times -2^31, whose product does not fit. */
int32_t nn_high_multiply(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

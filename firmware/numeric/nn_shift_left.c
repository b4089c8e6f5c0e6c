/* uses: none */
#include "nn_numeric.h"

/* x * 2^amount, saturated to 32 bits; for amounts from 0 to 31. */
int32_t nn_shift_left(int32_t x, int32_t amount)
{
    const int64_t shifted = (int64_t)x * ((int64_t)1 << amount);

    return (int32_t)(shifted < INT32_MIN ? INT32_MIN : shifted > INT32_MAX ? INT32_MAX : shifted);
}

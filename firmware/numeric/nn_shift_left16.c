/* uses: none */
#include "nn_numeric.h"

/* x * 2^amount, saturated to 16 bits; for amounts from 0 to 14. */
int32_t nn_shift_left16(int32_t x, int32_t amount)
{
    const int32_t shifted = x * ((int32_t)1 << amount);

    return shifted < -32768 ? -32768 : shifted > 32767 ? 32767 : shifted;
}

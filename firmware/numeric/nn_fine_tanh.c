/* uses: nn_fine_sigmoid */
#include "nn_numeric.h"

/* tanh of x / 2^20 in 2^-20, from -2^20 to 2^20, for |x| < 2^26; by nn_fine_sigmoid's table. */
int32_t nn_fine_tanh(const int32_t *table, int32_t x)
{
    const int32_t size = 2 * nn_fine_sigmoid(table, x < 0 ? -2 * x : 2 * x) - (1 << 20);

    return x < 0 ? -size : size;
}

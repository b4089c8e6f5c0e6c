/* uses: nn_fine_sigmoid */
#include "nn_numeric.h"

/* tanh of x / 2^20 in 2^-20, from -2^20 to 2^20, for |x| < 2^26; by nn_fine_sigmoid's table. */
int32_t nn_fine_tanh(const int32_t *table, int32_t x)
{
    return 2 * nn_fine_sigmoid(table, 2 * x) - (1 << 20);
}

/* uses: exp_negative16, reciprocal_of_sum16 */
#include "nn_numeric.h"

/* tanh(a) with 15 bits after the point: (1 - exp(-2a)) / (1 + exp(-2a)), the doubling by one more bit before. */
int32_t nn_gate_tanh16(int32_t a, int32_t before)
{
    const int32_t power = nn_exp_negative16(a < 0 ? a : -a, before + 1);
    const int32_t above = (nn_reciprocal_of_sum16(power) - 8192) * 4;
    const int32_t size = above > 32767 ? 32767 : above;

    if (a == 0)
        return 0;
    return a > 0 ? size : -size;
}

/* uses: exp_negative16, reciprocal_of_sum16 */
#include "nn_numeric.h"

/* 1 / (1 + exp(-a)) with 15 bits after the point, for a 16-bit a with `before` bits before the point. */
int32_t nn_gate_logistic16(int32_t a, int32_t before)
{
    const int32_t power = nn_exp_negative16(a < 0 ? a : -a, before);
    const int32_t twice = nn_reciprocal_of_sum16(power) * 2;
    const int32_t positive = twice > 32767 ? 32767 : twice;

    if (a == 0)
        return 16384;
    return a > 0 ? positive : 32767 - positive;
}

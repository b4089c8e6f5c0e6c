/* uses: high_multiply, leading_zeros, reciprocal */
#include "nn_numeric.h"

/*
 * log(x / 2^19) * 2^26 for an x from 2^19 on. x is brought next to the fourth root of 1/2, without bits before the
 * point, by a power of the root of 2: of two numbers an odd and an even power apart, the smaller one. Near there, the
 * logarithm is a quotient of polynomials.
 */
int32_t nn_log_of_sum(int32_t x)
{
    const int32_t root = 1518500250, centre = 1805811301, quarter = (int32_t)1 << 23;
    const int32_t zeros = nn_leading_zeros((uint32_t)x) - 1;
    const int32_t zeros_odd = nn_leading_zeros((uint32_t)nn_high_multiply(x, root)) - 1;
    const uint32_t even = (uint32_t)nn_high_multiply((int32_t)((uint32_t)x << zeros), root) << 1;
    const uint32_t odd = (uint32_t)x << zeros_odd;
    const uint32_t nearer = even < odd ? even : odd;
    const int32_t power_even = (11 - zeros) * ((int32_t)1 << 25) + quarter;
    const int32_t power_odd = (12 - zeros_odd) * ((int32_t)1 << 25) - quarter;
    const int32_t near = nearer > INT32_MAX ? INT32_MAX : (int32_t)nearer;
    const int32_t away = 2 * (near - centre), square = nn_high_multiply(away, away);
    const int32_t above =
        nn_high_multiply(away, near) + nn_high_multiply(nn_high_multiply(away, square), 117049297);
    const int32_t slope = 1057819769 + away + nn_high_multiply(127690142, square);
    const int32_t middle = (int32_t)(((uint32_t)near + (uint32_t)centre + 1) >> 1);
    const int32_t below = nn_high_multiply(middle, slope) + nn_high_multiply(638450708, away);
    const int32_t inverse = nn_reciprocal((uint32_t)below | (uint32_t)1 << 31, 0);
    const int32_t rest = nn_high_multiply((above + 32 - (above < 0)) >> 6, inverse);

    return 2 * (nn_high_multiply(power_even > power_odd ? power_even : power_odd, 1488522236) + rest);
}

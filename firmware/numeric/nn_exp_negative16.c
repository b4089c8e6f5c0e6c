/* uses: high_multiply16 */
#include "nn_numeric.h"

/* exp(a) for a in [-1/4, 0) with 15 bits after the point: a series around -1/8, up to the fourth power. */
static int32_t nn_exp_near_zero16(int32_t a)
{
    const int32_t x = a + 4096;
    const int32_t x2 = nn_high_multiply16(x, x);
    const int32_t x3 = nn_high_multiply16(x2, x);
    const int32_t x4_over_4 = (nn_high_multiply16(x2, x2) + 2) >> 2;
    const int32_t higher = nn_high_multiply16(x4_over_4 + x3, 10923);

    return 28918 + nn_high_multiply16(x + ((higher + x2 + 1) >> 1), 28918);
}

/*
 * exp(a) with 15 bits after the point, for an a from -32768 to 0 with `before` of its 16 bits before the point, at
 * most 9. The part within a quarter goes through the series, every bit above it multiplies by exp(-2^n).
 */
int32_t nn_exp_negative16(int32_t a, int32_t before)
{
    const int32_t quarter = (int32_t)8192 >> before;
    const int32_t rest = (a & (quarter - 1)) - quarter;
    const int32_t quarters = (rest - a) >> (13 - before);
    int32_t result = nn_exp_near_zero16(rest * ((int32_t)1 << before));

    if (quarters & 1)
        result = nn_high_multiply16(result, 25520);
    if (quarters & 2)
        result = nn_high_multiply16(result, 19875);
    if (quarters & 4)
        result = nn_high_multiply16(result, 12055);
    if (quarters & 8)
        result = nn_high_multiply16(result, 4435);
    if (quarters & 16)
        result = nn_high_multiply16(result, 600);
    if (quarters & 32)
        result = nn_high_multiply16(result, 11);
    if (quarters >= 64)
        result = 0;
    return a == 0 ? 32767 : result;
}

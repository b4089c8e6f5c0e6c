/* uses: halves_away16, high_multiply16, shift_left16 */
#include "nn_numeric.h"

/* exp(a) for a in [-1/4, 0) with 15 bits after the point: a series around -1/8, up to the fourth power. */
static int32_t nn_exp_near_zero16(int32_t a)
{
    const int32_t x = a + 4096;
    const int32_t x2 = nn_high_multiply16(x, x);
    const int32_t x3 = nn_high_multiply16(x2, x);
    const int32_t x4_over_4 = nn_halves_away16(nn_high_multiply16(x2, x2), 2);
    const int32_t higher = nn_high_multiply16(x4_over_4 + x3, 10923);
    const int32_t tail = nn_halves_away16(higher + x2, 1);

    return nn_shift_left16(28918 + nn_high_multiply16(x + tail, 28918), 0);
}

/*
 * exp(a) with 15 bits after the point, for an a from -32768 to 0 with `before` of its 16 bits before the point, at
 * most 9. The part within a quarter goes through the series, every bit above it multiplies by exp(-2^n).
 */
int32_t nn_exp_negative16(int32_t a, int32_t before)
{
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int32_t after = 15 - before;
    const int32_t quarter = (int32_t)1 << (after - 2);
    const int32_t rest = (a & (quarter - 1)) - quarter;
    const int32_t remaining = rest - a;
    int32_t result = nn_exp_near_zero16(nn_shift_left16(rest, before));

    for (int32_t n = -2; n < before && n <= 4; ++n) {
        if (remaining & ((int32_t)1 << (after + n)))
            result = nn_high_multiply16(result, factors[n + 2]);
    }
    if (before > 5 && a < -((int32_t)1 << (20 - before)))
        result = 0;
    return a == 0 ? 32767 : result;
}

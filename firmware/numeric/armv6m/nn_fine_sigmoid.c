/* uses: none */
#include "../nn_numeric.h"

/* a * b / 2^32, rounded down; by products of halves. */
static inline int32_t nn_upper_half(int32_t a, int32_t b)
{
    const int32_t a_high = a >> 16, a_low = a & 0xffff, b_high = b >> 16, b_low = b & 0xffff;
    const int32_t first = a_high * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);
    const int32_t second = a_low * b_high + (first & 0xffff);

    return a_high * b_high + (first >> 16) + (second >> 16);
}

/*
 * The logistic function of x / 2^20 in 2^-20, from 0 to 2^20, for |x| < 2^27. The table holds logistic(i / 16) * 2^30
 * for i from 0 to 256; from the nearest entry s it is Taylor's series to the square, with the derivatives s (1 - s)
 * and s (1 - s) (1 - 2 s).
 */
int32_t nn_fine_sigmoid(const int32_t *table, int32_t x)
{
    const int32_t limit = 16 << 20, positive = x < 0 ? -x : x;
    const int32_t size = positive < limit ? positive : limit;
    const int32_t index = (size + (1 << 15)) >> 16, rest = (size - index * 65536) * 4096;
    const int32_t near = table[index]; /* below 2^30 */
    const int32_t slope = nn_upper_half(near * 2, ((1 << 30) - near) * 2);
    const int32_t bend = nn_upper_half(slope * 4, (1 << 29) - near);
    const int32_t tilted = slope + nn_upper_half(rest, bend);
    const int32_t result = (near + nn_upper_half(rest, tilted) + (1 << 9)) >> 10;

    return x < 0 ? (1 << 20) - result : result;
}

/* uses: none */
#include "../nn_numeric.h"

/*
 * x / by, rounded down; `inverse` is 2^32 / by, rounded down, and at most 2^32 - 1. Where a division is a loop of the
 * compiler's library, it is a product by halves: its upper word is the quotient, or 1 less.
 */
uint32_t nn_divide_short(uint32_t x, uint32_t by, uint32_t inverse)
{
    const uint32_t x_high = x >> 16, x_low = x & 0xffff, high = inverse >> 16, low = inverse & 0xffff;
    const uint32_t first = x_high * low + ((x_low * low) >> 16);
    const uint32_t second = x_low * high + (first & 0xffff);
    const uint32_t quotient = x_high * high + (first >> 16) + (second >> 16);

    return quotient + (x - quotient * by >= by);
}

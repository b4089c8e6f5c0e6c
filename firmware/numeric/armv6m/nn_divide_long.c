/* uses: divide_short */
#include "../nn_numeric.h"

/*
 * x / by, rounded down, for x >= 0 and `by` from 1 to 2^18; `inverse` is 2^32 / by, rounded down, and at most 2^32 - 1.
 * Digits have 14 bits, so that one behind a remainder fits 32.
 */
int64_t nn_divide_long(int64_t x, int32_t by, uint32_t inverse)
{
    uint64_t quotient = 0;
    uint32_t rest = 0;

    for (int32_t shift = 56; shift >= 0; shift -= 14) {
        const uint32_t part = rest << 14 | ((uint32_t)(x >> shift) & 0x3fff);
        const uint32_t digit = nn_divide_short(part, (uint32_t)by, inverse);
        quotient = quotient << 14 | digit;
        rest = part - digit * (uint32_t)by;
    }
    return (int64_t)quotient;
}

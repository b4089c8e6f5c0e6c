/* uses: none */
#include "nn_numeric.h"

/*
 * x / by, rounded down, for x >= 0 and `by` from 1 to 2^18; `inverse` is 2^32 / by, rounded down, and at most 2^32 - 1.
 * Processors of 32 bits divide 32 at most, which hold a remainder and the next digit of 14 bits: there it goes as on
 * paper.
 */
int64_t nn_divide_long(int64_t x, int32_t by, uint32_t inverse)
{
    (void)inverse;
#if defined(__LP64__) || defined(_WIN64)
    return x / by;
#else
    uint64_t quotient = 0;
    uint32_t rest = 0;

    for (int32_t shift = 56; shift >= 0; shift -= 14) {
        const uint32_t part = rest << 14 | ((uint32_t)(x >> shift) & 0x3fff);
        quotient = quotient << 14 | part / (uint32_t)by;
        rest = part % (uint32_t)by;
    }
    return (int64_t)quotient;
#endif
}

/* uses: none */
#include "../nn_numeric.h"

/* The quotient of *rest and `by`, which is below 2^8, as on paper; *rest becomes what remains. */
static inline uint32_t nn_eight_digits(uint32_t *rest, uint32_t by)
{
    uint32_t quotient = 0, place = by << 7;

    for (int32_t digits = 8; digits > 0; --digits) {
        quotient *= 2;
        if (*rest >= place) {
            *rest -= place;
            ++quotient;
        }
        place >>= 1;
    }
    return quotient;
}

/*
 * x / by, rounded down, for quotients below 2^16 and `by` up to 2^16; with 8 or 16 digits, where a division is a loop
 * of the compiler's library.
 */
uint32_t nn_quotient16(uint32_t x, uint32_t by)
{
    const uint32_t upper = x >> 8 < by ? 0 : nn_eight_digits(&x, by << 8);

    return upper << 8 | nn_eight_digits(&x, by);
}

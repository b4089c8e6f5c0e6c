/* uses: none */
#include "nn_numeric.h"

/*
 * What a float64 product, rounded to the nearest integer and halves away from zero, gives for
 * acc * multiplier / 2^shift: the product is first rounded to 53 bits, which can only lift it to a half that it just
 * misses. Held within 2^30. For |acc| < 2^36 and a multiplier of up to 53 bits; the product is formed in two parts of
 * which neither overflows.
 */
int32_t nn_scale_float(int64_t acc, int64_t multiplier, int32_t shift)
{
    const uint64_t value = acc < 0 ? 0 - (uint64_t)acc : (uint64_t)acc;
    const uint64_t low = value * ((uint64_t)multiplier & 0x3ffffff);
    const uint64_t high = value * ((uint64_t)multiplier >> 26) + (low >> 26);
    const int64_t limit = (int64_t)1 << 30;
    uint64_t beyond = high >> 27;
    uint64_t step = 1;
    int64_t scaled;

    /* Half a unit of the 53rd bit doubles with every bit beyond; in steps, since bounds cannot prove an open loop. */
    if ((beyond >> 32) != 0) {
        beyond >>= 32;
        step <<= 32;
    }
    if ((beyond >> 16) != 0) {
        beyond >>= 16;
        step <<= 16;
    }
    if ((beyond >> 8) != 0) {
        beyond >>= 8;
        step <<= 8;
    }
    if ((beyond >> 4) != 0) {
        beyond >>= 4;
        step <<= 4;
    }
    if ((beyond >> 2) != 0) {
        beyond >>= 2;
        step <<= 2;
    }
    step = beyond > 1 ? step << 1 : beyond * step;
    scaled = (int64_t)((high + (((low & 0x3ffffff) + step) >> 26) + ((uint64_t)1 << (shift - 27))) >> (shift - 26));
    scaled = scaled > limit ? limit : scaled;
    return (int32_t)(acc < 0 ? -scaled : scaled);
}

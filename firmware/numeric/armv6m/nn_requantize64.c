/* uses: none */
#include "../nn_numeric.h"

/*
 * A 48-bit sum times a 16-bit multiplier times 2^(shift - 15), rounded once, halves up. The product is `upper` * 2^32 +
 * `middle` * 2^16 + `lower`, of which the last two have 16 bits.
 */
int32_t nn_requantize64(int64_t acc, int32_t multiplier, int32_t shift)
{
    const uint32_t low = (uint32_t)acc, factor = (uint32_t)multiplier;
    const uint32_t last = (low & 0xffff) * factor, next = (low >> 16) * factor + (last >> 16);
    const int32_t upper = (int32_t)(acc >> 32) * multiplier + (int32_t)(next >> 16);
    const int32_t middle = (int32_t)(next & 0xffff), lower = (int32_t)(last & 0xffff), right = 15 - shift;

    if (right > 32)
        return ((upper >> (right - 33)) + 1) >> 1;
    if (right > 16)
        return (int32_t)(((uint32_t)upper << (32 - right)) + (uint32_t)(((middle >> (right - 17)) + 1) >> 1));
    return (int32_t)((((uint32_t)upper << 16 | (uint32_t)middle) << (16 - right)) +
                     (uint32_t)(((lower >> (right - 1)) + 1) >> 1));
}

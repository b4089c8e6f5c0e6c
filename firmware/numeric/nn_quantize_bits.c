/* uses: leading_zeros */
#include "../libm/nn_bits.h"
#include "nn_numeric.h"

/*
 * The same as nn_quantizef, by integers only. The scale is `mantissa` * 2^(exponent - 167), with 24 bits of mantissa and
 * an exponent of 32 to 255; `inverse` is 2^55 / mantissa, at most 2^32 - 1.
 *
 * The quotient has 14 bits behind the point, which decide unless a half is near. There the float quotient rounds to the
 * half from the middle between it and the float before it on; products of whole numbers compare with that middle.
 */
int32_t nn_quantize_bits(float x, uint32_t mantissa, uint32_t inverse, int32_t exponent, int32_t zero_point,
                         int32_t low, int32_t high)
{
    const uint32_t bits = nn_bits_of(x), size = bits & 0x7fffffff, digits = (size & 0x7fffff) | 0x800000;
    const int32_t right = exponent - (int32_t)(size >> 23);
    int32_t whole = 0;

    if (right <= 0) /* a quotient of 2^16 or more, or no number */
        return size > 0x7f800000 || bits != size ? low : high;
    if (right < 32) {
        const uint32_t fixed = ((uint32_t)(((uint64_t)(digits << 8) * inverse) >> 32) >> right) + 8448;

        whole = (int32_t)(fixed >> 14);
        if ((fixed & 0x3fff) < 512) {
            const uint32_t halves = 2 * (uint32_t)whole - 1;
            const int32_t zeros = nn_leading_zeros(halves);
            const uint32_t middle = (halves << (zeros - 6)) - (halves == 1 ? 1 : 2);

            if ((uint64_t)digits << (12 + zeros - right) < (uint64_t)mantissa * middle)
                --whole;
        }
    }
    whole = (bits != size ? -whole : whole) + zero_point;
    return whole < low ? low : whole > high ? high : whole;
}

/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The remainder of x by y with the sign of x, |result| < |y|. Exact.
 */
/* The mantissa of a positive float, its leading bit set, and the exponent that belongs to it. */
static uint32_t nn_fmodf_mantissa(uint32_t magnitude, int32_t *exponent)
{
    uint32_t mantissa = magnitude & 0x7fffff;

    *exponent = (int32_t)(magnitude >> 23);
    if (*exponent > 0)
        return mantissa | 0x800000;
    for (*exponent = 1; mantissa < 0x800000; mantissa <<= 1)
        --*exponent;
    return mantissa;
}

float nn_fmodf(float x, float y)
{
    const uint32_t sign = nn_bits_of(x) & 0x80000000;
    const uint32_t dividend = nn_bits_of(x) ^ sign;
    const uint32_t divisor = nn_bits_of(y) & 0x7fffffff;
    uint32_t rest, step;
    int32_t exponent, last;

    if (dividend >= 0x7f800000 || divisor > 0x7f800000 || divisor == 0)
        return nn_float_of(0x7fc00000);
    if (dividend < divisor)
        return x;
    rest = nn_fmodf_mantissa(dividend, &exponent);
    step = nn_fmodf_mantissa(divisor, &last);
    for (; exponent > last && rest; exponent--)
        rest = (rest >= step ? rest - step : rest) << 1;
    if (rest >= step)
        rest -= step;
    if (rest == 0)
        return nn_float_of(sign);
    for (; rest < 0x800000; rest <<= 1)
        last--;
    if (last <= 0)
        return nn_float_of(sign | rest >> (1 - last));
    return nn_float_of(sign | (((uint32_t)(last - 1) << 23) + rest));
}

/* uses: none */
#include "nn_numeric.h"

/*
 * A float as an integer of its scale: divided in single precision, rounded with halves away from zero, the zero point
 * added, saturated. What lies between whole numbers is exact, since the quotient is below 2^17. NaN gives `low`.
 */
int32_t nn_quantizef(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    int32_t whole;
    float rest;

    if (!(quotient > (float)(low - zero_point)))
        return low;
    if (quotient >= (float)(high - zero_point))
        return high;
    whole = (int32_t)quotient;
    rest = quotient - (float)whole;
    if (rest >= 0.5f)
        ++whole;
    if (rest <= -0.5f)
        --whole;
    return whole + zero_point;
}

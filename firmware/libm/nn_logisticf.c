/* uses: nn_logisticpartsf */
#include "nn_bits.h"
#include "nn_libm.h"

/* 1 / (1 + e^-x), the sigmoid, without overflow. Largest error: 1.31 ULP. */
float nn_logisticf(float x)
{
    float excess, part, y;

    part = nn_logisticpartsf(nn_float_of(nn_bits_of(x) & 0x7fffffff), &excess);
    if (!(x > 0))
        return part - excess;
    y = 1.0f - part;
    return y + (((1.0f - y) - part) + excess);
}

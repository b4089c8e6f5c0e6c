/* uses: nn_sqrtf */
#include "nn_libm.h"

float sqrtf(float x);

float sqrtf(float x)
{
    return nn_sqrtf(x);
}

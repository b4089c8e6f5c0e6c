/* uses: nn_sinf */
#include "nn_libm.h"

float sinf(float x);

float sinf(float x)
{
    return nn_sinf(x);
}

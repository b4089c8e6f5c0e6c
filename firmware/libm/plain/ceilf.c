/* uses: nn_ceilf */
#include "nn_libm.h"

float ceilf(float x);

float ceilf(float x)
{
    return nn_ceilf(x);
}

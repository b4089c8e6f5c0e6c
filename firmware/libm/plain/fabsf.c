/* uses: nn_fabsf */
#include "nn_libm.h"

float fabsf(float x);

float fabsf(float x)
{
    return nn_fabsf(x);
}

/* uses: nn_truncf */
#include "nn_libm.h"

float truncf(float x);

float truncf(float x)
{
    return nn_truncf(x);
}

/* uses: nn_expf */
#include "nn_libm.h"

float expf(float x);

float expf(float x)
{
    return nn_expf(x);
}
